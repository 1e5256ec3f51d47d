"""Weights over the moments of a sound or the frames of a video as an SVG: one bar a moment, up for, down against."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from backend.report.svg import element, picture, share
from model.explain.places import Place

HEIGHT = 84  # pixels
_BASE = HEIGHT / 2


def bars(places: Sequence[Place], weights: Sequence[float], *, most: float, title: str) -> Markup:
    """`places` of one sound or video and their weights."""
    width, parts = 1 / max(len(places), 1), []
    signed = any(weight < 0 for weight in weights)
    base, reach = (_BASE, _BASE) if signed else (float(HEIGHT), float(HEIGHT))
    for at, weight in enumerate(weights):
        height = reach * min(abs(weight) / most, 1.0) if most > 0 else 0.0
        top = base - height if weight > 0 else base
        parts.append(element(
            "rect", class_="column strong" if weight > 0 else "column against", x=share((at + 0.1) * width), y=top,
            width=share(0.8 * width), height=height))
    parts.append(element("line", class_="axis", x1="0%", x2="100%", y1=base, y2=base))
    ends = [("left", "0%", places[0]), ("right", "100%", places[-1])] if len(places) > 1 else []
    for side, x, place in ends:
        parts.append(element("text", _when(place, side), class_=f"tick {side}", x=x, y=HEIGHT + 16))
    return picture(parts, height=HEIGHT + 22, title=title, text=_said(places, weights))


def _when(place: Place, side: str) -> str:
    if place.seconds is None:
        return "begins" if side == "left" else "ends"
    return f"{place.seconds:.1f} s"


def _said(places: Sequence[Place], weights: Sequence[float]) -> str:
    """The three strongest moments in words."""
    order = sorted(range(len(places)), key=lambda at: -abs(weights[at]))[:3]
    seconds = [(places[at].seconds, at) for at in order]
    return "strongest at " + ", ".join(
        f"{when:.1f} s ({weights[at]:+.3f})" if when is not None else f"moment {at + 1} ({weights[at]:+.3f})"
        for when, at in seconds
    )

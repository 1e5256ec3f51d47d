"""Weights over the words of a text as HTML: spans with classes, everything escaped, no inline style.

A weight is shown in ten steps of its share of the largest one; a negative one (the word speaks against the answer) in
another colour. Text that the model does not read (the middle of a long one) is replaced by a note of its length.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from backend.report.words import number
from model.explain.places import Place

STEPS = 10
_UNREAD_FROM = 12  # characters; what a tokenizer drops between words is less


def step_class(weight: float, most: float) -> str:
    """The class of a weight: "heat-1" to "heat-10", "against-1" to "against-10", "" near 0."""
    step = min(round(STEPS * abs(weight) / most), STEPS) if most > 0 else 0
    return f"{'heat' if weight > 0 else 'against'}-{step}" if step else ""


def heat_text(text: str, places: Sequence[Place], weights: Sequence[float], *, most: float) -> Markup:
    """The text with each place of kind "text" on the ground of its weight (P,)."""
    parts: list[str] = []
    at = 0
    for place, weight in zip(places, weights, strict=True):
        if place.kind != "text" or place.start is None or place.end is None:
            continue
        parts += [_between(text[at : place.start]), _word(text[place.start : place.end], weight, most)]
        at = place.end
    return Markup("".join([*parts, _between(text[at:])]))


def strongest(
    text: str, places: Sequence[Place], weights: Sequence[float], *, count: int = 3, least: float = 0.005
) -> list[tuple[str, float]]:
    """What the places of greatest weight are called, with their weights, for those who see no colours."""
    order = sorted(range(len(weights)), key=lambda at: -abs(weights[at]))[:count]
    return [(name_of(places[at], text), weights[at]) for at in order if abs(weights[at]) >= least]


def name_of(place: Place, text: str) -> str:
    """A place in words."""
    if place.kind == "text":
        return text[place.start : place.end]
    which = f" of {place.kind} {place.piece + 1}" if place.piece else ""
    if place.kind == "image":
        assert place.row is not None and place.column is not None
        return f"row {place.row + 1}, column {place.column + 1}{which}"
    when = f"{place.seconds:.1f} s" if place.seconds is not None else "a moment"
    return f"{when}{which}"


def _word(word: str, weight: float, most: float) -> str:
    kind = step_class(weight, most)
    shown = escape(word)
    return f'<span class="{kind}" title="{weight:+.3f}">{shown}</span>' if kind else str(shown)


def _between(text: str) -> str:
    if len(text.strip()) < _UNREAD_FROM:
        return str(escape(text))
    return f' <span class="unread">[{number(len(text.strip()))} characters that the model does not read]</span> '

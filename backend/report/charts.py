"""The charts of the QA site, drawn on the server: bars with intervals, columns, lines over time, a map of annotators.

Each takes plain numbers and gives markup (`svg`); None is left out of the picture and told in its text.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from backend.report.svg import decoration, element, picture, share
from backend.report.words import decimal, number, percent, shortened
from backend.services.statistics.documents import CalibrationBin

COLUMNS_HEIGHT = 150  # pixels, without the labels below
LINE_HEIGHT = 150
MAP_HEIGHT = 320
RELIABILITY_HEIGHT = 220
_LETTER = 0.019  # width of a letter as a share of the map, on a phone
_FEW = 12  # columns up to which each one is labelled with its number


def bar(value: float | None, low: float | None = None, high: float | None = None, *, kind: str = "fill") -> Markup:
    """A share of [0, 1] beside its number, with its interval as a line."""
    parts = [element("rect", class_="track", width="100%", height=8, y=4, rx=4)]
    if value is not None:
        parts.append(element("rect", class_=kind, width=share(value), height=8, y=4, rx=4))
    if low is not None and high is not None:
        parts.append(element("line", class_="interval", x1=share(low), x2=share(high), y1=8, y2=8))
        parts += [element("line", class_="interval", x1=share(x), x2=share(x), y1=4, y2=12) for x in (low, high)]
    return decoration(parts, height=16, name="bar")


def shift(given: float, expected: float, *, most: float) -> Markup:
    """From what was to be expected (a ring) to what was given (a dot), on a scale up to `most`."""
    scale = max(most, 1e-9) * 1.05
    start, end = 0.015 + 0.97 * expected / scale, 0.015 + 0.97 * given / scale
    direction = "more" if given >= expected else "less"
    return decoration([
        element("line", class_="axis", x1="0%", x2="100%", y1=8, y2=8),
        element("line", class_=f"shift {direction}", x1=share(start), x2=share(end), y1=8, y2=8),
        element("circle", class_="ring", cx=share(start), cy=8, r=4.5),
        element("circle", class_=f"dot {direction}", cx=share(end), cy=8, r=5),
    ], height=16, name="bar")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a whole; `kind` names its colour in the style sheet."""

    label: str
    count: int
    kind: str


def stacked(parts: Sequence[Part], *, title: str) -> Markup:
    """One bar of several pieces; the legend stands beside it in HTML."""
    whole = sum(part.count for part in parts)
    said, drawn, begin = [], [element("rect", class_="track", width="100%", height=22, rx=5)], 0.0
    for part in parts:
        width = part.count / whole if whole else 0.0
        said.append(f"{part.label} {number(part.count)} ({percent(width)})")
        if width:
            drawn.append(element("rect", class_=part.kind, x=share(begin), width=share(width), height=22))
        begin += width
    return picture(drawn, height=22, title=title, text=", ".join(said), name="chart stacked")


@dataclass(frozen=True, slots=True)
class Bar:
    """A share with its name."""

    label: str
    value: float | None
    kind: str = "fill"


def bars(shown: Sequence[Bar], *, title: str) -> Markup:
    """Named shares, one below the other: the name above its bar, the figure at its end."""
    parts, row = [], 38
    for place, each in enumerate(shown):
        top = place * row
        parts += [element("text", shortened(each.label, 48), class_="label", x=0, y=top + 13),
                  element("text", percent(each.value), class_="value right", x="100%", y=top + 13),
                  element("rect", class_="track", width="100%", height=8, y=top + 20, rx=4)]
        if each.value is not None:
            parts.append(element("rect", class_=each.kind, width=share(each.value), height=8, y=top + 20, rx=4))
    said = ", ".join(f"{each.label}: {percent(each.value)}" for each in shown)
    return picture(parts, height=max(len(shown) * row - 8, 1), title=title, text=said, name="chart bars")


def columns(
    counts: Sequence[int], labels: Sequence[str], *, title: str, axis: str, tall: int = COLUMNS_HEIGHT
) -> Markup:
    """A histogram: `counts` under `labels`, `tall` pixels high; a label of "" is not written."""
    top, width = max([*counts, 1]), 1 / max(len(counts), 1)
    parts, base = [], 18 + tall
    for place, (amount, label) in enumerate(zip(counts, labels, strict=True)):
        height, middle = tall * amount / top, share((place + 0.5) * width)
        if amount:
            height = max(height, 2.0)
            x = share((place + 0.08) * width)
            parts.append(element("rect", class_="column", x=x, y=base - height, width=share(0.84 * width),
                                 height=height, rx=2))
            if len(counts) <= _FEW:
                parts.append(element("text", number(amount), class_="value", x=middle, y=base - height - 5))
        if label:
            parts.append(element("text", label, class_="tick", x=middle, y=base + 16))
    parts.append(element("line", class_="axis", x1="0%", x2="100%", y1=base, y2=base))
    said = ", ".join(f"{label or place}: {number(each)}" for place, (each, label) in
                     enumerate(zip(counts, labels, strict=True)))
    return picture(parts, height=base + 24, title=title, text=f"{axis}. {said}")


@dataclass(frozen=True, slots=True)
class Line:
    """Values along the same steps as all lines of a chart."""

    label: str
    values: Sequence[float | None]
    kind: str


def lines(series: Sequence[Line], steps: Sequence[str], *, title: str, shares: bool = True) -> Markup:
    """Lines over time. Shares are drawn on [0, 1], all else between its smallest and largest value."""
    known = [value for line in series for value in line.values if value is not None]
    low, high = (0.0, 1.0) if shares else _room(known)
    show = percent if shares else decimal
    parts = [
        element("line", class_="grid", x1="0%", x2="100%", y1=_y(level, low, high), y2=_y(level, low, high))
        for level in (low, (low + high) / 2, high)
    ]
    parts += [element("text", show(level), class_="tick left", x="0%", y=_y(level, low, high) - 4)
              for level in (low, (low + high) / 2, high)]
    for line in series:
        at = [(_x(place, len(steps)), _y(value, low, high)) for place, value in enumerate(line.values)
              if value is not None]
        parts += [element("line", class_=f"line {line.kind}", x1=x1, y1=y1, x2=x2, y2=y2)
                  for (x1, y1), (x2, y2) in itertools.pairwise(at)]
        parts += [element("circle", class_=f"dot {line.kind}", cx=x, cy=y, r=3.5) for x, y in at]
    ends = {0: "left", len(steps) - 1: "right"} if len(steps) > 1 else {0: ""}
    parts += [element("text", steps[place], class_=f"tick {side}", x="0%" if side == "left" else "100%" if side else
                      "50%", y=LINE_HEIGHT + 44) for place, side in ends.items() if steps]
    said = "; ".join(f"{line.label}: " + ", ".join(show(value) for value in line.values) for line in series)
    return picture(parts, height=LINE_HEIGHT + 50, title=title, text=said)


def reliability(bins: Sequence[CalibrationBin], *, title: str) -> Markup:
    """Stated confidence (along) against the share that was right (up), with 95 % intervals and the number of tasks;
    what is on the slanting line is as sure as it says."""
    def up(value: float) -> float:
        return 12 + RELIABILITY_HEIGHT * (1.0 - value)

    def along(value: float) -> str:
        return share(0.08 + 0.88 * value)

    parts = [element("line", class_="grid", x1=along(0.0), x2=along(1.0), y1=up(level), y2=up(level))
             for level in (0.0, 0.5, 1.0)]
    parts += [element("text", percent(level), class_="tick left", x="0%", y=up(level) + 4) for level in (0.0, 0.5, 1.0)]
    parts.append(element("line", class_="axis", x1=along(0.0), x2=along(1.0), y1=up(0.0), y2=up(1.0)))
    for each in bins:
        x, right = along(each.stated), each.right
        if right.low is not None and right.high is not None:
            parts.append(element("line", class_="interval", x1=x, x2=x, y1=up(right.low), y2=up(right.high)))
        if right.value is not None:
            parts.append(element("circle", class_="dot", cx=x, cy=up(right.value), r=4))
        middle = along((each.low + each.high) / 2)
        parts.append(element("text", number(each.tasks), class_="tick", x=middle, y=up(0.0) + 18))
    parts.append(element("text", "tasks at each step of stated confidence, from 0 to 100 %", class_="tick", x="52%",
                         y=up(0.0) + 36))
    said = "; ".join(f"stated {percent(each.stated)}, right {percent(each.right.value)} of {number(each.tasks)}"
                     for each in bins)
    return picture(parts, height=RELIABILITY_HEIGHT + 56, title=title, text=said)


@dataclass(frozen=True, slots=True)
class Point:
    """Somebody on the map."""

    x: float
    y: float
    label: str
    kind: str = ""


def scatter(points: Sequence[Point], *, title: str, text: str) -> Markup:
    """A map without axes: what is near is alike. Names that would lie upon each other are left to the pointer."""
    reach = max([abs(value) for point in points for value in (point.x, point.y)] + [1e-9])
    parts = [element("line", class_="grid", x1="50%", x2="50%", y1=0, y2=MAP_HEIGHT),
             element("line", class_="grid", x1="0%", x2="100%", y1=MAP_HEIGHT / 2, y2=MAP_HEIGHT / 2)]
    taken: list[tuple[float, float, float]] = []
    places = {id(point): (0.5 + 0.4 * point.x / reach, MAP_HEIGHT * (0.5 - 0.42 * point.y / reach)) for point in points}
    for point in sorted(points, key=lambda each: not each.kind):  # those that are pointed at are named for certain
        x, y = places[id(point)]
        parts.append(element("circle", element("title", point.label), class_=f"dot {point.kind}".strip(), cx=share(x),
                             cy=y, r=7 if point.kind else 5))
        name = shortened(point.label.split("@")[0], 18)
        # The other dots, but for those that this one hides.
        others = [(at - 0.01, at + 0.01, high) for at, high in places.values()
                  if abs(at - x) > 0.012 or abs(high - y) > 10]
        side, level = _free_place(taken, others, x, y, len(name) * _LETTER + 0.04)
        if side:
            parts.append(element("text", name, class_=f"name {side}", x=share(x), y=level + 4,
                                 dx=-11 if side == "right" else 11))
    return picture(parts, height=MAP_HEIGHT, title=title, text=text, name="chart map")


def _free_place(
    taken: list[tuple[float, float, float]], others: list[tuple[float, float, float]], x: float, y: float, width: float
) -> tuple[str, float]:
    """Which side of a dot its name goes to ("left": it begins there) and how high, beside the dot or a line above or
    below it, clear of the names and the `others`' dots; "" where there is no room; notes what it takes. Places are
    shares of the width, heights pixels."""
    for level, (side, begin) in itertools.product((y, y - 16, y + 16), (("left", x), ("right", x - width))):
        clear = all(abs(level - at) > reach or begin + width <= start or begin >= end
                    for rows, reach in ((taken, 15), (others, 10)) for start, end, at in rows)
        if clear and begin >= 0 and begin + width <= 1:
            taken.append((begin, begin + width, level))
            return side, level
    return "", y


def _room(values: Sequence[float]) -> tuple[float, float]:
    """A little more than the values take."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    gap = (high - low) * 0.1 or max(abs(high) * 0.1, 0.05)
    return low - gap, high + gap


def _x(place: int, steps: int) -> str:
    return share(0.5 if steps < 2 else 0.1 + 0.88 * place / (steps - 1))


def _y(value: float, low: float, high: float) -> float:
    return 20 + LINE_HEIGHT * (1 - (value - low) / (high - low))


def cells(row: str) -> Markup:
    """A row of the matrix, one letter a task: `g` given, `p` predicted, all else missing. Runs are drawn as one."""
    kinds = {"g": "given", "p": "predicted"}
    parts, begin = [element("rect", class_="track", width="100%", height=14)], 0
    for letter, run in itertools.groupby(row):
        length = sum(1 for _ in run)
        if letter in kinds:
            x, width = share(begin / len(row)), share(length / len(row))
            parts.append(element("rect", class_=kinds[letter], x=x, width=width, height=14))
        begin += length
    return decoration(parts, height=14, name="bar cells")

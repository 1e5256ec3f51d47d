"""An explanation -> what its template needs; for the site, and for the file that the command writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from backend.report.explanations.moments import bars
from backend.report.explanations.words import heat_text, strongest
from backend.report.names import Names
from backend.report.pages import Look
from backend.services.explanation.documents import Answer, TaskExplanation

ATTRIBUTION, ATTENTION = WAYS = ("attribution", "attention")
EVERYBODY = ""  # whose panel shows the mean of all annotators
FAINT = 0.25
Weights = Sequence[float]
Source = Callable[[str, int, str], str]  # annotator, which image, way -> address of its overlay


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """An overlay."""

    address: str
    text: str  # for those who do not see it


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One annotator's view of the task; `annotator` is EVERYBODY for the mean of all."""

    annotator: str
    name: str
    words: Markup
    pictures: tuple[Picture, ...]
    charts: tuple[Markup, ...]
    strongest: tuple[tuple[str, float], ...]
    lead: float | None  # faithfulness of these weights


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """All panels of one way to weigh."""

    way: str
    panels: tuple[Panel, ...]


def explanation(look: Look, document: TaskExplanation, *, control: str, ways: Sequence[str], source: Source,
                query: dict[str, str]) -> dict[str, Any]:
    """What the template needs; `ways` in order, those without weights left out."""
    views = [_view(look, document, control, way, source) for way in ways]
    return {
        "found": document, "control": control, "controls": tuple(document.network_share), "query": query,
        "answers": [(each.annotator, shown_name(look.names, each.annotator, each.name), each.controls[control])
                    for each in document.annotators],
        "views": [view for view in views if view.panels], "ways": WAYS, "share": document.network_share[control],
    }


def weights_of(document: TaskExplanation, annotator: str, control: str, way: str) -> Weights | None:
    """Weights (P,) of one annotator (or EVERYBODY); None where there are none."""
    if annotator == EVERYBODY:
        return document.pooled if way == ATTENTION else None
    found = next((each for each in document.annotators if each.annotator == annotator), None)
    if found is None:
        return None
    return found.attention if way == ATTENTION else found.controls[control].attribution


def scale_of(document: TaskExplanation, annotator: str, control: str, way: str) -> float:
    """The weight that is shown at full strength: the largest of this annotator, or `FAINT` of the largest of all where
    that is more, so that an annotator whom nothing moves is shown pale."""
    people = [each.annotator for each in document.annotators] + [EVERYBODY]
    largest = {who: max(map(abs, weights_of(document, who, control, way) or ()), default=0.0) for who in people}
    return max(largest[annotator], FAINT * max(largest.values()))


def cells_of(document: TaskExplanation, weights: Weights, piece: int) -> NDArray[np.float64] | None:
    """Weights of one image as a grid (S, S); None where the task has no such image."""
    mine = [(place, weight) for place, weight in zip(document.places, weights, strict=True)
            if place.kind == "image" and place.piece == piece]  # fmt: skip
    if not mine:
        return None
    grid = np.zeros((mine[0][0].side or 1,) * 2)
    for place, weight in mine:
        grid[place.row, place.column] = weight
    return grid


def masked(document: TaskExplanation, names: Names) -> TaskExplanation:
    """The document with names as they are shown."""
    return replace(document, annotators=tuple(
        replace(each, annotator=names.slug(each.annotator), name=shown_name(names, each.annotator, each.name))
        for each in document.annotators
    ))


def shown_name(names: Names, annotator: str, name: str) -> str:
    """What an annotator is called; also before there are statistics that know names."""
    known = names.name(annotator)
    return known if names.masked or known != annotator else name


def _view(look: Look, document: TaskExplanation, control: str, way: str, source: Source) -> View:
    people = [(each.annotator, shown_name(look.names, each.annotator, each.name), each.controls[control])
              for each in document.annotators]
    panels = [
        _panel(document, who, name, weights, scale_of(document, who, control, way), way, source, _lead(answer, way))
        for who, name, answer in people if (weights := weights_of(document, who, control, way)) is not None
    ]
    if way == ATTENTION:
        leads = [found.pooled for *_, answer in people if (found := answer.faithful) is not None]
        lead = float(np.mean(leads)) if leads else None
        scale = scale_of(document, EVERYBODY, control, way)
        panels.append(_panel(document, EVERYBODY, "All annotators", document.pooled, scale, way, source, lead))
    return View(way=way, panels=tuple(panels))


def _lead(answer: Answer, way: str) -> float | None:
    if answer.faithful is None:
        return None
    return answer.faithful.attention if way == ATTENTION else answer.faithful.attribution


def _panel(
    document: TaskExplanation, annotator: str, name: str, weights: Weights, most: float, way: str, source: Source,
    lead: float | None,
) -> Panel:
    text, places = document.text, document.places
    top = tuple(strongest(text, places, weights))
    said = ", ".join(f"{place} {weight:+.3f}" for place, weight in top) or "nothing stands out"
    pictures = tuple(
        Picture(address=source(annotator, piece, way), text=f"Heat over image {piece + 1} for {name}: {said}")
        for piece in range(document.pieces.get("image", 0))
    )
    charts = []
    for kind in ("audio", "video"):
        for piece in range(document.pieces.get(kind, 0)):
            mine = [at for at, place in enumerate(places) if place.kind == kind and place.piece == piece]
            charts.append(bars([places[at] for at in mine], [weights[at] for at in mine], most=most,
                               title=f"{kind.capitalize()} {piece + 1}, {name}"))
    words = heat_text(text, places, weights, most=most) if document.pieces.get("text") else Markup("")
    return Panel(annotator=annotator, name=name, words=words, pictures=pictures, charts=tuple(charts), strongest=top,
                 lead=lead)

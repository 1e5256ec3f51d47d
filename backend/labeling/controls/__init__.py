"""The registry of control tags. A new one is a file with a `Control` class and a line in `MODELLED`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from backend.labeling.controls import choices, number, pairwise, ranker, rating, taxonomy
from backend.labeling.controls.base import Control, Place, Unmodelled
from backend.labeling.controls.per_region import PerRegion
from backend.labeling.controls.unmodelled import RECOGNISED, declare, why_not_here
from backend.labeling.controls.visibility import conditions_of

__all__ = ["Control", "Place", "Unmodelled", "is_control", "read_control"]

# lower-case kind -> (as Label Studio spells it, reader)
MODELLED: Mapping[str, tuple[str, Callable[[Place], Control | Unmodelled]]] = {
    "choices": ("Choices", choices.Choices.read),
    "number": ("Number", number.Number.read),
    "pairwise": ("Pairwise", pairwise.Pairwise.read),
    "ranker": ("Ranker", ranker.Ranker.read),
    "rating": ("Rating", rating.Rating.read),
    "taxonomy": ("Taxonomy", taxonomy.Taxonomy.read),
}


_ON_REGIONS = frozenset({"choices", "number", "rating", "taxonomy"})


def is_control(kind: str) -> bool:
    """Whether Label Studio has a control tag of this (lower-case) name."""
    return kind in MODELLED or kind in RECOGNISED


def read_control(place: Place) -> Control | Unmodelled | None:
    """The control that stands there, modelled or declared not to be; None for a tag that is no control."""
    if place.tag.kind not in MODELLED:
        return declare(place)
    tag, read = MODELLED[place.tag.kind]
    on_regions = place.tag.kind in _ON_REGIONS and place.tag.is_true("perregion")
    reason = why_not_here(place, tag, on_regions=on_regions)
    if reason:
        return Unmodelled(name=place.name, tag=tag, reason=reason)
    control = read(place)
    if on_regions:  # conditions do not matter: nothing is predicted
        return PerRegion.around(control, place) if isinstance(control, Control) else control
    conditions = conditions_of((*place.ancestors, place.tag))
    return replace(control, shown_when=conditions) if isinstance(control, Control) and conditions else control

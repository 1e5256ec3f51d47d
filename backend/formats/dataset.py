"""Dataset: what every format is read into and written from: votes, and the facts that some formats know beside them.

Gold labels and class orders belong to a control, since a Label Studio project may have several.

Shape legend: N votes.
Invariant: every unit with gold or content stands in `votes.units`; `lead_time_s` has the row order of `votes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.formats.errors import FormatError
from backend.labeling import LabelConfig
from backend.ports import Progress
from model.spaces import ValueKind
from model.votes import Votes

DEFAULT_CONTROL = "label"


def quiet(fraction: float, note: str) -> None:
    """A `Progress` that nobody looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a reader may be told beside the path."""

    label_config: LabelConfig | None = None  # Label Studio formats: decode by it, as the live project does
    control: str = ""  # Label Studio CSV: the column of the answers, where several could be
    trust_ground_truth: bool = False  # Label Studio JSON: `ground_truth` annotations are gold and not votes
    progress: Progress = quiet


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """What a writer may be told beside the data."""

    label_config: LabelConfig | None = None  # Label Studio formats: where the controls point to
    control: str = ""  # formats with one control: which
    progress: Progress = quiet


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """Votes with the facts around them."""

    votes: Votes
    name: str = ""
    gold: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # control -> unit -> class
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # control -> classes in their order
    ordinal: bool = False  # the classes stand in a meaningful order
    lead_time_s: NDArray[np.float64] | None = None  # (N,) NaN where unknown; None when nothing is known
    content: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # unit -> task data

    def control(self, name: str = "") -> str:
        """The control that is meant: `name`, or the only one there is. Raises FormatError with those to choose from."""
        known = self.votes.controls or tuple(self.classes) or (DEFAULT_CONTROL,)
        if name:
            if name not in known:
                raise FormatError(f"There is no control {name}; there is {', '.join(known)}.")
            return name
        if len(known) > 1:
            raise FormatError(f"There are several controls ({', '.join(known)}); choose one with --control.")
        return known[0]

    def kinds(self, control: str) -> set[ValueKind]:
        """The kinds of values that the votes of a control have."""
        used = np.unique(self.votes.of_control(control).value)
        return {self.votes.values[i].kind for i in used}

    def classes_of(self, control: str) -> tuple[str, ...]:
        """All classes of a control: the declared ones in their order, then whatever else was given or is gold."""
        given = [self.votes.values[i] for i in np.unique(self.votes.of_control(control).value)]
        found = {str(value.data) for value in given if value.kind is ValueKind.CLASS}
        for value in given:
            if value.kind is ValueKind.CLASSES and isinstance(value.data, tuple):
                found.update(str(name) for name in value.data)
        found.update(self.gold.get(control, {}).values())
        declared = self.classes.get(control, ())
        return (*declared, *reading_order(found - set(declared)))

    @property
    def timed(self) -> bool:
        """Whether the votes carry times."""
        return bool(len(self.votes)) and bool(np.any(self.votes.time != self.votes.time[0]))


def reading_order(names: set[str] | tuple[str, ...]) -> list[str]:
    """Numbers by value, everything else by letters."""
    if all(name.isascii() and name.isdigit() for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)

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

from backend.errors import NoVotes
from backend.formats.errors import FormatError
from backend.formats.unread import Unread
from backend.labeling import LabelConfig
from backend.labeling.written import scale_number
from backend.ports import Progress
from model.data.numbers import number_bins
from model.data.spaces import MultipleChoice, SingleChoice, Space, ValueKind
from model.data.votes import Votes

DEFAULT_CONTROL = "label"


def quiet(fraction: float, note: str) -> None:
    """A `Progress` that nobody looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a reader may be told beside the path."""

    label_config: LabelConfig | None = None  # Label Studio formats: decode by it, as the live project does
    control: str = ""  # flat exports of Label Studio: the column of the answers, where several could be
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
    spaces: Mapping[str, Space] = field(default_factory=dict)  # control -> space, where the source declares it
    unread: Unread = field(default_factory=Unread)  # what the file holds that is no vote
    lead_time_s: NDArray[np.float64] | None = None  # (N,) NaN where unknown; None when nothing is known
    content: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # unit -> task data

    def control(self, name: str = "") -> str:
        """The control that is meant: `name`, or the only one there is. Raises FormatError with those to choose from."""
        known = self.votes.controls or tuple(self.classes) or (DEFAULT_CONTROL,)
        if name:
            if name not in known and name in self.spaces:
                raise NoVotes(f"There are no votes with {name}; there are some with {', '.join(known)}.")
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

    def space(self, control: str) -> Space:
        """The space of a control's answers: the declared one, else what was given with it.

        Raises FormatError where answers are of several kinds, or are texts or rankings.
        """
        declared = self.spaces.get(control)
        if declared is not None:
            return declared
        kinds = self.kinds(control)
        if kinds <= {ValueKind.CLASS}:
            return SingleChoice(self.classes_of(control), ordered=self.ordinal)
        if kinds == {ValueKind.CLASSES}:
            return MultipleChoice(self.classes_of(control))
        mine = self.votes.of_control(control)
        times = np.bincount(mine.value, minlength=len(mine.values)).tolist()
        given = {value: n for value, n in zip(mine.values, times, strict=True) if n}
        bins = number_bins(given) if kinds == {ValueKind.NUMBER} else None
        if bins is None:
            named = " and ".join(sorted(kind.value for kind in kinds))
            raise FormatError(f"The control {control} has answers of kind {named}, which cannot be compared.")
        return bins

    def ordered(self, control: str) -> bool:
        """Whether the classes of a control are known to stand in a meaningful order."""
        space = self.spaces.get(control)
        return self.ordinal if space is None else isinstance(space, SingleChoice) and space.ordered

    def stated_order(self, control: str) -> tuple[str, ...] | None:
        """The classes of a control in an order that somebody stated, or that numbers have; None for other words."""
        space, classes = self.spaces.get(control), self.classes_of(control)
        if space is not None:
            return space.classes
        if all(scale_number(name) is not None for name in classes):
            declared = self.classes.get(control, ())
            return classes if self.ordinal and set(classes) <= set(declared) else tuple(reading_order(classes))
        return classes if set(classes) <= set(self.classes.get(control, ())) else None

    @property
    def timed(self) -> bool:
        """Whether the votes carry times (see `newest` for what are only steps between repeats)."""
        return bool(len(self.votes)) and bool(np.any(np.abs(self.votes.time - self.votes.time[0]) >= 1e-3))


def reading_order(names: set[str] | tuple[str, ...]) -> list[str]:
    """Numbers by value (negative ones and decimals too), everything else by letters."""
    numbers = {name: scale_number(name) for name in names}
    if None in numbers.values():
        return sorted(names)
    return sorted(names, key=lambda name: (numbers[name] or 0.0, name))

"""What is the same for every format after reading: classes that look alike are one class, and no number is no vote.

Every change is told: as a note, or among the reasons for which an answer was not read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from backend.formats.dataset import Dataset
from backend.labeling.written import finite_text, is_no_number, look, look_alikes, spelled
from model.data.spaces import Value, ValueKind
from model.data.votes import Votes


def tidied(dataset: Dataset) -> Dataset:
    """The data set without votes that are no number, and with one name for classes that look alike."""
    return _one_name(_numbers_only(dataset))


def _numbers_only(dataset: Dataset) -> Dataset:
    """NaN and infinities are no votes: as numbers, and as classes among classes that are numbers."""
    votes = dataset.votes
    odd = [_is_odd(value) for value in votes.values]
    if not any(odd):
        return dataset
    strange = np.array(odd, dtype=np.bool_)
    drop = np.zeros(len(votes), dtype=np.bool_)
    for position in range(len(votes.controls)):
        mine = votes.control == position
        others = {i for i in np.unique(votes.value[mine]).tolist() if not odd[i]}
        if all(_is_number(votes.values[i]) for i in others):
            drop |= mine & strange[votes.value]
    if not drop.any():
        return dataset
    dataset.unread.because("NaN or infinite", int(drop.sum()))
    lead_time = dataset.lead_time_s
    return replace(
        dataset, votes=votes.select(~drop), lead_time_s=None if lead_time is None else lead_time[~drop],
    )


def _is_odd(value: Value) -> bool:
    if value.kind is ValueKind.NUMBER:
        return isinstance(value.data, float) and not math.isfinite(value.data)
    return value.kind is ValueKind.CLASS and is_no_number(str(value.data))


def _is_number(value: Value) -> bool:
    return value.kind is ValueKind.NUMBER or (value.kind is ValueKind.CLASS and finite_text(value.data) is not None)


def _one_name(dataset: Dataset) -> Dataset:
    """Classes of a control that look alike under one name; those that are declared stay apart."""
    renamed: dict[str, dict[str, str]] = {}
    for control in dataset.votes.controls:
        names = dataset.classes_of(control)
        groups = look_alikes(names)
        if not groups:
            continue
        declared, times = set(dataset.classes.get(control, ())), _times(dataset.votes, control)
        for group in groups:
            known = [name for name in group if name in declared]
            told = " and ".join(spelled(name) for name in group)
            if len(known) > 1:
                dataset.unread.notes.append(f"Classes of {control} look alike and are told apart: {told}.")
                continue
            kept = (known or sorted(group, key=lambda name: (-times.get(name, 0), name != look(name))))[0]
            renamed.setdefault(control, {}).update((name, kept) for name in group if name != kept)
            dataset.unread.notes.append(
                f"Classes of {control} look alike and are read as one, {spelled(kept)}: {told}.")
    return _renamed(dataset, renamed) if renamed else dataset


def _times(votes: Votes, control: str) -> dict[str, int]:
    mine = votes.of_control(control)
    given = np.bincount(mine.value, minlength=len(votes.values))
    times: dict[str, int] = {}
    for value, n in zip(votes.values, given.tolist(), strict=True):
        for name in _names(value):
            times[name] = times.get(name, 0) + n
    return times


def _names(value: Value) -> Sequence[str]:
    if value.kind is ValueKind.CLASS:
        return (str(value.data),)
    return tuple(map(str, value.data)) if value.kind is ValueKind.CLASSES and isinstance(value.data, tuple) else ()


def _renamed(dataset: Dataset, renamed: Mapping[str, Mapping[str, str]]) -> Dataset:
    votes = dataset.votes
    table = {value: code for code, value in enumerate(votes.values)}
    codes: NDArray[np.int32] = votes.value.copy()
    for control, names in renamed.items():
        mine = votes.control == votes.controls.index(control)
        place = np.arange(len(votes.values), dtype=np.int32)
        for code in np.unique(votes.value[mine]).tolist():
            new = _under(votes.values[code], names)
            place[code] = table.setdefault(new, len(table))
        codes[mine] = place[votes.value[mine]]
    left, compact = np.unique(codes, return_inverse=True)
    values = list(table)
    gold = {
        control: {unit: renamed.get(control, {}).get(label, label) for unit, label in labels.items()}
        for control, labels in dataset.gold.items()
    }
    return replace(dataset, gold=gold, votes=Votes.from_columns(
        units=votes.units, annotators=votes.annotators, controls=votes.controls, values=[values[i] for i in left],
        unit=votes.unit, annotator=votes.annotator, control=votes.control, value=compact, time=votes.time,
        weight=votes.weight, provenance=votes.provenance,
    ))


def _under(value: Value, names: Mapping[str, str]) -> Value:
    if value.kind is ValueKind.CLASS:
        return Value.of_class(names.get(str(value.data), str(value.data)))
    if value.kind is ValueKind.CLASSES:
        return Value.of_classes([names.get(name, name) for name in _names(value)])
    return value

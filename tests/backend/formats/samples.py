"""Small data sets for the tests of formats: unicode, e-mail addresses, gaps, repeats, tasks without votes."""

from __future__ import annotations

import numpy as np

from backend.formats import Dataset
from model.data.spaces import Value
from model.data.votes import Votes

UNITS = ("3", "17", "9001", "tâche, n° 4", "silent")
ANNOTATORS = ("17", "305", "ann@example.com", "Ωmega \"x\"")


def awkward(*, kinds: bool = False, controls: bool = False) -> Dataset:
    """Nominal votes with every fact that a format may keep; with `kinds` sets and numbers as well."""
    values = [Value.of_class("yes"), Value.of_class("no, never"), Value.of_class("ja 😀")]
    if kinds:
        values += [Value.of_classes(["a", "b"]), Value.of_classes([]), Value.of_number(2.5)]
    n = 12
    rng = np.random.default_rng(3)
    votes = Votes.from_columns(
        units=UNITS, annotators=ANNOTATORS, values=values, unit=np.arange(n) % 4, annotator=rng.integers(4, size=n),
        value=np.arange(n) % len(values), controls=("label", "mood") if controls else ("label",),
        control=np.arange(n) % 2 if controls else None, time=1_764_000_000.0 + np.arange(n) * 60.5,
        weight=np.where(np.arange(n) % 3 == 0, 0.5, 1.0),
    )
    return Dataset(
        votes=votes, name="awkward", gold={"label": {"17": "yes", "silent": "no, never"}},
        classes={"label": ("yes", "no, never", "ja 😀")}, lead_time_s=np.where(np.arange(n) % 4 == 0, np.nan, 2.5),
        content={unit: {"text": f"Text of {unit}"} for unit in UNITS},
    )


def plain(dataset: Dataset) -> Dataset:
    """The same without repeats, times, weights and lead times: what the poorest format keeps."""
    votes = dataset.votes
    _, first = np.unique(votes.unit.astype(np.int64) * 1000 + votes.annotator, return_index=True)
    kept = Votes.from_columns(
        units=votes.units, annotators=votes.annotators, values=votes.values, unit=votes.unit[first],
        annotator=votes.annotator[first], value=votes.value[first],
    )
    return Dataset(votes=kept, name=dataset.name, gold=dataset.gold, classes=dataset.classes)


def rows(votes: Votes, *facts: str) -> list[tuple[object, ...]]:
    """Votes as sorted rows of names, with the named columns beside."""
    return sorted(
        (
            votes.units[votes.unit[i]], votes.annotators[votes.annotator[i]], votes.controls[votes.control[i]],
            votes.values[votes.value[i]].kind.value, votes.values[votes.value[i]].to_json(),
            *(round(float(getattr(votes, fact)[i]), 3) for fact in facts),
        )
        for i in range(len(votes))
    )

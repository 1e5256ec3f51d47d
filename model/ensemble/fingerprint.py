"""What a training saw, in the small form in which the next one can tell what has changed.

A digest of the content and the votes of each unit tells which units the last training did not see as they are now,
whenever votes were given: one may be found late, be changed, or go, and a task may show something else. A digest of
each vote and counts tell how much of what a control was fitted on is still there, and whether some part of it has far
more to learn from by now.

Shape legend: U training units, D dim, A annotators, N votes of one control on training units.
Invariants: digests depend on what is told of a vote and on nothing else, neither on its place nor on the process; so
what is loaded from a checkpoint compares as what was saved. Classes are told by their place in the space of their
control: digests of different spaces must not be compared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Dataset, Targets
from model.ensemble.gaps import FEW

Digests = NDArray[np.uint64]
Counts = NDArray[np.int64]
_MATTERS = 5  # votes; fewer say next to nothing beside the pseudo-votes that everything is pulled by


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFingerprint:
    """What one control was fitted on."""

    votes: NDArray[np.uint32]  # (N,) a digest of each vote, when all units were last gone through
    givers: Counts  # (A,) how many of them each annotator gave
    support: Counts  # (6,) votes that its stacks and what they share were last fitted on: see `_support`


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a training saw."""

    units: Digests  # (U,) a digest of the content and the votes of each unit, by the last training
    contents: Digests  # (U,) of the content alone
    controls: dict[str, ControlFingerprint]

    def after(self, earlier: Fingerprint, carried_over: Collection[str]) -> Fingerprint:
        """What counts as seen after a brief training that went on from `earlier` and carried over some controls."""
        return replace(self, controls={
            name: replace(earlier.controls[name], support=(
                earlier if name in carried_over else self).controls[name].support)
            for name in self.controls
        })

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a checkpoint; controls by their place."""
        return {"seen.units": self.units, "seen.contents": self.contents} | {
            f"seen.{index}.{key}": getattr(item, key)
            for index, item in enumerate(self.controls.values()) for key in ControlFingerprint.__slots__
        }


def from_arrays(arrays: Mapping[str, NDArray[Any]], controls: Sequence[str]) -> Fingerprint | None:
    """The inverse of `Fingerprint.arrays`; None for a checkpoint from before there was one. Raises KeyError for half of
    it."""
    if "seen.contents" not in arrays:
        return None
    return Fingerprint(units=arrays["seen.units"], contents=arrays["seen.contents"], controls={
        name: ControlFingerprint(**{key: arrays[f"seen.{index}.{key}"] for key in ControlFingerprint.__slots__})
        for index, name in enumerate(controls)
    })


def fingerprint_of(dataset: Dataset, features: NDArray[np.float32]) -> Fingerprint:
    """What a training of all parts sees of a dataset whose units have these mean tokens, (units, D)."""
    contents = _names([row.tobytes() for row in np.ascontiguousarray(features)])
    units, people = _keys(dataset.units), _keys((*dataset.annotators, ""))  # the last: anonymous
    of_unit, controls = _mixed(contents), {}
    for name in dataset.controls:
        targets = dataset.rows(name, ~dataset.heldout)
        digests = _mixed(units[targets.unit] + _keys((name,)))
        digests = _mixed(digests + people[targets.annotator])
        digests = _mixed(digests + _answers(targets.y))
        digests = _mixed(digests + 2 * _bits(targets.weight) + targets.scored)
        np.add.at(of_unit, targets.unit, digests)  # a sum: order does not matter, and equal votes do not vanish
        controls[name] = ControlFingerprint(
            votes=(digests >> np.uint64(32)).astype(np.uint32), support=_support(targets),
            givers=_by_giver(targets.annotator, len(dataset.annotators)),
        )
    return Fingerprint(units=of_unit[~dataset.heldout], contents=contents[~dataset.heldout], controls=controls)


def changed_units(now: Fingerprint, earlier: Fingerprint, dataset: Dataset) -> Counts:
    """Training units (positions in the dataset) that the earlier training did not see as they are now."""
    return np.flatnonzero(~dataset.heldout)[~np.isin(now.units, earlier.units)]


def mostly_other_contents(now: Fingerprint, earlier: Fingerprint) -> bool:
    """Whether more than half of the contents that the earlier training saw are gone, or shown otherwise."""
    there = np.isin(earlier.contents, now.contents)
    return 2 * int(there.sum()) < len(there)


def much_is_gone(now: Fingerprint, earlier: Fingerprint, dataset: Dataset, most: float) -> bool:
    """Whether of a control's votes, or of those that one annotator gave it, fewer than 1 / `most` are as they were.

    A vote that was changed is gone too. `now` is of `dataset`, in which earlier annotators have their earlier places.
    """
    for name, before in earlier.controls.items():
        giver = dataset.rows(name, ~dataset.heldout).annotator
        there = np.isin(now.controls[name].votes, before.votes)
        left = _by_giver(giver[there], len(before.givers))
        if _shrunk(np.append(before.givers, len(before.votes)), np.append(left, there.sum()), most).any():
            return True
    return False


def as_well_supported(now: Fingerprint, earlier: Fingerprint, most: float) -> set[str]:
    """The controls whose stacks and shared parts have about as much to learn from as when they were fitted."""
    return {
        name for name, before in earlier.controls.items()
        if not _shrunk(before.support, now.controls[name].support, most).any()
        and not _shrunk(now.controls[name].support, before.support, most).any()
    }


def _shrunk(before: Counts, after: Counts, most: float) -> NDArray[np.bool_]:
    """Where counts fell by more than a factor, and by more than next to nothing."""
    return np.asarray((after * most < before) & (before - after >= _MATTERS))


def _support(targets: Targets) -> Counts:
    """(6,): votes, those with one or two of others on their unit and those with more; and of these the scored ones."""
    others = np.bincount(targets.unit)[targets.unit] - 1 if len(targets) else np.zeros(0, np.int64)
    kinds = np.stack([np.ones(len(targets), np.bool_), (others > 0) & (others < FEW), others >= FEW])
    return np.concatenate([kinds.sum(1), (kinds & targets.scored).sum(1)]).astype(np.int64)


def _by_giver(giver: Counts, people: int) -> Counts:
    return np.bincount(giver, minlength=people)[:people].astype(np.int64)


def _keys(names: Sequence[str]) -> Digests:
    return _names([name.encode() for name in names])


def _names(items: Sequence[bytes]) -> Digests:
    """A digest of each item, the same in every process."""
    blob = b"".join(blake2b(item, digest_size=8).digest() for item in items)
    return np.frombuffer(blob, "<u8").astype(np.uint64)


def _answers(y: NDArray[np.float32]) -> Digests:
    """A digest of each row (N, C); only what is not 0 takes memory."""
    row, column = np.nonzero(y)
    found = np.zeros(len(y), np.uint64)
    np.add.at(found, row, _mixed(_bits(y[row, column]) + _mixed(column.astype(np.uint64) + np.uint64(1))))
    return found


def _bits(numbers: NDArray[np.float32]) -> Digests:
    return np.ascontiguousarray(numbers, np.float32).view(np.uint32).astype(np.uint64)


def _mixed(x: Digests) -> Digests:
    """The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): every bit of the outcome depends on every bit of x."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))

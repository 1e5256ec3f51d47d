"""Who agrees with whom: a matrix of the most active annotators of each control, and the map of all controls together.

Shape legend: K chosen annotators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from backend.services.statistics.documents import MOST_IN_MATRIX, AgreementMatrix, Alike, Header
from backend.services.statistics.material import Material
from backend.services.statistics.subject import Subject
from model.quality.agreement_map import agreement_map, by_likeness, pair_counts

ON_MAP = 200  # most active annotators


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where annotators lie on the map of agreement; empty where there is none."""

    of: Mapping[str, tuple[float, float]]
    explained: float | None


def alike(subjects: Sequence[Subject], header: Header) -> Alike:
    """The matrix of each control."""
    return Alike(header=header, controls={subject.name: _matrix(subject) for subject in subjects})


def places(material: Material, subjects: Sequence[Subject]) -> Places:
    """The map of the most active annotators."""
    people = material.given.annotators
    chosen = _most_active(np.bincount(material.given.annotator, minlength=len(people)), ON_MAP)
    common = np.zeros((len(chosen), len(chosen)), np.int64)
    same = np.zeros_like(common)
    for subject in subjects:
        both, equal = pair_counts(subject.answers, chosen)
        common, same = common + both, same + equal
    found = agreement_map(common, same)
    if found is None:
        return Places(of={}, explained=None)
    return Places(explained=found.explained, of={
        people[chosen[at]]: (float(x), float(y)) for at, (x, y) in zip(found.chosen, found.place, strict=True)})


def _matrix(subject: Subject) -> AgreementMatrix:
    votes = np.bincount(subject.votes.annotator, minlength=len(subject.votes.annotators))
    chosen = _most_active(votes, MOST_IN_MATRIX)
    common, same = pair_counts(subject.answers, chosen)
    order = by_likeness(common, same)
    return AgreementMatrix(
        annotators=tuple(subject.votes.annotators[chosen[at]] for at in order),
        common=tuple(map(tuple, common[np.ix_(order, order)].tolist())),
        same=tuple(map(tuple, same[np.ix_(order, order)].tolist())),
        left_out=int((votes > 0).sum()) - len(chosen),
    )


def _most_active(votes: NDArray[np.int64], most: int) -> list[int]:
    """Places of those with the most votes; nobody without any."""
    order = np.argsort(-votes, kind="stable")[:most]
    return [int(at) for at in order if votes[at]]

"""Small simulated crowds, seeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from model.crowd.answers import AnswerMatrix


@dataclass(frozen=True)
class Crowd:
    answers: AnswerMatrix
    truth: NDArray[np.int64]  # (U,)
    confusion: NDArray[np.float64]  # (A, C, C) [annotator, true, given]
    columns: tuple[list[str], list[str], list[str]]  # unit, annotator, label: what the answers were made of


def make_crowd(
    *, units: int = 120, annotators: int = 9, classes: int = 3, per_unit: int = 5, seed: int = 0, good: float = 6.0
) -> Crowd:
    """Independent confusion matrices, Dirichlet rows with `good` extra on the diagonal."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=units)
    confusion = np.stack([[rng.dirichlet(np.ones(classes) + good * np.eye(classes)[k]) for k in range(classes)]
                          for _ in range(annotators)])
    unit = np.repeat(np.arange(units), per_unit)
    annotator = rng.permuted(np.tile(np.arange(annotators), (units, 1)), axis=1)[:, :per_unit].ravel()
    steps = confusion.cumsum(axis=2)[annotator, truth[unit]]  # (N, C)
    label = np.minimum((rng.random((len(unit), 1)) > steps).sum(axis=1), classes - 1)
    order = rng.permutation(len(unit))
    columns = (
        [f"t{u:04d}" for u in unit[order]], [f"p{a:02d}@example.org" for a in annotator[order]],
        [f"c{k}" for k in label[order]],
    )
    answers = AnswerMatrix.from_columns(
        *columns, classes=[f"c{k}" for k in range(classes)], all_units=[f"t{u:04d}" for u in range(units)],
        all_annotators=[f"p{a:02d}@example.org" for a in range(annotators)],
    )
    return Crowd(answers, truth, confusion, columns)


@pytest.fixture(scope="session")
def crowd() -> Callable[..., Crowd]:
    return make_crowd

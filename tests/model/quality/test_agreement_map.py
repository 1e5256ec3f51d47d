"""Who agrees with whom: counts against a loop over pairs, order and map against crowds whose groups are known."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.quality.agreement_map import COMMON, agreement_map, by_likeness, pair_counts


def crowd(groups, tasks=60, seed=0, skip=0.0):
    """Two ways to read, and a little noise; `groups` says which way each annotator reads."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(3, size=tasks), rng.integers(3, size=tasks)
    rows = []
    for who, group in enumerate(groups):
        for task in range(tasks):
            if rng.random() >= skip:
                said = (first, second)[group][task] if rng.random() > 0.1 else rng.integers(3)
                rows.append((str(task), f"a{who}", str(said)))
    return AnswerMatrix.from_columns(*zip(*rows, strict=True))


def test_counts_are_those_of_a_loop():
    answers = crowd([0, 1, 0, 1], tasks=20, skip=0.3)
    chosen = [3, 0, 2]
    common, same = pair_counts(answers, chosen)
    said = {(answers.units[u], a): label
            for u, a, label in zip(answers.unit, answers.annotator, answers.label, strict=True)}
    for i, one in enumerate(chosen):
        for j, other in enumerate(chosen):
            both = [unit for unit in answers.units if (unit, one) in said and (unit, other) in said]
            assert common[i, j] == len(both)
            assert same[i, j] == sum(said[unit, one] == said[unit, other] for unit in both)


def test_those_who_agree_stand_together():
    groups = [0, 1, 0, 1, 1, 0]
    order = by_likeness(*pair_counts(crowd(groups), range(6)))
    assert sorted(order) == list(range(6))
    assert [groups[at] for at in order] in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


def test_the_map_parts_the_groups():
    groups = np.array([0, 1, 0, 1, 1, 0])
    found = agreement_map(*pair_counts(crowd(groups), range(6)))
    assert found is not None and found.chosen.tolist() == list(range(6))
    x = found.place[:, 0]
    assert abs(x[groups == 0].mean() - x[groups == 1].mean()) > 3 * max(x[groups == 0].std(), x[groups == 1].std())
    assert 0.5 <= found.explained <= 1


def test_distances_of_a_plane_come_back():
    """Classical scaling is exact where the distances are those of points in a plane."""
    rng = np.random.default_rng(1)
    points = rng.random((6, 2)) * 0.6
    gap = np.linalg.norm(points[:, None] - points[None], axis=2)
    common = np.full((6, 6), 10**6)
    found = agreement_map(common, np.rint((1 - gap) * common).astype(np.int64))
    assert found is not None and found.explained == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(found.place[:, None] - found.place[None], axis=2) == pytest.approx(gap, abs=1e-4)


def test_whoever_shares_too_few_tasks_is_left_off():
    common, same = pair_counts(crowd([0, 1, 0, 1, 1, 0]), range(6))
    common[5, :5] = common[:5, 5] = COMMON - 1
    found = agreement_map(common, np.minimum(same, common))
    assert found is not None and found.chosen.tolist() == [0, 1, 2, 3, 4]


def test_noise_is_no_map_and_neither_are_few_people():
    rng = np.random.default_rng(2)
    upper = np.triu(rng.integers(20, 30, (30, 30)), 1)
    assert agreement_map(np.full((30, 30), 60), upper + upper.T + np.eye(30, dtype=np.int64) * 60) is None
    assert agreement_map(*pair_counts(crowd([0, 1, 0]), range(3))) is None
    assert agreement_map(np.zeros((0, 0), np.int64), np.zeros((0, 0), np.int64)) is None

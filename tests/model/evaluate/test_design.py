"""Splits never leak, removal only removes, and of every unit something stays hidden."""

from __future__ import annotations

import numpy as np
import pytest

from model.errors import ModelError
from model.evaluate.design import Setting, fold_of_votes, kept, shown


def test_folds_are_balanced_by_task_and_other_seeds_split_otherwise(problem):
    fold = fold_of_votes(problem, 5, 0)
    sides = {(task, where) for task, where in zip(problem.task, fold, strict=True)}
    assert len(sides) == problem.task.max() + 1  # a task is on one side
    size = np.bincount([where for _, where in sides])
    assert size.max() - size.min() <= 1
    assert np.array_equal(fold, fold_of_votes(problem, 5, 0))
    assert not np.array_equal(fold, fold_of_votes(problem, 5, 1))


@pytest.mark.parametrize("folds", [1, 1000])
def test_impossible_folds_are_refused(problem, folds):
    with pytest.raises(ModelError, match="cannot be split"):
        fold_of_votes(problem, folds, 0)


def test_removal_is_nested_and_touches_training_votes_only(problem):
    training = fold_of_votes(problem, 5, 0) != 0
    left = [kept(problem, training, drop, seed=0, fold=0) for drop in (0.0, 0.4, 0.8)]
    assert np.array_equal(left[0], training)
    assert (left[1] <= left[0]).all() and (left[2] <= left[1]).all()
    assert left[2].sum() == training.sum() - round(training.sum() * 0.8)


def test_about_half_is_shown_and_never_everything(problem):
    test = fold_of_votes(problem, 2, 0) == 0
    seen = shown(problem, test, 0.5, seed=0, fold=0)
    assert (seen <= test).all()
    units = problem.votes.unit[test]
    votes, visible = np.bincount(units), np.bincount(problem.votes.unit[seen], minlength=units.max() + 1)
    assert (visible[votes > 0] < votes[votes > 0]).all()
    assert abs(seen.sum() / test.sum() - 0.5) < 0.06
    assert not shown(problem, test, 0.0, seed=0, fold=0).any()


def test_settings_have_names():
    shares = ((0.0, 0.0), (0.5, 0.0), (0.25, 0.0), (0.0, 0.4), (0.5, 0.6))
    assert [Setting(visible=visible, drop=drop).name for visible, drop in shares] == [
        "unseen", "half-visible", "visible-25", "drop-40", "half-visible+drop-60"]
    with pytest.raises(ModelError):
        Setting(drop=1.0)

"""Figures against plain computation, vote by vote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.data.metrics import calibration_error
from model.evaluate.bootstrap import task_draws
from model.evaluate.measures import (
    Agreed,
    Predicted,
    consensus_figures,
    full_majority,
    kappa_distances,
    vote_figures,
    voted_consensus,
)


def predicted(problem, seed=0, sharp=1.0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(len(problem.space.classes)), len(problem.votes)) ** sharp
    rows = np.arange(len(problem.votes))
    return Predicted(row=rows, seed=np.zeros(len(rows), np.int64), p=p / p.sum(1, keepdims=True))


def plain_f1(given, said, classes):
    """Macro and weighted F1, one class after the other."""
    scores, support = [], []
    for c in range(classes):
        true, positive = given == c, said == c
        if true.any() or positive.any():
            scores.append(2 * (true & positive).sum() / (true.sum() + positive.sum()))
            support.append(true.sum())
    return np.mean(scores), np.average(scores, weights=support)


def test_figures_of_votes_and_means_of_annotators(problem):
    problem, draws = replace(problem, ordinal=True), task_draws(80, 20)
    found = predicted(problem)
    figures = vote_figures(problem, found, draws)
    given, said, who = problem.y.argmax(1), found.p.argmax(1), problem.votes.annotator
    loss = -np.log(found.p[np.arange(len(given)), given])
    assert np.isclose(figures["accuracy"][0], (given == said).mean())
    assert np.isclose(figures["log_loss"][0], loss.mean())
    assert np.isclose(figures["brier"][0], np.square(found.p - problem.y).sum(1).mean())
    assert np.isclose(figures["mae"][0], np.abs(given - said).mean())
    assert np.isclose(figures["ece"][0], calibration_error(problem.space, found.p, problem.y))
    assert np.isclose(figures["macro_f1"][0], plain_f1(given, said, 3)[0])
    each = [(who == a) for a in range(len(problem.votes.annotators))]
    assert np.isclose(figures["accuracy_annotators"][0], np.mean([(given == said)[m].mean() for m in each]))
    assert np.isclose(figures["log_loss_annotators"][0], np.mean([loss[m].mean() for m in each]))
    f1 = [plain_f1(given[m], said[m], 3) for m in each]
    assert np.isclose(figures["macro_f1_annotators"][0], np.mean([macro for macro, _ in f1]))
    assert np.isclose(figures["weighted_f1_annotators"][0], np.mean([weighted for _, weighted in f1]))
    taken = draws[1][problem.task]  # a draw is the same with tasks repeated
    assert np.isclose(figures["log_loss"][1], np.average(loss, weights=taken))


def test_sets_of_classes_are_scored_class_by_class(several):
    rng = np.random.default_rng(0)
    rows = np.arange(len(several.votes))
    p = rng.random((len(rows), 3))
    figures = vote_figures(several, Predicted(row=rows, seed=np.zeros_like(rows), p=p), task_draws(60, 5))
    assert np.isclose(figures["accuracy"][0], ((p >= 0.5) == (several.y > 0.5)).all(1).mean())
    f1 = [2 * (t & s).sum() / (t.sum() + s.sum()) for t, s in zip((several.y > 0.5).T, (p >= 0.5).T, strict=True)]
    assert np.isclose(figures["macro_f1"][0], np.mean(f1))


def test_perfect_predictions_leave_no_distance_between_kappas(problem):
    rows = np.arange(len(problem.votes))
    truth = Predicted(row=rows, seed=np.zeros_like(rows), p=problem.y.astype(np.float64))
    found = kappa_distances(problem, truth)
    assert found["dic"].mean == 0.0 and found["add"].mean == 0.0
    assert kappa_distances(problem, predicted(problem))["add"].mean > 0.05


def test_consensus_by_vote_counts_shown_votes_as_given(problem):
    rows, found = np.arange(len(problem.votes)), predicted(problem, seed=1)
    everything = voted_consensus(problem, found, np.ones(len(rows), np.bool_))
    majority = full_majority(problem)
    assert majority[everything.unit, everything.p.argmax(1)].all()  # all votes shown: it is the majority
    nothing = voted_consensus(problem, found, np.zeros(len(rows), np.bool_))
    figures = consensus_figures(problem, nothing, everything, task_draws(80, 5))
    assert figures["consensus"][0] == 1.0 and figures["copr"][0] < 1.0
    assert "copr_gold" not in figures


def test_consensus_against_gold_where_there_is_any(problem):
    units = problem.votes.units[:4]
    known = replace(problem, gold=dict.fromkeys(units, "b"))
    agreed = Agreed(unit=np.arange(len(problem.votes.units)), p=np.tile([0.0, 1.0, 0.0], (len(problem.votes.units), 1)))
    figures = consensus_figures(known, agreed, None, task_draws(80, 5))
    assert figures["copr_gold"][0] == 1.0
    assert figures["copr"][0] == pytest.approx(full_majority(problem)[:, 1].mean())

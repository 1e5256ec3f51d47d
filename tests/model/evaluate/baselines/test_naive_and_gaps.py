"""Every simple baseline keeps the contract, and each does what it is there for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model.data.spaces import SingleChoice, Value, ValueKind
from model.data.votes import Vote, Votes
from model.evaluate.baselines.factors import FactorModel
from model.evaluate.baselines.gaps import DawidSkeneGaps, VisibleMajority
from model.evaluate.baselines.naive import AnnotatorPrior, PooledBias, PooledContent
from model.evaluate.harness import make_fold
from model.evaluate.problem import make_problem

SIMPLE = (
    AnnotatorPrior(), PooledContent(), PooledBias(), VisibleMajority(), DawidSkeneGaps(),
    FactorModel(precisions=(3.0,)),
)


def by_name(baseline):
    return baseline.name


def halves(problem):
    """A fold of the first units, and votes and names of the others."""
    train = problem.votes.unit % 4 != 0
    units = [problem.votes.units[index] for index in np.unique(problem.votes.unit[~train])]
    return make_fold(problem, train, 0, "cpu"), problem.votes.select(~train), units


@pytest.mark.parametrize("kind", ["problem", "several"])
@pytest.mark.parametrize("baseline", SIMPLE, ids=by_name)
def test_probabilities_for_everybody(baseline, kind, request):
    problem = request.getfixturevalue(kind)
    fold, visible, units = halves(problem)
    fitted = baseline.fit(fold)
    for seen in (None, visible):
        p = fitted.predict(units, visible=seen)
        assert p.shape == (len(units), len(fold.annotators), len(problem.space.classes))
        assert np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()
        if problem.space.kind is ValueKind.CLASS:
            assert np.allclose(p.sum(-1), 1.0)


@pytest.mark.parametrize("baseline", SIMPLE, ids=by_name)
def test_own_visible_vote_is_ignored_and_the_others_are_read(baseline, problem):
    fold, visible, units = halves(problem)
    fitted = baseline.fit(fold)
    row = 0
    turned = visible.value.copy()
    turned[row] = (turned[row] + 1) % len(visible.values)
    before = fitted.predict(units, visible=visible)
    after = fitted.predict(units, visible=replace(visible, value=turned))
    unit = units.index(visible.units[visible.unit[row]])
    own = fold.annotators.index(visible.annotators[visible.annotator[row]])
    others = [a for a in range(len(fold.annotators)) if a != own]
    assert np.allclose(before[unit, own], after[unit, own], atol=1e-9)
    moved = np.abs(before[unit, others] - after[unit, others]).max() > 1e-3
    assert moved == baseline.uses_visible
    assert np.allclose(np.delete(before, unit, 0), np.delete(after, unit, 0), atol=1e-9)


@pytest.mark.parametrize("baseline", SIMPLE, ids=by_name)
def test_order_of_votes_changes_nothing(baseline, problem):
    fold, visible, units = halves(problem)
    rng = np.random.default_rng(0)
    mixed = replace(fold, votes=fold.votes.select(rng.permutation(len(fold.votes))))
    one = baseline.fit(fold).predict(units, visible=visible)
    other = baseline.fit(mixed).predict(units, visible=visible.select(rng.permutation(len(visible))))
    assert np.allclose(one, other, atol=2e-3)  # an optimiser may stop a hair earlier


def test_penalty_is_tuned_and_bias_tells_annotators_apart(problem):
    fold, _, units = halves(problem)
    pooled = PooledContent().fit(fold).predict(units, visible=None)
    biased = PooledBias().fit(fold).predict(units, visible=None)
    assert np.allclose(pooled, pooled[:, :1]) and not np.allclose(biased, biased[:, :1], atol=0.05)


def test_majority_counts_the_others(problem):
    fold, _, units = halves(problem)
    unit, (first, second, third) = units[0], fold.annotators[:3]
    visible = Votes.from_votes([
        Vote(unit=unit, annotator=first, control="label", value=Value.of_class("a")),
        Vote(unit=unit, annotator=second, control="label", value=Value.of_class("b"))])
    p = VisibleMajority().fit(fold).predict([unit], visible=visible)[0]
    share = VisibleMajority().fit(fold).predict([unit], visible=None)[0, 0]
    assert np.allclose(p[0], (share + np.eye(3)[1]) / 2) and np.allclose(p[1], (share + np.eye(3)[0]) / 2)
    assert np.allclose(p[fold.annotators.index(third)], (share + np.eye(3)[:2].sum(0)) / 3)


def test_dawid_skene_reads_an_inverter_the_other_way_round():
    rng = np.random.default_rng(0)
    truth = rng.random(200) < 0.5
    space, rows = SingleChoice(("no", "yes")), []
    for at, yes in enumerate(truth):
        for who in range(4):
            says = yes if rng.random() < 0.9 else not yes
            rows.append(Vote(unit=f"t{at}", annotator=f"a{who}", control="label",
                             value=Value.of_class("yes" if says != (who == 3) else "no")))
    votes = Votes.from_votes(rows)
    made = make_problem("x", votes, "label", space, lambda units: [np.ones((1, 2), np.float16)] * len(units))
    fitted = DawidSkeneGaps().fit(make_fold(made, np.ones(len(made.votes), np.bool_), 0, "cpu"))
    visible = Votes.from_votes([Vote(unit="new", annotator="a3", control="label", value=Value.of_class("no"))])
    p = fitted.predict(["new"], visible=visible)[0]
    assert p[0, 1] > 0.7 and p[3, 1] < 0.6  # others will say yes; the inverter's own no is not evidence for them
    visible = Votes.from_votes([Vote(unit="new", annotator="a0", control="label", value=Value.of_class("yes"))])
    assert fitted.predict(["new"], visible=visible)[0, 3, 1] < 0.3


def test_factors_use_visible_votes_where_annotators_have_tastes(problem):
    """What two of a kind said tells about the third."""
    fold, visible, units = halves(problem)
    fitted = FactorModel(precisions=(1.0, 3.0)).fit(fold)
    at = [units.index(visible.units[u]) for u in visible.unit], visible.annotator
    y = problem.y[problem.votes.unit % 4 == 0]
    loss = {
        name: float(-np.log((fitted.predict(units, visible=seen)[at] * y).sum(1)).mean())
        for name, seen in (("unseen", None), ("others", visible))
    }
    assert loss["others"] < loss["unseen"] - 0.01

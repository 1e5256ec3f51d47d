"""Problems at the edge run like any other: everybody gives probabilities, and figures come out finite."""

from __future__ import annotations

import numpy as np
import pytest

from model.config import LadderConfig, NetworkConfig
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.errors import ModelError, NotEnoughVotes
from model.evaluate.baselines.factors import FactorModel
from model.evaluate.baselines.gaps import DawidSkeneGaps, VisibleMajority
from model.evaluate.baselines.naive import AnnotatorPrior, PooledBias, PooledContent
from model.evaluate.cells import CellStore
from model.evaluate.contenders import FromBaseline
from model.evaluate.design import Setting
from model.evaluate.harness import Plan, run
from model.evaluate.ours import Ours
from model.evaluate.problem import make_problem
from model.evaluate.summary import standings, to_json

SIMPLE = (AnnotatorPrior(), PooledContent(), PooledBias(), VisibleMajority(), DawidSkeneGaps(), FactorModel())
CASES = {
    "one annotator": [(f"t{n}", "a", "yes" if n % 3 else "no") for n in range(12)],
    "all votes equal": [(f"t{n}", who, "yes") for n in range(8) for who in "ab"],
    "one vote each": [(f"t{n}", f"a{n}", "yes" if n % 2 else "no") for n in range(8)],
    "a class in one task only": [(f"t{n}", who, "maybe" if n == 0 else "yes") for n in range(8) for who in "ab"],
    "no overlap": [(f"t{n}", "a" if n < 6 else "b", "yes" if n % 2 else "no") for n in range(12)],
}
QUICK = LadderConfig(folds=2, members_per_fold=1, network=NetworkConfig(width=16, blocks=1, epochs=2))


def _problem(rows, classes=("maybe", "no", "yes"), broken=None):
    rng = np.random.default_rng(0)
    votes = Votes.from_votes(
        Vote(unit=unit, annotator=who, control="label", value=Value.of_class(label)) for unit, who, label in rows)
    tokens = {unit: rng.standard_normal((2, 4)).astype(np.float16) for unit in votes.units}
    if broken is not None:
        tokens[broken][1, 2] = np.nan
    return make_problem(
        "hard", votes, "label", SingleChoice(classes), lambda units: [tokens[unit] for unit in units], ordinal=True)


def _run(problem, folder, *some):
    store = CellStore(folder, fingerprint=problem.fingerprint, folds=2)
    plan = Plan(contenders=some, settings=(Setting(), Setting(visible=0.5)), folds=2)
    run(problem, plan, store, lambda fraction, note: None)
    return to_json(standings(problem, store, 2), some[-1].models[0])["results"]


@pytest.mark.parametrize("case", CASES)
def test_runs(case, tmp_path):
    problem = _problem(CASES[case], ("yes",) if case == "all votes equal" else ("maybe", "no", "yes"))
    results = _run(problem, tmp_path, *(FromBaseline(baseline=baseline) for baseline in SIMPLE))
    known = [row for row in results if row["metric"] in ("accuracy", "log_loss", "brier", "ece")]
    alone = case in ("one annotator", "one vote each", "no overlap")  # nothing is visible, so everything is scored
    assert {row["setting"] for row in known} == {"unseen", "half-visible"}
    assert all(row["mean"] is not None for row in known if alone or row["setting"] == "unseen")
    if case == "all votes equal":
        assert all(row["mean"] == 1.0 for row in known if row["metric"] == "accuracy")


def test_ours_with_a_class_in_the_test_fold_only(tmp_path):
    results = _run(_problem(CASES["a class in one task only"]), tmp_path, Ours(config=QUICK))
    losses = [row["mean"] for row in results if row["metric"] == "log_loss"]
    assert len(losses) == 4 and np.isfinite(losses).all()  # served and network, unseen and half-visible


@pytest.mark.parametrize("contender", [Ours(config=QUICK), FromBaseline(baseline=PooledContent())],
                         ids=lambda each: each.models[0])
def test_features_with_nan_are_named(contender, tmp_path):
    with pytest.raises(ModelError, match="the features of unit t3 contain NaN"):
        _run(_problem(CASES["no overlap"], broken="t3"), tmp_path, contender)


def test_one_task_is_too_few():
    with pytest.raises(NotEnoughVotes, match="at least two tasks"):
        _problem([("t0", who, "yes") for who in "abc"])


def test_a_vote_given_twice_is_one_vote():
    once = CASES["no overlap"]
    assert _problem([row for row in once for _ in range(2)]).fingerprint == _problem(once).fingerprint

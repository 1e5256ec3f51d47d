"""Problems at the edge run like any other: everybody gives probabilities, and figures come out finite."""

from __future__ import annotations

import numpy as np
import pytest

from model.evaluate.baselines.factors import FactorModel
from model.evaluate.baselines.gaps import DawidSkeneGaps, VisibleMajority
from model.evaluate.baselines.naive import AnnotatorPrior, PooledBias, PooledContent
from model.evaluate.cells import CellStore
from model.evaluate.contenders import FromBaseline
from model.evaluate.design import Setting
from model.evaluate.harness import Plan, run
from model.evaluate.problem import make_problem
from model.evaluate.summary import standings, to_json
from model.spaces import SingleChoice, Value
from model.votes import Vote, Votes

SIMPLE = (AnnotatorPrior(), PooledContent(), PooledBias(), VisibleMajority(), DawidSkeneGaps(), FactorModel())
CASES = {
    "one annotator": [(f"t{n}", "a", "yes" if n % 3 else "no") for n in range(12)],
    "all votes equal": [(f"t{n}", who, "yes") for n in range(8) for who in "ab"],
    "one vote each": [(f"t{n}", f"a{n}", "yes" if n % 2 else "no") for n in range(8)],
    "a class in one task only": [(f"t{n}", who, "maybe" if n == 0 else "yes") for n in range(8) for who in "ab"],
    "no overlap": [(f"t{n}", "a" if n < 6 else "b", "yes" if n % 2 else "no") for n in range(12)],
}


@pytest.mark.parametrize("case", CASES)
def test_runs(case, tmp_path):
    rng = np.random.default_rng(0)
    votes = Votes.from_votes(
        Vote(unit=unit, annotator=who, control="label", value=Value.of_class(label))
        for unit, who, label in CASES[case])
    tokens = {unit: rng.standard_normal((2, 4)).astype(np.float16) for unit in votes.units}
    classes = ("yes",) if case == "all votes equal" else ("maybe", "no", "yes")
    problem = make_problem(
        case, votes, "label", SingleChoice(classes), lambda units: [tokens[unit] for unit in units], ordinal=True)
    store = CellStore(tmp_path, fingerprint=problem.fingerprint, folds=2)
    contenders = [FromBaseline(baseline=baseline) for baseline in SIMPLE]
    plan = Plan(contenders=contenders, settings=(Setting(), Setting(visible=0.5)), folds=2)
    run(problem, plan, store, lambda fraction, note: None)
    results = to_json(standings(problem, store, 2), "pooled-bias")
    known = [row for row in results["results"] if row["metric"] in ("accuracy", "log_loss", "brier", "ece")]
    alone = case in ("one annotator", "one vote each", "no overlap")  # nothing is visible, so everything is scored
    assert {row["setting"] for row in known} == {"unseen", "half-visible"}
    assert all(row["mean"] is not None for row in known if alone or row["setting"] == "unseen")
    if case == "all votes equal":
        assert all(row["mean"] == 1.0 for row in known if row["metric"] == "accuracy")

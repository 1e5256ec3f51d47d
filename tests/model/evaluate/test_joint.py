"""Several controls evaluated together: one split for all of them, and only votes that may be seen reach the fit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.errors import NotEnoughVotes
from model.evaluate import joint
from model.evaluate.baselines.naive import AnnotatorPrior
from model.evaluate.cells import CellStore
from model.evaluate.contenders import FromBaseline
from model.evaluate.design import Setting, fold_of_votes
from model.evaluate.harness import Plan
from model.evaluate.ours import Ours
from model.evaluate.problem import make_problem
from model.evaluate.summary import standings

SPACE = SingleChoice(("low", "high"), ordered=True)
PRIOR = FromBaseline(baseline=AnnotatorPrior())


def one(control: str, tasks: range, seed: int) -> object:
    rng = np.random.default_rng(seed)
    votes = Votes.from_votes(
        Vote(unit=f"t{task:02}", annotator=who, control=control, value=Value.of_class(SPACE.classes[rng.integers(2)]))
        for task in tasks for who in "abc"
    )
    return make_problem("walks", votes, control, SPACE, lambda units: [np.ones((1, 3), np.float16)] * len(units))


@pytest.fixture(scope="module")
def problems():
    return joint.joined({"calm": one("calm", range(30), 1), "green": one("green", range(10, 40), 2)}, 3, 1)


class Witness:
    """Stands for a fit: keeps what it was given, and answers a coin for everybody."""

    def __init__(self) -> None:
        self.trained, self.given = [], []

    def fit(self, data, config, *, device):
        self.trained.append(data.votes)
        assert sorted(data.spaces) == ["calm", "green"]
        figures = {name: {"weights": {"network": 1.0}} for name in data.spaces}
        return SimpleNamespace(ladder=self, figures={"controls": figures, "epochs": 1})

    def predict(self, tokens, annotators, *, units, given, texts):
        self.given.append((set(units), given))
        p = np.full((len(units), len(annotators), 2), 0.5)
        return {name: SimpleNamespace(served=p, network=p, consensus=p[:, 0]) for name in ("calm", "green")}


@pytest.fixture
def ran(problems, tmp_path, monkeypatch):
    witness, ours = Witness(), Ours()
    monkeypatch.setattr(joint, "fit", witness.fit)
    plan = Plan(contenders=[ours, PRIOR], settings=(Setting(), Setting(visible=0.5)), folds=3)
    stores = {name: CellStore(tmp_path / name, fingerprint=problem.fingerprint, folds=3)
              for name, problem in problems.items()}
    fits = joint.run_jointly(problems, plan, ours, stores, lambda share, note: None)
    again = joint.run_jointly(problems, plan, ours, stores, lambda share, note: None)
    tables = {name: standings(problem, stores[name], 3) for name, problem in problems.items()}
    return SimpleNamespace(witness=witness, fits=fits, again=again, tables=tables)


def test_no_control_is_trained_on_the_tasks_that_another_is_tested_on(problems, ran):
    fold = {name: fold_of_votes(problem, 3, 0) for name, problem in problems.items()}
    tested = [{problem.votes.units[u] for name, problem in problems.items()
               for u in problem.votes.unit[fold[name] == at]} for at in range(3)]
    assert sum(map(len, tested)) == 40  # every task is tested once, whichever controls it has votes on
    for at, votes in enumerate(ran.witness.trained):
        seen = {votes.units[u] for u in votes.unit}
        assert not seen & tested[at] and len(seen) == 40 - len(tested[at])
        assert {votes.controls[c] for c in votes.control} == {"calm", "green"}


def test_visible_votes_of_all_controls_are_shown_and_never_score(problems, ran):
    shown = [given for _, given in ran.witness.given if given is not None]
    assert len(shown) == 6 and len(ran.witness.given) == 12  # 3 folds x 2 controls, in each of two settings
    assert {votes.controls[c] for votes in shown for c in votes.control} == {"calm", "green"}
    for name, table in ran.tables.items():
        for cell in table.cells["served", "half-visible"][0]:
            votes, rows = problems[name].votes, cell.rows[cell.shown]
            given = shown[2 * cell.key.fold]
            told = {(given.units[u], given.annotators[a]) for u, a, c in
                    zip(given.unit, given.annotator, given.control, strict=True) if given.controls[c] == name}
            assert told == {(votes.units[votes.unit[r]], votes.annotators[votes.annotator[r]]) for r in rows}


def test_baselines_run_control_by_control_and_nothing_runs_twice(ran):
    assert (ran.fits, ran.again) == (3 + 2 * 3, 0)


def test_the_mean_counts_controls_alike_and_pairs_their_draws(ran):
    mean = joint.mean_json(ran.tables, "served")
    (row,) = (row for row in mean["results"] if (row["model"], row["setting"], row["metric"])
              == ("annotator-prior", "unseen", "log_loss"))
    each = [table.figures("annotator-prior", "unseen", (0,))["log_loss"] for table in ran.tables.values()]
    assert row["mean"] == pytest.approx((each[0][0] + each[1][0]) / 2)
    assert row["low"] == pytest.approx(np.quantile((each[0] + each[1])[1:] / 2, 0.025))
    (gap,) = (row for row in mean["differences"] if (row["setting"], row["metric"]) == ("unseen", "log_loss")
              and row["against"] == "annotator-prior")
    assert gap["mean"] == pytest.approx(np.log(2) - row["mean"], abs=1e-6)
    assert mean["tasks"] == 40 and mean["votes"] == 180


def test_votes_put_together_are_the_same_votes(problems):
    parts = [problem.votes for problem in problems.values()]
    rows = [Vote(unit=v.units[u], annotator=v.annotators[a], control=v.controls[c], value=v.values[x])
            for v in parts for u, a, c, x in zip(v.unit, v.annotator, v.control, v.value, strict=True)]
    found, wanted = joint.together(parts), Votes.from_votes(rows)
    for name in ("units", "annotators", "controls", "values"):
        assert getattr(found, name) == getattr(wanted, name)
    for name in ("unit", "annotator", "control", "value", "weight", "scored"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))


def test_a_control_that_some_fold_would_not_test_is_refused():
    few = {"calm": one("calm", range(30), 1), "green": one("green", range(2), 2)}
    with pytest.raises(NotEnoughVotes, match="green has votes on too few tasks for 3 folds"):
        joint.joined(few, 3, 1)


def test_common_tasks_and_order_make_another_problem(problems):
    alone = one("calm", range(30), 1)
    assert alone.fingerprint != problems["calm"].fingerprint
    assert alone.fingerprint != replace(alone, space=SingleChoice(SPACE.classes)).fingerprint

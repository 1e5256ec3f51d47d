"""The harness from votes to results: nothing leaks, runs go on, everybody is scored on the same votes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

from model.errors import ModelError
from model.evaluate.baselines import BASELINES
from model.evaluate.baselines.gaps import VisibleMajority
from model.evaluate.baselines.naive import AnnotatorPrior
from model.evaluate.cells import CellStore
from model.evaluate.contenders import Answers, FromBaseline, contenders
from model.evaluate.design import Setting, fold_of_votes
from model.evaluate.harness import Plan, jobs, run
from model.evaluate.ours import Ours
from model.evaluate.report import markdown
from model.evaluate.summary import standings, to_json

PRIOR, MAJORITY = FromBaseline(baseline=AnnotatorPrior()), FromBaseline(baseline=VisibleMajority())
SETTINGS = (Setting(), Setting(visible=0.5), Setting(drop=0.4))


def quiet(fraction, note):
    pass


def evaluated(problem, plan, folder):
    store = CellStore(folder, fingerprint=problem.fingerprint, folds=plan.folds)
    run(problem, plan, store, quiet)
    return standings(problem, store, plan.folds)


@dataclass(frozen=True, kw_only=True)
class Nosy:
    """Looks at everything it is given, and reports votes that it must not see."""

    problem: object
    models: tuple = ("nosy",)
    uses_visible: bool = True
    needs_visible: bool = False
    fits: list = None

    notes = {}  # noqa: RUF012

    def fit(self, fold):
        self.fits.append({(fold.votes.units[u], fold.votes.annotators[a])
                          for u, a in zip(fold.votes.unit, fold.votes.annotator, strict=True)})
        return self

    def answer(self, units, visible):
        if visible is not None:
            assert {visible.units[u] for u in visible.unit} <= set(units)
        return Answers(p={"nosy": np.full((len(units), len(self.problem.votes.annotators), 3), 1 / 3)})


def test_no_vote_that_scores_is_ever_seen(problem, tmp_path):
    nosy = Nosy(problem=problem, fits=[])
    plan = Plan(contenders=[nosy], settings=SETTINGS, folds=3)
    found = evaluated(problem, plan, tmp_path)
    fold = fold_of_votes(problem, 3, 0)
    every = {(problem.votes.units[u], problem.votes.annotators[a]): f
             for u, a, f in zip(problem.votes.unit, problem.votes.annotator, fold, strict=True)}
    for at, seen in enumerate(nosy.fits):  # 3 folds without removal, 3 with
        assert all(every[pair] != at % 3 for pair in seen)
        assert len(seen) == round(sum(f != at % 3 for f in every.values()) * (1.0 if at < 3 else 0.6))
    cells = [cell for seeds in found.cells.values() for folds in seeds.values() for cell in folds]
    for cell in cells:
        assert (fold[cell.rows] == cell.key.fold).all() and len(cell.rows) == (fold == cell.key.fold).sum()
        assert cell.shown.any() == (cell.key.setting == "half-visible")


@dataclass(frozen=True, kw_only=True)
class Parrot:
    """Gives back the votes that it is shown to who gave them, and knows nothing else."""

    problem: object
    models: tuple = ("parrot",)
    uses_visible: bool = True
    needs_visible: bool = True

    notes = {}  # noqa: RUF012

    def fit(self, fold):
        return self

    def answer(self, units, visible):
        p = np.full((len(units), len(self.problem.votes.annotators), 3), 1 / 3)
        for unit, annotator, value in zip(visible.unit, visible.annotator, visible.value, strict=True):
            label = self.problem.space.classes.index(visible.values[value].data)
            p[units.index(visible.units[unit]), annotator] = np.eye(3)[label]
        return Answers(p={"parrot": p})


def test_votes_that_were_shown_do_not_score(problem, tmp_path):
    found = evaluated(problem, Plan(contenders=[Parrot(problem=problem)], settings=SETTINGS[1:2], folds=3), tmp_path)
    figures = found.figures("parrot", "half-visible", (0,))
    assert figures["log_loss"][0] == pytest.approx(np.log(3), abs=1e-6)


def test_a_stopped_run_goes_on_and_adds_nothing_twice(problem, tmp_path):
    store = CellStore(tmp_path, fingerprint=problem.fingerprint, folds=3)
    plan = Plan(contenders=[PRIOR], settings=SETTINGS, folds=3)

    def stop_at_third(fraction, note, seen=[]):  # noqa: B006
        seen.append(note)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(problem, plan, store, stop_at_third)
    with pytest.raises(ModelError, match="no model has been run on all folds"):
        standings(problem, CellStore(tmp_path / "none", fingerprint="x", folds=3), 3)
    assert run(problem, plan, store, quiet) == len(jobs(plan)) - 2
    assert run(problem, plan, store, quiet) == 0
    more = replace(plan, contenders=[PRIOR, MAJORITY])
    assert run(problem, more, store, quiet) == 3  # the majority has nothing to say where nothing is visible
    assert {cell.key.setting for cell in store.load() if cell.key.model == "visible-majority"} == {"half-visible"}


def test_results_are_flat_and_differences_are_paired(problem, tmp_path):
    plan = Plan(contenders=[PRIOR, FromBaseline(baseline=BASELINES["pooled-bias"])], settings=SETTINGS[:1], folds=3,
                seeds=2, repeated=frozenset({"pooled-bias"}))
    results = to_json(evaluated(problem, plan, tmp_path), "pooled-bias", by_annotator=True)
    results = json.loads(json.dumps(results, allow_nan=False))
    assert results["settings"] == ["unseen"] and results["dataset"] == "simulated"
    assert all({"model", "setting", "metric", "mean", "low", "high"} <= set(row) for row in results["results"])
    figure = {row["metric"]: row for row in results["results"]
              if row["model"] == "annotator-prior" and "annotator" not in row}
    assert figure["accuracy"]["low"] < figure["accuracy"]["mean"] < figure["accuracy"]["high"]
    assert {row["annotator"] for row in results["results"] if "annotator" in row} == set(problem.votes.annotators)
    seeds = {note["model"]: note["seeds"] for note in results["notes"]}
    assert seeds == {"annotator-prior": [0], "pooled-bias": [0, 1]}
    (gap,) = [row for row in results["differences"] if row["metric"] == "log_loss"]
    unpaired = max(row["high"] - row["low"] for row in results["results"]
                   if row["metric"] == "log_loss" and "annotator" not in row)
    assert gap["mean"] < 0 and gap["high"] - gap["low"] < 2 * unpaired
    page = markdown(results)
    assert "| **served** |" not in page and "| pooled-bias |" in page and "## unseen" in page


@pytest.fixture(scope="module")
def ours(quick):
    return Ours(config=replace(quick, folds=2, network=replace(quick.network, epochs=3)))


def test_ours_beats_the_prior_and_tells_its_base_models(problem, ours, tmp_path):
    plan = Plan(contenders=[ours, PRIOR], settings=(Setting(), Setting(visible=0.5)), folds=2)
    found = evaluated(problem, plan, tmp_path)
    for setting in ("unseen", "half-visible"):
        assert found.difference("served", "annotator-prior", setting, "log_loss")[0] < 0.0
        assert "consensus" in found.figures("served", setting, (0,))
        assert "consensus" not in found.figures("network", setting, (0,))
    assert sum(found.standing("served", "unseen").weights.values()) == pytest.approx(1.0)
    assert "Weights of the base models" in markdown(to_json(found, "served"))


def test_with_shuffled_labels_everything_scores_as_the_prior(problem, ours, tmp_path):
    """Nothing is left to learn but how often each annotator gives each label: a better score would be a leak."""
    names = ["pooled-bias", "dawid-skene"]
    plan = Plan(contenders=[*contenders(names, ours), ours, PRIOR], settings=(Setting(), Setting(visible=0.5)), folds=2)
    found = evaluated(problem.shuffled(5), plan, tmp_path)
    for model in ("served", "pooled-bias", "dawid-skene"):
        for setting in found.settings:
            if model in found.models(setting):
                gap = found.difference("annotator-prior", model, setting, "log_loss")
                low, high = np.quantile(gap[1:], [0.005, 0.995])
                assert low < 0.02, f"{model} beats the prior by {gap[0]:.3f} nats in {setting}"
                assert model == "pooled-bias" or high > -0.12, f"{model} is {-gap[0]:.3f} nats worse in {setting}"


def test_unknown_models_are_named():
    with pytest.raises(ModelError, match="no model nonsense; there are served, network, annotator-prior"):
        contenders(["nonsense"], Ours())

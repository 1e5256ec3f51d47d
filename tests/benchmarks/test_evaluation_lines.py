"""Lines are hit and missed as they should be, by cells whose quality is known."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.evaluation_lines import best, judge, mean_gaps
from benchmarks.replay import tell
from model.evaluate.cells import Cell, CellKey, CellStore
from model.evaluate.design import fold_of_votes, shown
from model.evaluate.problem import make_problem
from model.evaluate.summary import standings
from model.simulate import simulate_annotators

FOLDS = 2
SETTINGS = ("unseen", "half-visible", "drop-40")


@pytest.fixture(scope="module")
def problem():
    made = simulate_annotators(np.random.default_rng(1), units=100, annotators=4, classes=("a", "b", "c"))
    return make_problem("x", made.votes, "label", made.space, lambda units: [made.tokens[u] for u in units])


def table(problem, folder, right):
    """Standings of models that give the true label `right[model]` of the times, and say so."""
    store, fold = CellStore(folder, fingerprint=problem.fingerprint, folds=FOLDS), fold_of_votes(problem, FOLDS, 0)
    rng = np.random.default_rng(0)
    luck = rng.random(len(problem.votes))
    for model, share in right.items():
        wrong = np.roll(problem.y, 1, axis=1)
        p = np.where((luck < share)[:, None], 0.1 + 0.7 * problem.y, 0.1 + 0.7 * wrong)
        for setting in SETTINGS:
            for at in range(FOLDS):
                test = fold == at
                seen = shown(problem, test, 0.5 if setting == "half-visible" else 0.0, seed=0, fold=at)
                store.save(Cell(
                    key=CellKey(model, setting, 0, at), rows=np.flatnonzero(test).astype(np.int32), shown=seen[test],
                    p=p[test].astype(np.float32), units=np.unique(problem.votes.unit[test]),
                    consensus=np.empty((0, 3), np.float32),
                ))
    return standings(problem, store, FOLDS)


def test_better_by_far_hits_everything_and_worse_by_far_nothing(problem, tmp_path):
    good = {"s": table(problem, tmp_path / "g", {"served": 0.9, "network": 0.9, "pooled": 0.5, "dawid-skene": 0.6})}
    bad = {"s": table(problem, tmp_path / "b", {"served": 0.4, "network": 0.9, "pooled": 0.5, "dawid-skene": 0.6})}
    assert best(good["s"], "unseen", "accuracy") == "dawid-skene"  # never one of ours
    assert best(good["s"], "unseen", "log_loss", ("pooled",)) == "pooled"
    assert mean_gaps(good, "unseen", "accuracy")["pooled"].mean == pytest.approx(0.4, abs=0.07)
    assert all(item.hit for item in judge(good, ["s"])) and len(judge(good, ["s"])) == 8
    # One set may have the higher log-loss, but the mean may not.
    assert not any(item.hit for item in judge(bad, ["s"]))


def test_the_story_of_a_replay(problem):
    story = tell(problem, 0)
    annotator, y = problem.votes.annotator, problem.y
    there = np.isfinite(story.moment)
    assert not there[story.test].any()
    assert story.moment[there & (annotator == story.stopped)].max() < 0.5
    assert story.moment[there & (annotator == story.newcomer)].min() >= 0.5
    assert story.moment[there & (y[:, story.new_class] > 0.5)].min() >= 0.5
    tasks = {problem.votes.units[u] for u in problem.votes.unit[story.test]}
    assert len(tasks) == 20

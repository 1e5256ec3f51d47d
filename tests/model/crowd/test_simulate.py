"""Simulated crowds: the same seed gives the same data, bounds hold, and the votes follow what is said to be true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model.crowd import AnswerMatrix, make
from model.crowd.assign import Assignment
from model.crowd.simulate import STRATEGIES, Crowd, SimulatedCrowd, dominant, draw_classes, simulate, uniform_confusions
from model.errors import ModelError

ROOT = Path(__file__).parents[3]


def run(strategy: str, seed: int = 0, **settings: object) -> SimulatedCrowd:
    assignment = Assignment(**{  # type: ignore[arg-type]
        name: settings.pop(name) for name in list(settings) if name in Assignment.__dataclass_fields__})
    return simulate(strategy, Crowd(assignment=assignment, **settings), np.random.default_rng(seed))  # type: ignore[arg-type]


def right(made: SimulatedCrowd) -> np.ndarray:
    """(N,) whether each vote is the truth; names are numbers, tables are sorted as text."""
    votes = made.votes
    unit = np.array([int(name) for name in votes.units])[votes.unit]
    return np.array([int(str(value.data)) for value in votes.values])[votes.value] == made.truth[unit]


def annotator_of(made: SimulatedCrowd) -> np.ndarray:
    return np.array([int(name) for name in made.votes.annotators])[made.votes.annotator]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_seed_decides_everything(strategy: str) -> None:
    one, again, other = (run(strategy, seed, n_tasks=40, feedback=5) for seed in (1, 1, 2))
    for column in ("unit", "annotator", "value", "time"):
        np.testing.assert_array_equal(getattr(one.votes, column), getattr(again.votes, column))
    np.testing.assert_array_equal(one.truth, again.truth)
    assert not np.array_equal(one.truth, other.truth)
    assert len(one.roles) == 30 and len(one.votes) == 200


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [(1, 1, 1), (1, 3, 2), (2, 3, 1)])
def test_the_smallest_crowds_work(strategy: str, size: tuple[int, int, int]) -> None:
    made = run(strategy, n_annotators=size[0], n_tasks=size[1], n_classes=size[2])
    assert len(made.votes) == size[0] * size[1]


@pytest.mark.parametrize("skew", [0.0, 1.0])
@pytest.mark.parametrize("workload", [None, 14])
@pytest.mark.parametrize("feedback", [3, 5, 20, None])
def test_bounds_on_votes(skew: float, workload: int | None, feedback: int | None) -> None:
    unit, annotator = Assignment(feedback=feedback, workload=workload, skew=skew).draw(50, 20, np.random.default_rng(0))
    pairs = set(zip(unit.tolist(), annotator.tolist(), strict=True))
    assert len(pairs) == len(unit)  # nobody has a task twice
    per_unit = np.bincount(unit, minlength=50)
    assert per_unit.min() >= 1 and per_unit.max() <= (feedback or 20)
    if workload is None:
        assert (per_unit == (feedback or 20)).all()
    else:
        assert np.bincount(annotator, minlength=20).max() <= workload


def test_annotators_are_drawn_alike_or_by_rank() -> None:
    rng = np.random.default_rng(5)
    for n, feedback in ((100, 3), (20, 10)):  # drawn by rejection, and by noise
        _, annotator = Assignment(feedback=feedback).draw(6000, n, rng)
        counts = np.bincount(annotator, minlength=n)
        assert abs(counts / counts.mean() - 1).max() < 0.3
    _, annotator = Assignment(feedback=1, skew=1.0).draw(20_000, 3, rng)
    np.testing.assert_allclose(np.bincount(annotator) / 20_000, np.array([6, 3, 2]) / 11, atol=0.02)


def test_imbalance_and_missing_votes() -> None:
    per_unit = np.bincount(Assignment(feedback=4, imbalance_votes=True).draw(4000, 9, np.random.default_rng(1))[0])
    np.testing.assert_allclose(np.bincount(per_unit)[1:] / 4000, 0.25, atol=0.03)
    made = run("independent-confusion", n_tasks=400, feedback=2, missing=0.5)
    assert 300 < len(made.votes) < 500
    assert len(made.votes.units) == 400 > len(np.unique(made.votes.unit))  # a task without votes stays


def test_votes_follow_the_confusion_matrices() -> None:
    made = run("independent-confusion", n_annotators=2, n_tasks=30_000, n_classes=3, class_shares=(0.5, 0.3, 0.2))
    assert made.confusion is not None
    assert (made.confusion.argmax(axis=2) == np.arange(3)).all()  # nobody is wrong on purpose
    np.testing.assert_allclose(np.bincount(made.truth) / 30_000, [0.5, 0.3, 0.2], atol=0.02)
    votes = made.votes
    unit = np.array([int(name) for name in votes.units])[votes.unit]
    counts = np.zeros((2, 3, 3))
    np.add.at(counts, (votes.annotator, made.truth[unit], votes.value), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=2, keepdims=True), made.confusion, atol=0.03)


def test_given_matrices_are_used_and_checked() -> None:
    swap = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    assert not right(run("independent-confusion", n_annotators=1, n_classes=2, matrices=swap)).any()
    for bad in (swap[0], swap * 2, np.full((1, 3, 3), 1 / 3), np.full((1, 2, 2), np.nan)):
        with pytest.raises(ModelError):
            run("independent-confusion", n_annotators=1, n_classes=2, matrices=bad)


def test_hammers_are_right_and_spammers_guess() -> None:
    made = run("hammer-spammer", n_annotators=10, n_tasks=2000, n_classes=4, ratio=0.3)
    hit = right(made)
    assert made.roles == ("hammer",) * 7 + ("spammer",) * 3
    assert hit[annotator_of(made) < 7].all()
    assert abs(hit[annotator_of(made) >= 7].mean() - 0.25) < 0.03


def test_students_have_the_matrix_of_their_teacher() -> None:
    made = run("student-teacher", ratio=0.8)
    assert made.confusion is not None and made.groups is not None
    assert made.roles.count("student") == 24 and set(made.groups) <= set(range(6))
    np.testing.assert_array_equal(made.confusion, made.confusion[made.groups])


def test_easy_tasks_are_right_and_random_ones_are_noise() -> None:
    made = run(
        "discrete-difficulty", n_annotators=20, n_tasks=3000, n_classes=4, ratio=0.5, ratio_diff=2.0, random=0.25)
    level = np.array(made.difficulty)
    for name, share in (("easy", 0.5), ("hard", 0.25), ("random", 0.25)):
        assert abs((level == name).mean() - share) < 0.03
    unit = np.array([int(name) for name in made.votes.units])[made.votes.unit]
    hit = right(made)
    assert hit[level[unit] == "easy"].all()
    assert abs(hit[level[unit] == "random"].mean() - 0.25) < 0.02
    assert made.confusion is not None
    good = np.trace(made.confusion[:10], axis1=1, axis2=2)
    assert good.min() > np.trace(made.confusion[10:], axis1=1, axis2=2).mean()


def test_drifters_are_good_before_the_change_and_guess_after() -> None:
    made = run("drift", n_annotators=10, n_tasks=3000, n_classes=4, ratio=0.2)
    assert made.change is not None and made.roles.count("drifter") == 2
    hit, who = right(made), annotator_of(made)
    for a in range(10):
        mine = who == a
        assert sorted(made.votes.time[mine].tolist()) == list(range(1, 3001))
        if made.change[a] < 0:
            continue
        early = mine & (made.votes.time <= made.change[a])
        assert hit[early].mean() > 0.7 and abs(hit[mine & ~early].mean() - 0.25) < 0.06


def test_clusters_share_matrices_and_faults_are_what_they_say() -> None:
    made = run("clusters", n_clusters=4)
    assert made.confusion is not None and made.groups is not None
    assert len({matrix.tobytes() for matrix in made.confusion}) == 4
    assert np.bincount(made.groups).max() <= 8
    planted = run("faults", n_annotators=12, n_tasks=2000, n_classes=3)
    hit, who = right(planted), annotator_of(planted)
    accuracy = {role: hit[who == a].mean() for a, role in enumerate(planted.roles)}
    assert planted.roles[8:] == ("spammer", "constant", "inverter", "drifter")
    assert accuracy["inverter"] < 0.42 and 0.25 < accuracy["spammer"] < 0.42 and accuracy["good"] > 0.7
    labels = planted.votes.value[who == 9]
    assert np.bincount(labels).max() > 0.9 * len(labels)


def test_content_decides_whom_one_agrees_with() -> None:
    """Annotators err together where the content says so: more votes of one task agree than confusions explain."""
    made = run("content", n_annotators=15, n_tasks=400, n_classes=3)
    assert made.confusion is None
    answers = AnswerMatrix.from_votes(made.votes)
    fitted = make("majority").fit(answers)
    truth = made.truth[np.array([int(name) for name in fitted.units])]
    assert (fitted.label == truth).mean() > 0.6


def test_aggregators_find_what_the_paper_finds() -> None:
    """Table 1 of the paper has .755 for majority vote and .890 for Dawid-Skene, of one seed; here the mean of ten."""
    found: dict[str, list[float]] = {"majority": [], "dawid-skene": []}
    for seed in range(10):
        made = run("independent-confusion", seed, feedback=10)
        answers = AnswerMatrix.from_votes(made.votes, classes=[str(k) for k in range(5)])
        truth = made.truth[np.array([int(name) for name in answers.units])]
        for method, shares in found.items():
            shares.append(float((make(method).fit(answers).label == truth).mean()))
    assert abs(np.mean(found["majority"]) - 0.765) < 0.04
    assert np.mean(found["dawid-skene"]) > np.mean(found["majority"]) + 0.03


def test_draws_and_dominance() -> None:
    rng = np.random.default_rng(0)
    table = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert draw_classes(np.repeat(table, 50, axis=0), rng).tolist() == [0] * 50 + [2] * 50
    matrices = uniform_confusions(30, 4, rng)
    swapped = dominant(matrices)
    np.testing.assert_allclose(np.sort(swapped, axis=2), np.sort(matrices, axis=2))
    assert (swapped.argmax(axis=2) == np.arange(4)).all()


@pytest.mark.parametrize(("settings", "says"), [
    ({"ratio": 1.5}, "ratio must lie"), ({"random": -0.1}, "random must lie"), ({"n_tasks": 0}, "at least one"),
    ({"feedback": 0}, "at least 1"), ({"missing": 2.0}, "between 0 and 1"), ({"workload": 1}, "cannot label 200 tasks"),
    ({"class_shares": (1.0,)}, "class shares"), ({"ratio_diff": -1.0}, "must not be negative"),
])
def test_impossible_wishes_are_refused(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ModelError, match=says):
        run("hammer-spammer", **settings)
    with pytest.raises(ModelError, match="no simulation is called 'x'"):
        run("x")


def test_the_tightest_limit_still_gives_each_task_a_vote() -> None:
    made = run("hammer-spammer", n_annotators=10, n_tasks=20, workload=2)
    assert len(made.votes) == 20 == len(np.unique(made.votes.unit))


def test_no_torch_is_loaded() -> None:
    code = "import sys, model.crowd, model.crowd.simulate, model.quality; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0

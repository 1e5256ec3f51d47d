"""Faults: planted ones are named, people who label sensibly in their own way never are, and little evidence names
nobody."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.faults_crowds import content_gain
from model.crowd.answers import AnswerMatrix
from model.quality.annotators import Consistency
from model.quality.faults import Fault, FaultFinder, Witness

PLANTED = (Fault.SPAMMER, Fault.CONSTANT, Fault.INVERTER, Fault.DRIFTER)


def matrix(unit, who, label, *, people, classes, time=None):
    return AnswerMatrix.from_codes(
        units=[f"t{i:04d}" for i in range(int(np.max(unit)) + 1)], annotators=[f"a{a:02d}" for a in range(people)],
        classes=[f"c{k}" for k in range(classes)], unit=unit, annotator=who, label=label, time=time,
        keep_time=time is not None,
    )


def plant(seed, *, classes=3, units=600, per=6, annotators=12, faults=PLANTED, timed=True):
    """Annotators of 70 to 92 % accuracy, some of which have a fault: answers, {id: fault}, and what content tells."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, size=units, p=rng.dirichlet(np.full(classes, 8.0)))
    accuracy = rng.uniform(0.7, 0.92, annotators)
    unit = np.repeat(np.arange(units), per)
    who = rng.permuted(np.tile(np.arange(annotators), (units, 1)), axis=1)[:, :per].ravel()
    real = truth[unit]
    right = rng.random(len(unit)) < accuracy[who]
    label = np.where(right, real, (real + rng.integers(1, classes, size=len(unit))) % classes)
    at_fault = dict(zip(rng.permutation(annotators)[: len(faults)].tolist(), faults, strict=True))
    for a, fault in at_fault.items():
        mine = who == a
        n = int(mine.sum())
        if fault is Fault.SPAMMER:
            label[mine] = rng.integers(classes, size=n)
        elif fault is Fault.CONSTANT:  # not the class that most units have anyway: nobody could tell
            label[mine] = np.where(
                rng.random(n) < 0.97, np.bincount(truth, minlength=classes).argmin(), rng.integers(classes, size=n))
        elif fault is Fault.INVERTER:
            turned = np.where(real == 0, classes - 1, np.where(real == classes - 1, 0, real))
            label[mine] = np.where(rng.random(n) < 0.85, turned[mine], label[mine])
        else:
            late = mine & (unit >= rng.uniform(0.35, 0.65) * units)
            label[late] = rng.integers(classes, size=int(late.sum()))
    answers = matrix(unit, who, label, people=annotators, classes=classes,
                     time=unit + rng.random(len(unit)) if timed else None)
    features = np.eye(classes)[truth] + 0.4 * rng.standard_normal((units, classes))
    return answers, {f"a{a:02d}": fault for a, fault in at_fault.items()}, Witness(gain=content_gain(answers, features))


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_planted_faults_are_found_and_named(classes):
    """30 seeds pooled, drawn afresh on every run, 300 votes each (450 of two classes); full figures are those
    of `benchmarks.faults`."""
    hits, said, planted = Counter(), Counter(), Counter()
    fresh = np.random.SeedSequence().generate_state(30).tolist()
    for seed in fresh:
        answers, faults, witness = plant(seed, classes=classes, units=900 if classes == 2 else 600)
        findings = FaultFinder().find(answers, witness)
        for name, found in zip(findings.annotators, findings.fault, strict=True):
            said[found] += 1
            planted[faults.get(name, Fault.NONE)] += 1
            hits[found] += found is faults.get(name, Fault.NONE)
    for fault in PLANTED:
        assert hits[fault] / max(said[fault], 1) >= 0.9, (fault, "precision", fresh)
        assert hits[fault] / planted[fault] >= 0.8, (fault, "recall", fresh)


def crowd(people, *, units=200, classes=2, accuracy=0.9, seed=0):
    """Everybody answers everything: `people` are functions of (truth, rng) -> labels; None labels ordinarily."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=units)
    def ordinary():
        return np.where(rng.random(units) < accuracy, truth, rng.integers(classes, size=units))
    columns = [ordinary() if each is None else each(truth, rng) for each in people]
    unit, who = np.tile(np.arange(units), len(people)), np.repeat(np.arange(len(people)), units)
    return matrix(unit, who, np.concatenate(columns), people=len(people), classes=classes), truth


def lenient(truth, rng):
    return np.where((truth == 1) & (rng.random(len(truth)) < 0.75), 0, truth)


def guess(truth, rng):
    return rng.integers(2, size=len(truth))


def test_somebody_whose_tasks_nobody_else_has_is_not_judged():
    """32 votes on tasks of one's own, beside a crowd that knows its way: no figure, no fault."""
    answers, _ = crowd([None] * 5)
    rng = np.random.default_rng(1)
    unit = np.concatenate([answers.unit, 200 + np.arange(32)])
    who = np.concatenate([answers.annotator, np.full(32, 5)])
    label = np.concatenate([answers.label, rng.integers(2, size=32)])
    found = FaultFinder().find(matrix(unit, who, label, people=6, classes=2))
    assert found.grounds.common[5] == 0 and not found.grounds.enough[5] and found.grounds.enough[:5].all()
    assert np.isnan(found.against.accuracy[5]) and np.isnan(found.against.kappa[5]) and np.isnan(found.top_share[5])
    assert set(found.fault) == {Fault.NONE} and not found.unrelated.any()
    alone = FaultFinder().find(matrix(np.arange(32), np.zeros(32, int), label[-32:], people=1, classes=2))
    assert alone.fault == (Fault.NONE,) and np.isnan(alone.against.accuracy[0])


def test_a_lenient_annotator_is_described_and_not_named():
    for seed in range(10):
        answers, _ = crowd([None] * 6 + [lenient], seed=seed)
        found = FaultFinder().find(answers)
        assert set(found.fault) == {Fault.NONE}
        (habit,) = found.habits[6]
        assert (habit.believed, habit.given) == (1, 0) and habit.count / habit.of > 0.6 and habit.usual < 0.15
        assert all(not each for each in found.habits[:6])


def test_random_labels_are_unrelated_and_named_only_if_the_content_does_not_tell_them_either():
    answers, truth = crowd([None] * 7 + [guess], units=400)
    features = np.eye(2)[truth] + 0.4 * np.random.default_rng(3).standard_normal((400, 2))
    alone = FaultFinder().find(answers)
    assert alone.fault[7] is Fault.NONE and alone.unrelated.tolist() == [False] * 7 + [True]
    assert alone.habits[7] == ()
    found = FaultFinder().find(answers, Witness(gain=content_gain(answers, features)))
    assert found.fault[7] is Fault.SPAMMER and found.p_value[7] < 0.01 and set(found.fault[:7]) == {Fault.NONE}
    repeats = Consistency(share=np.array([np.nan] * 7 + [0.9]), pairs=np.array([0] * 7 + [30]))
    steady = FaultFinder().find(answers, Witness(gain=content_gain(answers, features), repeats=repeats))
    assert steady.fault[7] is Fault.NONE, "who repeats themselves labels by something"


def test_a_rule_of_ones_own_that_content_shows_is_no_fault():
    rng = np.random.default_rng(5)
    rule = rng.integers(2, size=400)
    answers, truth = crowd([None] * 7 + [lambda truth, rng: rule], units=400)
    features = np.column_stack([truth, rule]) + 0.4 * rng.standard_normal((400, 2))
    found = FaultFinder().find(answers, Witness(gain=content_gain(answers, features)))
    assert set(found.fault) == {Fault.NONE} and found.unrelated[7]


def test_two_camps_of_one_size_accuse_nobody():
    answers, _ = crowd([None] * 4 + [lambda truth, rng: 1 - truth] * 4)
    assert set(FaultFinder().find(answers).fault) == {Fault.NONE}
    one, _ = crowd([None] * 4 + [lambda truth, rng: 1 - truth])
    found = FaultFinder().find(one)
    assert found.of(Fault.INVERTER) == ["a04"]
    assert {(each.believed, each.given) for each in found.habits[4]} == {(0, 1), (1, 0)}


def test_a_renaming_that_is_not_both_ways_is_no_inversion():
    answers, _ = crowd([None] * 6 + [lambda truth, rng: (truth + 1) % 3], classes=3)
    found = FaultFinder().find(answers)
    assert set(found.fault) == {Fault.NONE}
    assert {(each.believed, each.given) for each in found.habits[6]} == {(0, 1), (1, 2), (2, 0)}


@pytest.mark.parametrize("units, others, named", [(19, 4, False), (40, 4, True), (60, 1, False), (60, 2, True)])
def test_little_evidence_names_nobody(units, others, named):
    """A plain inverter, by how many tasks and others there are."""
    answers, _ = crowd([None] * others + [lambda truth, rng: 1 - truth], units=units, accuracy=1.0)
    found = FaultFinder().find(answers)
    assert (found.fault[-1] is Fault.INVERTER) == named
    assert found.grounds.enough[-1] == (units >= 20 and others >= 2)


def test_who_is_looked_at_again_and_again_is_held_against_a_stricter_level():
    answers, _ = crowd([None] * 4 + [lambda truth, rng: 1 - truth], units=40, accuracy=1.0)
    once, often = FaultFinder().find(answers), FaultFinder(watched=True).find(answers)
    assert often.p_value[4] == pytest.approx(once.p_value[4] * 6 * 7.0)


def test_nobody_is_accused_without_faults_or_without_votes():
    accused = sum(len(answers.annotators) - FaultFinder().find(answers, witness).fault.count(Fault.NONE)
                  for answers, _, witness in (plant(s, faults=()) for s in range(10)))
    assert accused == 0
    few, _, _ = plant(0, units=8)
    assert set(FaultFinder().find(few).fault) == {Fault.NONE}
    for degenerate in (
        AnswerMatrix.from_columns([], [], []), AnswerMatrix.from_columns(["t"], ["a"], ["x"]),
        AnswerMatrix.from_columns(["t", "t"], ["a", "b"], ["x", "x"], all_annotators=["silent"]),
    ):
        assert set(FaultFinder().find(degenerate).fault) <= {Fault.NONE}


def test_without_times_there_is_no_drift_but_the_rest_stays():
    answers, faults, witness = plant(3, timed=False)
    findings = FaultFinder().find(answers, witness)
    assert findings.of(Fault.DRIFTER) == [] and findings.drift is None
    for fault in (Fault.CONSTANT, Fault.INVERTER, Fault.SPAMMER):
        assert findings.of(fault) == [name for name, f in faults.items() if f is fault]
    constant = findings.annotators.index(findings.of(Fault.CONSTANT)[0])
    assert findings.top_share[constant] > 0.9 > findings.expected_share[constant]
    assert np.isfinite(findings.p_value).sum() == 3 and np.nanmax(findings.p_value) <= 0.05


def test_a_rule_that_meets_the_others_in_the_first_tasks_only_is_no_drift():
    """Tasks come in order of their topic; the rule agrees on one topic, and the content tells its labels throughout."""
    rng = np.random.default_rng(0)
    truth, other = rng.integers(2, size=400), rng.integers(2, size=400)
    rule = np.where(np.arange(400) < 200, truth, other)
    unit, who = np.tile(np.arange(400), 7), np.repeat(np.arange(7), 400)
    noisy = [np.where(rng.random(400) < 0.9, truth, 1 - truth) for _ in range(6)]
    answers = matrix(unit, who, np.concatenate([*noisy, rule]), people=7, classes=2, time=unit + 0.0)
    assert FaultFinder().find(answers).of(Fault.DRIFTER) == ["a06"], "votes alone look like a change"
    late = np.arange(400) >= 200
    features = np.column_stack([truth, rule, late]) + 0.3 * rng.standard_normal((400, 3))
    found = FaultFinder().find(answers, Witness(gain=content_gain(answers, features)))
    assert set(found.fault) == {Fault.NONE}


def test_a_frequent_class_is_no_constant_answer():
    """97 % of the units are of one class, so everybody gives it nearly always."""
    rng = np.random.default_rng(0)
    rows = [(f"t{u:03d}", f"a{a}", "rare" if (u % 33 == 0) ^ (rng.random() < 0.01) else "usual")
            for u in range(300) for a in range(6)]
    findings = FaultFinder().find(AnswerMatrix.from_columns(*zip(*rows, strict=True)))
    assert findings.of(Fault.CONSTANT) == [] and findings.top_share.min() > 0.9

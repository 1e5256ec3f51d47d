"""Slips, haste, contradictions: planted ones are found, and nothing is found where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.faults_crowds import content_gain
from model.crowd.answers import AnswerMatrix
from model.crowd.dawid_skene import DawidSkene
from model.quality.faults import Witness
from model.quality.judged import judge
from model.quality.pace import pace
from model.quality.slips import slips
from tests.model.quality.planted import average_precision, plant

PRECISION_RECALL = 0.9


def answers_of(rows: list[tuple[int, int, int]], classes: int = 3) -> AnswerMatrix:
    unit, annotator, label = (np.array(column) for column in zip(*rows, strict=True))
    return AnswerMatrix.from_codes(
        units=[str(u) for u in range(unit.max() + 1)], annotators=[str(a) for a in range(annotator.max() + 1)],
        classes=[str(c) for c in range(classes)], unit=unit, annotator=annotator, label=label,
    )


def test_planted_slips_and_contradictions_are_found_with_what_a_training_leaves(quick):
    """The real ladder, trained in small; the measurement at full size is `benchmarks.slips`."""
    planted = plant(11, tasks=240, twins=60, slips=36, contradictions=24)
    evidence = planted.learn(quick)
    answers = planted.answers
    own, twins = planted.own(evidence), planted.twins(evidence)
    assert np.isfinite(own).all(), "every vote was predicted by models that had not seen its unit"
    assert {tuple(pair) for pair in twins} >= {(pair[0], pair[1]) for pair in twins if pair[1] >= 240}
    assert len(twins) == 60 and (twins[:, 1] >= 240).all()
    others = judge(answers, DawidSkene()).predicted
    found = slips(answers, own=own, others=others, near_duplicates=twins)
    base = planted.wrong.mean()
    assert average_precision(found.score, planted.wrong) > 3.0 * base
    crowd_only = average_precision(slips(answers, others=others).score, planted.wrong)
    assert average_precision(found.score, planted.wrong) > crowd_only > base
    contradicting = (found.duplicate >= 0) & (found.contradiction > 0)
    assert planted.contradiction[contradicting].mean() > 3.0 * base


def test_planted_annotators_are_named():
    named = []
    for seed in range(20, 26):
        planted = plant(seed, tasks=240, twins=60)
        shown = np.stack([planted.tokens[name].astype(np.float64).mean(axis=0) for name in planted.answers.units])
        witness = Witness(gain=content_gain(planted.answers, shown))
        judged = judge(planted.answers, DawidSkene(), witness=witness)
        found = ["" if each == "none" else each.value for each in judged.faults.fault]
        named += list(zip(planted.roles, found, strict=True))
    right = sum(role == found for role, found in named if role)
    assert right >= PRECISION_RECALL * sum(bool(role) for role, _ in named)
    assert right >= PRECISION_RECALL * sum(bool(found) for _, found in named)


def test_who_answers_at_random_commits_no_slips_and_the_sure_one_does():
    answers = answers_of([(u, a, 0) for u in range(60) for a in range(2)])
    label = answers.label.copy()
    own = np.where(answers.annotator[:, None] == 0, [[0.98, 0.01, 0.01]], [[1 / 3, 1 / 3, 1 / 3]])
    label[0], label[1] = 1, 1  # one unusual vote of each
    answers = AnswerMatrix.from_codes(
        units=answers.units, annotators=answers.annotators, classes=answers.classes, unit=answers.unit,
        annotator=answers.annotator, label=label,
    )
    found = slips(answers, own=own)
    assert found.score.argmax() == 0 and found.expected[0] == 0 and found.own[0] > 1.0
    assert found.score[1] == pytest.approx(np.median(found.score[answers.annotator == 1]))


def test_a_contradiction_accuses_the_less_expected_vote_of_the_same_annotator_only():
    rows = [(u, a, 0) for u in range(40) for a in range(2)]
    rows[2] = (1, 0, 1)  # units 0 and 1 are twins; annotator 0 said 0, then 1
    answers = answers_of(rows)
    own = np.full((len(answers), 3), [0.8, 0.1, 0.1])
    found = slips(answers, own=own, near_duplicates=np.array([[0, 1]]))
    at = int(np.flatnonzero((answers.unit == 1) & (answers.annotator == 0))[0])
    assert np.flatnonzero(found.contradiction).tolist() == [at]
    assert answers.unit[found.duplicate[at]] == 0 and answers.annotator[found.duplicate[at]] == 0
    assert (found.duplicate[answers.annotator == 1] == -1).all()


def test_where_everybody_contradicts_themselves_a_contradiction_says_nothing():
    rows = [(u, a, (u + a) % 2) for u in range(80) for a in range(3)]
    answers = answers_of(rows)
    pairs = np.array([[u, u + 1] for u in range(0, 80, 2)])
    found = slips(answers, own=np.full((240, 3), 1 / 3), near_duplicates=pairs)
    assert found.contradiction.max() == 0.0


def test_sources_that_are_silent_weigh_nothing_and_rows_of_nan_are_left_to_the_others():
    answers = answers_of([(u, a, u % 2) for u in range(50) for a in range(2)], classes=2)
    good = np.where(answers.label[:, None] == [0, 1], 0.9, 0.1)
    half = good.copy()
    half[::2] = np.nan
    assert slips(answers, others=good).weights[0] == 0.0
    found = slips(answers, own=half, others=np.full((100, 2), 0.5))
    assert np.isfinite(found.score).all() and found.weights[0] > 0.5
    assert slips(answers).weights == (0.0, 0.0)


def test_no_votes_and_a_single_class_give_no_slips():
    nothing = AnswerMatrix.from_columns([], [], [])
    assert len(slips(nothing).score) == 0
    one = AnswerMatrix.from_columns(["a", "b"], ["x", "x"], ["k", "k"])
    assert (slips(one).score == -np.inf).all() and len(pace(one.unit, one.annotator, np.full(2, np.nan), (2, 1))) == 2


def test_haste_is_measured_against_the_annotator_and_the_unit():
    rng = np.random.default_rng(4)
    unit, annotator = np.repeat(np.arange(60), 3), np.tile(np.arange(3), 60)
    seconds = np.exp(rng.normal(0, 0.3, 180)) * np.array([2.0, 20.0, 6.0])[annotator] * (1.0 + (unit % 2))
    seconds[30], seconds[31] = 0.2, 2.0  # for annotator 0 a tenth of the usual; for annotator 1 as well
    seconds[33] = np.nan
    z = pace(unit, annotator, seconds, (60, 3))
    assert np.isnan(z[33]) and set(np.argsort(np.nan_to_num(z))[:2]) == {30, 31}
    assert abs(np.nanmedian(z)) < 0.2 and z[30] < -3.0
    answers = answers_of([(int(u), int(a), 0) for u, a in zip(unit, annotator, strict=True)])
    found = slips(answers, own=np.full((180, 3), [0.6, 0.2, 0.2]), pace=z)
    assert found.score.argmax() in (30, 31) and found.haste[33] == 0.0


def test_with_too_few_timed_votes_nothing_is_usual():
    assert np.isnan(pace(np.arange(5), np.zeros(5, int), np.array([1.0, 2, 3, 4, 0.01]), (5, 1))).all()

"""Agreement against definitions written out as loops, and against published worked examples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from model.crowd.answers import AnswerMatrix
from model.quality.agreement import (
    class_agreement,
    class_alpha,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    pairwise_agreement,
    percent_agreement,
    presence_agreement,
)
from model.quality.intervals import alpha_interval, percent_interval, ratio_interval

# Krippendorff's worked example (Computing Krippendorff's alpha-reliability, 2011, section C): 4 observers, 12 units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def table(columns, classes=None):
    rows = [(f"u{i:02d}", f"o{j}", x) for j, row in enumerate(columns) for i, x in enumerate(row)]
    return AnswerMatrix.from_columns(*zip(*rows, strict=True), classes=classes)


def random_answers(seed, units=40, annotators=6, classes=4, missing=0.4):
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=units)
    keep = rng.random((annotators, units)) > missing
    label = np.where(rng.random((annotators, units)) < 0.6, truth, rng.integers(classes, size=(annotators, units)))
    return table([[int(x) if k else None for x, k in zip(row, mask, strict=True)]
                  for row, mask in zip(label, keep, strict=True)], classes=list(range(classes)))


def slow_alpha(answers, level):
    """Definition: mean distance of pairs within units over mean distance of all pairs of pairable votes."""
    values = [answers.label[answers.unit == u].tolist() for u in range(len(answers.units))]
    values = [v for v in values if len(v) > 1]
    everything = [x for v in values for x in v]
    n = [everything.count(c) for c in range(len(answers.classes))]

    def distance(c, k):
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return float((c - k) ** 2)
        low, high = min(c, k), max(c, k)
        return float((sum(n[low : high + 1]) - (n[low] + n[high]) / 2) ** 2)

    observed = sum(distance(a, b) / (len(v) - 1) for v in values for a, b in itertools.permutations(v, 2))
    expected = sum(distance(a, b) for a, b in itertools.permutations(everything, 2)) / (len(everything) - 1)
    return 1 - observed / expected


def test_krippendorffs_own_example():
    answers = table(OBSERVERS)
    assert krippendorff_alpha(answers) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(answers, "ordinal") == pytest.approx(0.815, abs=1e-3)
    assert krippendorff_alpha(answers, "interval") == pytest.approx(0.849, abs=5e-4)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(3))
def test_alpha_equals_its_definition(level, seed):
    answers = random_answers(seed)
    assert krippendorff_alpha(answers, level) == pytest.approx(slow_alpha(answers, level), abs=1e-12)


def test_interval_alpha_takes_the_numbers_of_the_classes():
    answers = random_answers(5)
    stretched = krippendorff_alpha(answers, "interval", np.array([0.0, 1.0, 2.0, 30.0]))
    assert stretched != pytest.approx(krippendorff_alpha(answers, "interval"))
    assert krippendorff_alpha(answers, "interval", np.array([5.0, 7.0, 9.0, 11.0])) == pytest.approx(
        krippendorff_alpha(answers, "interval")
    )


def test_fleiss_own_example():
    """Fleiss (1971) as tabulated in textbooks: 10 units, 14 raters, 5 classes; kappa 0.210."""
    counts = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
              [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]
    raters = [[k for k, n in enumerate(row) for _ in range(n)] for row in counts]
    assert fleiss_kappa(table(list(zip(*raters, strict=True)))) == pytest.approx(0.210, abs=5e-4)


@pytest.mark.parametrize("weights", ["none", "linear", "quadratic"])
def test_pairwise_equals_cohen_on_common_units(weights):
    answers = random_answers(1)
    pairs = pairwise_agreement(answers, weights)
    for a, b in itertools.combinations(range(6), 2):
        own = {u: c for u, who, c in zip(answers.unit, answers.annotator, answers.label, strict=True) if who == a}
        other = {u: c for u, who, c in zip(answers.unit, answers.annotator, answers.label, strict=True) if who == b}
        common = sorted(own.keys() & other.keys())
        counts = np.zeros((4, 4))
        for u in common:
            counts[own[u], other[u]] += 1
        assert pairs.common[a, b] == len(common)
        assert pairs.percent[a, b] == pytest.approx(np.trace(counts) / counts.sum())
        assert pairs.kappa[a, b] == pytest.approx(cohen_kappa(counts, weights)) == pytest.approx(pairs.kappa[b, a])


def test_cohens_kappa_by_hand():
    """20 both yes, 5 / 10 mixed, 15 both no: observed .7, chance .5, kappa .4."""
    assert cohen_kappa(np.array([[20.0, 5.0], [10.0, 15.0]])) == pytest.approx(0.4)
    assert np.isnan(cohen_kappa(np.zeros((2, 2)))) and cohen_kappa(np.diag([3.0, 0.0])) == 1.0


def test_ac1_by_hand_and_under_a_dominant_class():
    """Gwet (2008): 118 both +, 5 mixed, 2 both -: AC1 .953 where kappa is .450 or so."""
    first = [0] * 118 + [0] * 2 + [1] * 3 + [1] * 2
    second = [0] * 118 + [1] * 2 + [0] * 3 + [1] * 2
    answers = table([first, second])
    observed, share = 120 / 125, (118 * 2 + 5) / 250
    chance = 2 * share * (1 - share)
    assert gwet_ac1(answers) == pytest.approx((observed - chance) / (1 - chance))
    assert gwet_ac1(answers) > 0.94 and fleiss_kappa(answers) < 0.5


def test_percent_and_per_class():
    answers = table([["x", "x", "y"], ["x", "y", "y"], ["x", None, "z"]])
    assert percent_agreement(answers) == pytest.approx((3 + 0 + 1) / 7)
    np.testing.assert_allclose(class_agreement(answers), [6 / 2 / (3 + 1), 2 / 2 / (1 + 2), 0.0])
    assert class_alpha(answers)[0] == pytest.approx(
        krippendorff_alpha(table([["x", "x", "o"], ["x", "o", "o"], ["x", None, "o"]]))
    )


def test_classes_of_which_an_answer_holds_several_are_judged_one_by_one():
    rng = np.random.default_rng(3)
    sets = rng.random((30, 4, 3)) < [0.5, 0.2, 0.0]  # (unit, annotator, class); the third is never given
    there = rng.random((30, 4)) < 0.7
    given = (sets & there[:, :, None]).sum(axis=1).astype(float)
    same, alpha = presence_agreement(given, there.sum(axis=1).astype(float))
    for k in range(2):
        unit, annotator = np.nonzero(there)
        alone = AnswerMatrix.from_codes(
            units=[str(u) for u in range(30)], annotators=list("abcd"), classes=("no", "yes"), unit=unit,
            annotator=annotator, label=sets[unit, annotator, k].astype(int))
        assert same[k] == pytest.approx(class_agreement(alone)[1])
        assert alpha[k] == pytest.approx(class_alpha(alone)[1])
    assert np.isnan(same[2]) and np.isnan(alpha[2])


@pytest.mark.parametrize("figure", [krippendorff_alpha, fleiss_kappa, gwet_ac1, percent_agreement])
def test_degenerate_input(figure):
    assert np.isnan(figure(AnswerMatrix.from_columns([], [], [])))
    assert np.isnan(figure(AnswerMatrix.from_columns(["a", "b"], ["p", "p"], ["x", "y"])))  # nothing overlaps
    assert figure(AnswerMatrix.from_columns(["a", "a"], ["p", "q"], ["x", "x"])) == 1.0
    shuffled = random_answers(2)
    order = np.random.default_rng(0).permutation(len(shuffled))
    again = AnswerMatrix.from_codes(
        units=shuffled.units, annotators=shuffled.annotators, classes=shuffled.classes, unit=shuffled.unit[order],
        annotator=shuffled.annotator[order], label=shuffled.label[order],
    )
    assert figure(again) == figure(shuffled)


def test_bootstrap_intervals_cover_and_shrink():
    small, large = random_answers(3, units=60), random_answers(3, units=1500)
    for interval in (alpha_interval, percent_interval):
        narrow, wide = interval(large, draws=200), interval(small, draws=200)
        assert wide.low < wide.value < wide.high
        assert narrow.high - narrow.low < 0.5 * (wide.high - wide.low)
    assert alpha_interval(small).value == pytest.approx(krippendorff_alpha(small))
    assert percent_interval(small).value == pytest.approx(percent_agreement(small))
    assert np.isnan(alpha_interval(AnswerMatrix.from_columns([], [], [])).low)
    # An ordinary proportion: the bootstrap agrees with the normal approximation.
    part = (np.random.default_rng(0).random(2000) < 0.3).astype(float)
    got = ratio_interval(part, np.ones(2000), draws=800)
    assert got.high - got.low == pytest.approx(2 * 1.96 * np.sqrt(0.3 * 0.7 / 2000), rel=0.15)


def test_random_votes_have_alpha_near_zero():
    rng = np.random.default_rng(0)
    answers = table(rng.integers(4, size=(5, 3000)).tolist())
    assert abs(krippendorff_alpha(answers)) < 0.01 and abs(fleiss_kappa(answers)) < 0.01

"""What every aggregator of nominal votes must survive and keep: one suite over the whole registry."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd import AGGREGATORS, AnswerMatrix, make
from model.crowd.clustered import ClusteredDawidSkene
from model.errors import ModelError

NAMES = sorted(AGGREGATORS)
# Methods that climb an objective; the others' `objective` is a history of something else.
CLIMBERS = ["dawid-skene", "one-coin", "glad", "mace", "dswc", "ordinal-dawid-skene", "online-dawid-skene"]
ABSTAINING = {"two-third", "plantnet"}


def method(name):
    """Small settings where the defaults are for larger data."""
    if name == "dswc":
        return ClusteredDawidSkene(n_clusters=2, restarts=2, max_iter=50)
    if name == "mace":
        return make(name, restarts=2)
    if name == "mmsr":
        return make(name, max_iter=20)
    return make(name)


def probabilities(answers):
    """What a model could say: the smoothed shares of the votes' classes, tilted by unit."""
    n_units, _, n_classes = answers.shape
    p = np.random.default_rng(5).dirichlet(np.ones(max(n_classes, 1)), size=n_units)[:, :n_classes]
    return p


def fit(name, answers, gold=None):
    m = method(name)
    if m.binary_only and len(answers.classes) > 2:
        pytest.fail("binary methods get binary data here")
    return m.fit(answers, gold=gold, probabilities=probabilities(answers) if m.needs_probabilities else None)


def columns(*rows, **kwargs):
    unit, annotator, label = zip(*rows, strict=True) if rows else ((), (), ())
    return AnswerMatrix.from_columns(unit, annotator, label, **kwargs)


def check(result, answers):
    """The invariants of every result."""
    n_units, n_annotators, n_classes = answers.shape
    assert result.label.shape == (n_units,) and result.posterior.shape == (n_units, n_classes)
    if n_classes:
        assert np.all(result.posterior >= 0)
        np.testing.assert_allclose(result.posterior.sum(axis=1), 1.0, atol=1e-9)
    assert not np.any(result.unlabelled & result.abstained)
    np.testing.assert_array_equal(result.label < 0, result.unlabelled | result.abstained)
    np.testing.assert_array_equal(result.unlabelled, ~answers.voted & (result.gold < 0))
    if result.confusion is not None:
        assert result.confusion.shape == (n_annotators, n_classes, n_classes)
        np.testing.assert_allclose(result.confusion.sum(axis=2), 1.0, atol=1e-9)
    for array in (result.skill, result.difficulty, result.counts, *result.parameters.values()):
        assert array is None or np.isfinite(array).all()
    if result.skill is not None:
        assert result.skill.shape == (n_annotators,)
    if result.difficulty is not None:
        assert result.difficulty.shape == (n_units,)
    assert np.isfinite(result.objective).all()
    assert len(list(result.rows())) == n_units
    return result


@pytest.mark.parametrize("name", NAMES)
class TestBadInput:
    def test_empty(self, name):
        result = check(fit(name, columns()), columns())
        assert len(result.label) == 0

    def test_units_without_any_vote(self, name):
        answers = columns(all_units=["a", "b"], classes=["x", "y"])
        result = check(fit(name, answers), answers)
        assert result.unlabelled.all()
        assert [label for _, label, _ in result.rows()] == [None, None]
        assert np.isnan(result.confidence).all()

    def test_one_vote(self, name):
        answers = columns(("t", "a", "x"), classes=["x", "y"])
        result = check(fit(name, answers), answers)
        assert result.label[0] == (-1 if name in ABSTAINING else 0)

    def test_one_annotator(self, name):
        answers = columns(("t1", "a", "x"), ("t2", "a", "y"), ("t3", "a", "x"))
        result = check(fit(name, answers), answers)
        if name not in ABSTAINING | {"crowdlab"}:
            assert result.label.tolist() == [0, 1, 0]

    def test_no_overlap(self, name):
        answers = columns(*[(f"t{i}", f"a{i % 3}", "xy"[i % 2]) for i in range(12)])
        result = check(fit(name, answers), answers)
        if name not in ABSTAINING | {"crowdlab"}:
            assert np.mean(result.label == answers.label) >= 0.5

    def test_single_class(self, name):
        answers = columns(*[(f"t{i}", f"a{j}", "only") for i in range(4) for j in range(6)])
        result = check(fit(name, answers), answers)
        if name not in ABSTAINING:
            assert result.label.tolist() == [0] * 4

    def test_class_that_nobody_gave(self, name):
        rows = [(f"t{i}", f"a{j}", "xy"[(i + (j == 2)) % 2]) for i in range(8) for j in range(4)]
        known = columns(*rows)
        # KOS is for two classes: its class that nobody gave is the second of two.
        answers = (
            columns(*[(u, a, "x") for u, a, _ in rows], classes=["x", "y"])
            if method(name).binary_only else columns(*rows, classes=["x", "never", "y"])
        )
        result = check(fit(name, answers), answers)
        assert not np.any(result.label == answers.classes.index("y" if method(name).binary_only else "never"))
        assert len(known.classes) == 2

    def test_missing_labels_are_no_votes(self, name):
        rows = [("t1", "a", "x"), ("t1", "b", None), ("t2", "a", float("nan")), ("t2", "b", None), ("t3", "b", "y")]
        answers = columns(*rows)
        assert answers.dropped == 3 and answers.classes == ("x", "y")
        result = check(fit(name, answers), answers)
        assert result.unlabelled.tolist() == [False, True, False]

    def test_ids_with_gaps_and_emails(self, name):
        rows = [(unit, who, "xy"[unit % 2]) for unit in (17, 305, 9001) for who in ("a@b.org", "ü@b.org", 9001, "17")]
        answers = columns(*rows)
        result = check(fit(name, answers), answers)
        assert result.units == ("17", "305", "9001") and "a@b.org" in result.annotators
        if name not in ABSTAINING | {"crowdlab"}:
            assert [label for _, label, _ in result.rows()] == ["y", "y", "y"]

    def test_duplicates_count_once(self, name):
        rows = [(f"t{i}", f"a{j}", "xy"[(i + (j == i % 4)) % 2]) for i in range(9) for j in range(5)]
        once = fit(name, columns(*rows))
        twice = fit(name, columns(*rows, *rows))
        np.testing.assert_array_equal(once.posterior, twice.posterior)

    def test_unit_without_votes_stays_unlabelled_beside_others(self, name):
        rows = [(f"t{i}", f"a{j}", "xy"[i % 2]) for i in range(8) for j in range(5)]
        answers = columns(*rows, all_units=["silent"])
        result = check(fit(name, answers), answers)
        silent = answers.units.index("silent")
        assert result.label[silent] == -1 and result.unlabelled[silent]
        # and it teaches nothing about the others
        without = fit(name, columns(*rows))
        if not method(name).needs_probabilities:
            others = [i for i in range(len(answers.units)) if i != silent]
            np.testing.assert_allclose(result.posterior[others], without.posterior, atol=1e-9)

    def test_gold_wins_over_all_votes(self, name):
        answers = columns(*[(f"t{i}", f"a{j}", "xy"[i % 2]) for i in range(10) for j in range(4)], all_units=["silent"])
        result = check(fit(name, answers, gold={"t0": "y", "t1": "x", "silent": "y", "unknown": "x"}), answers)
        position = {unit: i for i, unit in enumerate(answers.units)}
        assert [result.label[position[u]] for u in ("t0", "t1", "silent")] == [1, 0, 1]
        assert result.confidence[position["t0"]] == 1.0 and not result.unlabelled[position["silent"]]

    def test_contradictory_gold_is_refused(self, name):
        answers = columns(("t", "a", "x"), ("t", "b", "y"))
        with pytest.raises(ModelError, match="'t' has two different gold labels"):
            fit(name, answers, gold=[("t", "x"), ("t", "y")])
        with pytest.raises(ModelError, match="gold"):
            fit(name, answers, gold={"t": "unheard of"})

    def test_two_thousand_votes_on_one_unit(self, name):
        rows = [("crowded", f"a{j}", "x" if j % 10 else "y") for j in range(2000)]
        rows += [(f"t{i}", f"a{j}", "xy"[i % 2]) for i in range(6) for j in range(40)]
        answers = columns(*rows)
        result = check(fit(name, answers), answers)
        assert result.label[answers.units.index("crowded")] == 0

    def test_weights_of_zero_are_no_votes(self, name):
        answers = columns(("t", "a", "x"), ("t", "b", "x"), ("s", "a", "y"), weights=[1.0, 0.0, 0.0])
        assert len(answers) == 1 and answers.dropped == 2
        assert check(fit(name, answers), answers).unlabelled.tolist() == [True, False]


def nominal(name):
    return 2 if AGGREGATORS[name].binary_only else 3


@pytest.mark.parametrize("name", NAMES)
class TestInvariance:
    def test_rows_and_annotators_may_be_permuted(self, name, crowd):
        """Bit for bit for rows; up to rounding when annotators are renamed so that they sort differently."""
        data = crowd(classes=nominal(name), seed=3)
        base = fit(name, data.answers)
        unit, annotator, label = data.columns
        order = np.random.default_rng(1).permutation(len(unit))
        tables = {"classes": data.answers.classes, "all_units": data.answers.units}
        moved = AnswerMatrix.from_columns(
            [unit[i] for i in order], [annotator[i] for i in order], [label[i] for i in order], **tables
        )
        np.testing.assert_array_equal(fit(name, moved).posterior, base.posterior)
        if method(name).stochastic:
            return  # the random start is dealt out in the order of the ids
        renamed = AnswerMatrix.from_columns(unit, [f"{99 - int(who[1:3])}{who}" for who in annotator], label, **tables)
        again = fit(name, renamed)
        np.testing.assert_allclose(again.posterior, base.posterior, atol=1e-6)
        np.testing.assert_array_equal(again.label, base.label)

    def test_labels_may_be_permuted_away_from_ties(self, name, crowd):
        if name in {"ordinal-dawid-skene", "mace", "dswc", "crowdlab"}:
            # Order matters to the first; seeded starts and the given probabilities break the symmetry of the others.
            names = {"c0": "c2", "c1": "c1", "c2": "c0"}
        else:
            names = {"c0": "c1", "c1": "c2", "c2": "c0"} if nominal(name) == 3 else {"c0": "c1", "c1": "c0"}
        data = crowd(classes=nominal(name), seed=4)
        unit, annotator, label = data.columns
        turned = AnswerMatrix.from_columns(
            unit, annotator, [names[c] for c in label], classes=data.answers.classes, all_units=data.answers.units
        )
        order = [data.answers.classes.index(names[c]) for c in data.answers.classes]
        m = method(name)
        p = probabilities(data.answers)
        base = m.fit(data.answers, probabilities=p)
        again = m.fit(turned, probabilities=p[:, np.argsort(order)])
        top = np.sort(base.posterior, axis=1)
        clear = top[:, -1] - top[:, -2] > 0.05
        same = np.array(order)[base.label] == again.label
        assert clear.sum() > 50
        assert np.mean(same[clear & (base.label >= 0)]) >= (0.97 if m.stochastic else 1.0)

    def test_weights_scale_votes(self, name, crowd):
        """A vote of weight 1 is the same as no weight, and weights survive sorting."""
        data = crowd(classes=nominal(name), seed=6)
        unit, annotator, label = data.columns
        tables = {"classes": data.answers.classes, "all_units": data.answers.units}
        ones = AnswerMatrix.from_columns(unit, annotator, label, weights=np.ones(len(unit)), **tables)
        np.testing.assert_array_equal(fit(name, ones).posterior, fit(name, data.answers).posterior)
        halves = AnswerMatrix.from_columns(unit, annotator, label, weights=np.full(len(unit), 0.5), **tables)
        check(fit(name, halves), halves)

    def test_beats_chance_by_far(self, name, crowd):
        data = crowd(classes=nominal(name), seed=7, annotators=12, per_unit=7)
        result = check(fit(name, data.answers), data.answers)
        labelled = result.label >= 0
        assert np.mean(result.label[labelled] == data.truth[labelled]) > 0.85


@pytest.mark.parametrize("name", CLIMBERS)
@pytest.mark.parametrize("seed", range(3))
def test_objective_never_falls(name, seed, crowd):
    data = crowd(seed=seed, good=2.0, classes=4, annotators=14)
    gold = {data.answers.units[i]: f"c{data.truth[i]}" for i in range(0, 20)}
    for known in (None, gold):
        steps = np.diff(fit(name, data.answers, gold=known).objective)
        assert len(steps) > 1
        assert steps.min() > -1e-7, f"fell by {-steps.min():g}"


def test_registry_names_and_errors(crowd):
    assert all(cls.name == name for name, cls in AGGREGATORS.items())
    with pytest.raises(ModelError, match="no aggregator is called"):
        make("nobody")
    with pytest.raises(ModelError, match="no such setting"):
        make("majority", wrong=1)
    with pytest.raises(ModelError, match="needs the probabilities"):
        make("crowdlab").fit(crowd().answers)
    with pytest.raises(ModelError, match="two classes"):
        make("kos").fit(crowd().answers)
    with pytest.raises(ModelError, match="shape"):
        make("crowdlab").fit(crowd().answers, probabilities=np.ones((2, 2)))
    with pytest.raises(ModelError, match="sum to one"):
        make("crowdlab").fit(crowd().answers, probabilities=np.ones((120, 3)))

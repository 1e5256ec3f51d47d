"""What is particular to single methods."""

from __future__ import annotations

import numpy as np
import pytest

from model.crowd import AnswerMatrix, make
from model.crowd.clustered import ClusteredDawidSkene
from model.crowd.crowdlab import co_agreement
from model.crowd.dawid_skene import DawidSkene
from model.crowd.majority import MajorityVote
from model.crowd.mmsr import pair_covariance
from model.crowd.online import DawidSkeneStream, OnlineDawidSkene
from model.crowd.plantnet import PlantNet
from model.crowd.sums import class_totals


def answers_of(*rows, **kwargs):
    return AnswerMatrix.from_columns(*zip(*rows, strict=True), **kwargs)


class TestMajority:
    def test_ties_go_to_weight_then_to_the_frequent_class_then_to_the_first(self):
        rows = [("t1", "a", "x"), ("t1", "b", "z"), ("t2", "a", "z"), ("t2", "b", "z")]
        rows += [("t3", "a", "y"), ("t3", "b", "x")]
        assert [c for _, c, _ in MajorityVote().fit(answers_of(*rows)).rows()] == ["z", "z", "x"]
        heavy = answers_of(*rows, weights=[2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
        assert [c for _, c, _ in MajorityVote(weighted=False).fit(heavy).rows()] == ["x", "z", "x"]
        even = answers_of(("t1", "a", "y"), ("t1", "b", "x"))
        assert MajorityVote().fit(even).label[0] == 0

    def test_a_seed_draws_among_the_tied_only(self):
        rows = [(f"t{i}", who, label) for i in range(400) for who, label in (("a", "x"), ("b", "y"))]
        answers = answers_of(*rows, classes=["x", "y", "z"])
        drawn = MajorityVote(seed=1).fit(answers).label
        assert 140 < (drawn == 0).sum() < 260 and not (drawn == 2).any()
        np.testing.assert_array_equal(drawn, MajorityVote(seed=1).fit(answers).label)
        assert (MajorityVote().fit(answers).label == 0).all()

    def test_soft_vote_is_the_distribution(self):
        answers = answers_of(("t", "a", "x"), ("t", "b", "x"), ("t", "c", "y"))
        np.testing.assert_allclose(make("soft").fit(answers).posterior, [[2 / 3, 1 / 3]])


class TestAbstention:
    def test_two_third(self):
        rows = [("one", "a", "x")]
        rows += [("exact", who, label) for who, label in zip("abc", "xxy", strict=True)]
        rows += [("below", who, label) for who, label in zip("abcde", "xxxyy", strict=True)]
        result = make("two-third").fit(answers_of(*rows))
        assert {u: c for u, c, _ in result.rows()} == {"one": None, "exact": "x", "below": None}
        assert result.abstained.sum() == 2 and not result.unlabelled.any()

    def test_plantnet_learns_whom_to_believe(self):
        """Three who agree on many classes make a label; two who never took part in one do not."""
        rows = [(f"t{i}", who, f"c{i % 8}") for i in range(40) for who in "abcd"]
        rows += [("new", "e", "c1"), ("new", "f", "c1"), ("known", "a", "c2"), ("known", "b", "c2")]
        result = PlantNet().fit(answers_of(*rows))
        labels = {u: c for u, c, _ in result.rows()}
        assert labels["new"] is None and labels["known"] == "c2"
        weight = dict(zip(result.annotators, result.skill, strict=True))
        assert weight["a"] == pytest.approx(8**0.5 - 8**0.2 + np.log(2.1)) and weight["e"] == pytest.approx(np.log(2.1))
        assert result.converged


def test_iwmv_turns_an_inverter_round():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    rows = []
    for i, t in enumerate(truth):
        rows += [(f"t{i:02d}", f"good{j}", "xy"[t if rng.random() < 0.85 else 1 - t]) for j in range(3)]
        rows += [(f"t{i:02d}", "inverter", "xy"[1 - t])]
    answers = answers_of(*rows)
    result = make("iwmv").fit(answers)
    assert np.mean(result.label == truth) > np.mean(MajorityVote().fit(answers).label == truth)
    assert result.skill[answers.annotators.index("inverter")] < 0.2


def test_glad_finds_able_annotators_and_hard_units():
    rng = np.random.default_rng(1)
    ability, hard = np.linspace(0.4, 4.0, 12), rng.random(300) < 0.5
    truth = rng.integers(3, size=300)
    rows = []
    for u in range(300):
        for a in range(12):
            right = rng.random() < 1 / (1 + np.exp(-ability[a] * (0.3 if hard[u] else 1.5)))
            rows.append((f"t{u:03d}", f"a{a:02d}", f"c{truth[u] if right else (truth[u] + rng.integers(1, 3)) % 3}"))
    result = make("glad").fit(answers_of(*rows))
    assert np.corrcoef(result.skill, ability)[0, 1] > 0.9
    assert result.difficulty[hard].mean() > 1.5 * result.difficulty[~hard].mean()


def test_mace_names_the_spammer_and_the_habit(crowd):
    data = crowd(units=200, classes=3, good=20.0, seed=2)
    unit, annotator, label = (list(c) for c in data.columns)
    for i, who in enumerate(annotator):
        if who.startswith("p03"):
            label[i] = "c1"
    result = make("mace", restarts=3).fit(AnswerMatrix.from_columns(unit, annotator, label))
    assert result.skill.argmin() == 3 and result.skill[3] < 0.2 < 0.7 < np.delete(result.skill, 3).min()
    assert result.parameters["habit"][3].argmax() == 1


def test_dswc_finds_the_two_groups_and_their_number(crowd):
    rng = np.random.default_rng(0)
    groups = np.array([0] * 8 + [1] * 8)
    matrices = np.array([[[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]],
                         [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]])
    rows = [
        (f"t{u:03d}", f"a{a:02d}", f"c{rng.choice(3, p=matrices[groups[a], k])}")
        for u, k in enumerate(rng.integers(3, size=200)) for a in rng.permutation(16)[:6]
    ]
    answers = answers_of(*rows)
    result = ClusteredDawidSkene(n_clusters=2, restarts=4).fit(answers)
    member = result.parameters["cluster"].argmax(axis=1)
    assert len(set(member[:8])) == len(set(member[8:])) == 1 and member[0] != member[8]
    assert ClusteredDawidSkene(n_clusters=None).choose_clusters(answers, answers.gold_codes(None)) in (2, 3)


def test_dswc_on_a_sample_of_units_gives_the_same_answer(crowd, monkeypatch):
    data = crowd(units=900, annotators=10, per_unit=5, seed=3)
    method = ClusteredDawidSkene(n_clusters=2, restarts=4)
    whole = method.fit(data.answers)
    monkeypatch.setattr("model.crowd.clustered._SAMPLE", 1000)
    part = method.fit(data.answers)
    assert np.mean(whole.label == part.label) > 0.98
    assert part.posterior.shape == (900, 3) and len(part.units) == 900


def test_dswc_searches_on_the_sample_only_and_stops_when_more_clusters_do_not_help(crowd, monkeypatch):
    """So its time is linear in votes: whatever is tried sees the sample, and only the kept starts see all votes."""
    data = crowd(units=900, annotators=16, per_unit=5, seed=3, good=8.0)
    monkeypatch.setattr("model.crowd.clustered._SAMPLE", 1000)
    seen, climb = [], ClusteredDawidSkene._climb

    def noted(self, blocks, answers, gold, posterior, members, max_iter):
        seen.append((len(answers), members.shape[1]))
        return climb(self, blocks, answers, gold, posterior, members, max_iter)

    monkeypatch.setattr(ClusteredDawidSkene, "_climb", noted)
    ClusteredDawidSkene(restarts=4).fit(data.answers)
    assert sum(n == len(data.answers) for n, _ in seen) <= 2
    assert all(n < 1400 for n, _ in seen if n != len(data.answers))
    assert 1 < max(n_clusters for _, n_clusters in seen) < 15


def test_ordinal_beats_free_confusions_on_few_ordered_votes():
    rng = np.random.default_rng(3)
    truth = rng.integers(5, size=150)
    bias = rng.choice([-1.0, 0.0, 1.0], size=20)
    rows = []
    for u, k in enumerate(truth):
        for a in rng.permutation(20)[:4]:
            rows.append((f"t{u:03d}", f"a{a:02d}", str(int(np.clip(np.rint(k + bias[a] + rng.normal(0, 0.6)), 0, 4)))))
    answers = answers_of(*rows)
    ordinal = make("ordinal-dawid-skene").fit(answers)
    free = DawidSkene().fit(answers)
    assert np.mean(ordinal.label == truth) > np.mean(free.label == truth) + 0.05
    assert np.corrcoef(ordinal.parameters["bias"], bias)[0, 1] > 0.9


def test_kos_and_mmsr_survive_adversaries():
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=200)
    right = np.array([0.85] * 8 + [0.1] * 2)
    rows = [(f"t{u:03d}", f"a{a}", "xy"[t if rng.random() < right[a] else 1 - t])
            for u, t in enumerate(truth) for a in rng.permutation(10)[:6]]
    answers = answers_of(*rows)
    for name in ("kos", "mmsr"):
        result = make(name).fit(answers)
        assert np.mean(result.label == truth) > 0.93, name
        assert (result.skill[8:] < 0).all() and (result.skill[:8] > 0.3).all(), name


def test_kos_passes_messages_that_leave_the_receiver_out():
    rng = np.random.default_rng(0)
    rows = [(f"t{u}", f"a{a}", "xy"[rng.integers(2)]) for u in range(6) for a in range(5) if rng.random() < 0.7]
    answers = answers_of(*rows, classes=["x", "y"])
    u, a, s = answers.unit, answers.annotator, np.where(answers.label == 0, 1.0, -1.0)
    y = np.random.default_rng(3).normal(1.0, 1.0, len(answers))
    every = np.arange(len(answers))
    for _ in range(4):
        x = np.array([sum(s[j] * y[j] for j in every if u[j] == u[i] and j != i) for i in every])
        y = np.array([sum(s[j] * x[j] for j in every if a[j] == a[i] and j != i) for i in every])
        y /= np.sqrt(np.mean(y**2))
    total, weight = np.zeros(6), np.zeros(6)
    np.add.at(total, u, s * y)
    np.add.at(weight, u, np.abs(y))
    got = make("kos", max_iter=4, tol=0.0, seed=3).fit(answers)
    np.testing.assert_allclose(got.posterior[:, 0], 0.5 + 0.5 * total / np.where(weight > 0, weight, 1.0), atol=1e-12)


def test_mmsr_trims_a_clique():
    """Four colluders copy each other: untrimmed they look perfect, trimmed means leave their agreement out."""
    rng = np.random.default_rng(2)
    truth = rng.integers(3, size=400)
    shared = rng.integers(3, size=400)
    rows = []
    for u, t in enumerate(truth):
        rows += [(f"t{u:03d}", f"a{a}", f"c{t if rng.random() < 0.5 else rng.integers(3)}") for a in range(7)]
        rows += [(f"t{u:03d}", f"z{a}", f"c{shared[u]}") for a in range(4)]
    answers = answers_of(*rows)
    trimmed, plain = make("mmsr", trim=0.3).fit(answers), make("mmsr", trim=0.0).fit(answers)
    assert np.mean(trimmed.label == truth) > np.mean(plain.label == truth) + 0.3
    assert trimmed.skill[7:].max() < 0.2 < trimmed.skill[:7].min() and plain.skill[7:].min() > 0.9


def test_glad_halves_steps_that_go_too_far(crowd):
    """Without a prior worth the name and with few votes, full Newton steps overshoot; the objective must not fall."""
    for seed in range(6):
        answers = crowd(units=25, annotators=8, per_unit=5, classes=4, good=1.0, seed=seed).answers
        fitted = make("glad", ability_sd=30.0, ease_sd=3.0, ease_mean=2.0, max_iter=60, tol=0.0).fit(answers)
        assert np.diff(fitted.objective).min() > -1e-7


def test_pair_covariance_counts_common_units():
    answers = answers_of(("t1", "a", "x"), ("t1", "b", "x"), ("t2", "a", "y"), ("t2", "b", "x"), ("t3", "c", "x"))
    covariance, common = pair_covariance(answers)
    assert common.tolist() == [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
    assert covariance[0, 1] == pytest.approx(2 * 0.5 - 1)


class TestCrowdLab:
    def test_agreement_with_co_voters_by_hand(self):
        answers = answers_of(("t1", "a", "x"), ("t1", "b", "x"), ("t1", "c", "y"), ("t2", "a", "y"))
        got = co_agreement(answers, class_totals(answers), empty=-1.0)
        np.testing.assert_allclose(got, [0.5, 0.5, 0.0])

    def test_good_model_helps_and_useless_model_does_not_harm(self, crowd):
        data = crowd(units=400, annotators=10, per_unit=2, good=3.0, seed=1)
        sure = np.full((400, 3), 0.05) + 0.85 * np.eye(3)[data.truth]
        noise = np.random.default_rng(0).dirichlet(np.ones(3), size=400)
        votes = np.mean(MajorityVote().fit(data.answers).label == data.truth)
        good = make("crowdlab").fit(data.answers, probabilities=sure)
        bad = make("crowdlab").fit(data.answers, probabilities=noise)
        assert np.mean(good.label == data.truth) > votes + 0.05
        assert np.mean(bad.label == data.truth) > votes - 0.03
        assert good.parameters["model_weight"][0] > bad.parameters["model_weight"][0]

    def test_units_without_votes_follow_the_model_but_stay_unlabelled(self):
        answers = answers_of(("t1", "a", "x"), ("t1", "b", "x"), classes=["x", "y"], all_units=["t2"])
        result = make("crowdlab").fit(answers, probabilities=np.array([[0.6, 0.4], [0.2, 0.8]]))
        np.testing.assert_allclose(result.posterior[1], [0.2, 0.8])
        assert result.unlabelled.tolist() == [False, True]


class TestOnline:
    def test_agrees_with_batch(self, crowd):
        """The stated tolerance: after the sweeps, 99 % of labels and every posterior within 0.02 on clear data."""
        data = crowd(units=600, annotators=12, per_unit=6, classes=4, seed=11)
        batch = DawidSkene(tol=1e-9, max_iter=500).fit(data.answers)
        online = OnlineDawidSkene(portion=50, sweeps=500, base=DawidSkene(tol=1e-9)).fit(data.answers)
        assert np.mean(batch.label == online.label) >= 0.99
        assert np.abs(batch.posterior - online.posterior).max() < 0.02

    def test_stream_alone_is_close_and_its_counts_stay_exact(self, crowd):
        data = crowd(units=600, annotators=12, per_unit=6, classes=4, seed=12)
        stream = DawidSkeneStream(classes=data.answers.classes)
        unit, annotator, label = data.columns  # rows in random order: units come back again and again
        for first in range(0, len(unit), 97):
            rows = slice(first, first + 97)
            stream.add(unit[rows], annotator[rows], label[rows])
        result = stream.result()
        assert np.mean(result.label == data.truth) > np.mean(DawidSkene().fit(data.answers).label == data.truth) - 0.02
        counts = stream._counts[: len(stream._annotators)].sum()
        assert counts == pytest.approx(len(unit)) and stream._class_counts.sum() == pytest.approx(600)

    def test_grows_and_replaces(self):
        stream = DawidSkeneStream()
        stream.add(["t1", "t2"], ["a", "a"], ["x", None])
        assert stream.posterior("t2") == {} == stream.posterior("never")
        stream.add(["t1", "t3", "t1"], ["b", "c@d.org", "a"], ["y", "z", "y"])
        assert max(stream.posterior("t1"), key=stream.posterior("t1").get) == "y"
        answers = stream.answers()
        assert len(answers) == 3 and answers.shape == (3, 3, 3)
        assert stream.result(sweeps=5).unlabelled.tolist() == [False, True, False]
        assert stream._counts.sum() == pytest.approx(3.0)


def test_gold_teaches_about_annotators():
    """Two against two is a tie until gold shows which two to believe."""
    rows = []
    for i in range(60):
        truth = "xy"[i % 2]
        other = "yx"[i % 2]
        rows += [(f"t{i:02d}", "a", truth), (f"t{i:02d}", "b", truth)]
        rows += [(f"t{i:02d}", "c", other if i % 3 else truth), (f"t{i:02d}", "d", other if (i + 1) % 3 else truth)]
    answers = answers_of(*rows)
    truth = np.array([i % 2 for i in range(60)])
    gold = {f"t{i:02d}": "xy"[i % 2] for i in range(0, 20)}
    for name in ("dawid-skene", "one-coin", "wawa", "iwmv", "mace"):
        result = make(name).fit(answers, gold=gold)
        assert np.mean(result.label == truth) == 1.0, name
        assert result.skill[:2].min() > result.skill[2:].max(), name

from dataclasses import replace

import numpy as np
import pytest

from model import checkpoint
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.crossfit import another_size, newcomers
from model.ensemble.ladder import Ladder, fit
from model.simulate import simulate_annotators


def _rows(votes, keep=lambda annotator: True):
    return [
        Vote(unit=votes.units[u], annotator=votes.annotators[a], control="label", value=votes.values[v])
        for u, a, v in zip(votes.unit, votes.annotator, votes.value, strict=True) if keep(votes.annotators[a])
    ]


@pytest.fixture(scope="module")
def project():
    return simulate_annotators(np.random.default_rng(11), units=120, annotators=5, dim=16)


@pytest.fixture(scope="module")
def before(project, training_set, quick):
    """A ladder that knows all but annotator a2, whose name sorts into the middle."""
    votes = Votes.from_votes(_rows(project.votes, lambda annotator: annotator != "a2"))
    return fit(training_set(replace(project, votes=votes)), quick).ladder


def test_old_annotators_keep_index_and_nearly_their_predictions(project, training_set, quick, before):
    after = fit(training_set(project), quick, previous=before)
    assert after.figures["warm"]
    assert before.annotators == ("a0", "a1", "a3", "a4")
    assert after.ladder.annotators == ("a0", "a1", "a3", "a4", "a2")
    tokens = [project.tokens[f"t{u}"] for u in range(0, 120, 5)]
    old = before.predict(tokens, before.annotators)["label"].served
    new = after.ladder.predict(tokens, before.annotators)["label"].served
    cold = fit(training_set(project), replace(quick, seed=5)).ladder.predict(tokens, before.annotators)["label"].served
    assert np.abs(new - old).mean() < 0.06
    assert np.abs(new - old).mean() < np.abs(cold - old).mean()


def test_the_new_annotator_is_learned(project, training_set, quick, before):
    after = fit(training_set(project), quick, previous=before).ladder
    units = [f"t{u}" for u in range(0, 120, 5)]
    truth = project.probabilities[::5, 2]
    answer = after.predict([project.tokens[u] for u in units], ["a2", "unknown"])["label"].served
    gap = [np.abs(answer[:, person] - truth).mean() for person in range(2)]
    assert gap[0] < gap[1]


def test_a_loaded_ladder_is_as_good_a_start(project, training_set, quick, before, tmp_path):
    before.save(tmp_path / "r1")
    np.testing.assert_array_equal(Ladder.load(tmp_path / "r1").learned, before.learned)
    tokens = [project.tokens["t0"], project.tokens["t5"]]
    answers = [
        fit(training_set(project), quick, previous=start).ladder.predict(tokens, ["a0", "a2"])["label"].served
        for start in (before, Ladder.load(tmp_path / "r1"))
    ]
    np.testing.assert_array_equal(*answers)


def test_a_new_class_and_a_removed_one(project, training_set, quick, before):
    rows = _rows(project.votes) + [
        Vote(unit=f"t{u}", annotator="a9", control="label", value=Value.of_class("maybe")) for u in range(1, 60, 2)
    ]
    wider = replace(project, votes=Votes.from_votes(rows), space=SingleChoice(("maybe", "no", "yes")))
    after = fit(training_set(wider), quick, previous=before)
    tokens = [project.tokens["t0"]]
    served = after.ladder.predict(tokens, ["a0", "a9"])["label"].served
    assert after.figures["warm"] and served.shape == (1, 2, 3)
    assert served[0, 1, 0] > 0.5 > served[0, 0, 0]
    narrower = replace(project, votes=Votes.from_votes(rows), space=SingleChoice(("maybe", "yes")))
    back = fit(training_set(narrower), quick, previous=after.ladder).ladder
    assert back.predict(tokens, ["a0"])["label"].served.shape == (1, 1, 2)


def test_another_shape_starts_afresh(project, training_set, quick, before):
    config = replace(quick, network=replace(quick.network, width=16))
    found = fit(training_set(project), config, previous=before)
    assert not found.figures["warm"]
    assert found.ladder.annotators[:4] == before.annotators  # the index stays all the same


def test_a_newcomer_to_a_mature_project_is_learned_as_well_as_from_scratch(training_set, quick):
    config = replace(quick, network=replace(quick.network, epochs=16, warm_epochs=2))
    project = simulate_annotators(
        np.random.default_rng(1), units=150, annotators=12, dim=16, strength=1.5, temper=3.0
    )
    late = project.votes.annotators.index("a11")
    votes = project.votes.select(project.votes.annotator != late)
    mature = fit(training_set(replace(project, votes=votes)), config).ladder
    units = np.arange(0, 150, 5)
    truth = project.probabilities[units, 11]

    def loss(ladder, name):
        answer = ladder.predict([project.tokens[f"t{u}"] for u in units], ["a11"], consensus=False)["label"]
        return -(truth * np.log(answer.base_models[name][:, 0])).sum(1).mean()

    warm, cold = fit(training_set(project), config, previous=mature), fit(training_set(project), config)
    assert warm.figures["warm"] and warm.figures["epochs"] > config.network.warm_epochs
    assert loss(warm.ladder, "network") < loss(cold.ladder, "network") + 0.05
    assert loss(warm.ladder, "network") < loss(cold.ladder, "prior") - 0.1
    settled = fit(training_set(project), config, previous=warm.ladder)
    assert settled.figures["epochs"] <= config.network.warm_epochs


def _without(project, units):
    """The project without the votes on some tasks."""
    votes = project.votes
    return replace(project, votes=votes.select(~np.isin(votes.unit, [votes.units.index(f"t{u}") for u in units])))


def test_a_few_new_votes_are_learned_in_a_few_steps(project, training_set, quick, tmp_path):
    first = fit(training_set(_without(project, range(1, 120, 15))), quick)
    assert not first.figures["brief"]
    went_on = fit(training_set(project), quick, previous=first.ladder)
    assert went_on.figures["brief"] and went_on.figures["warm"]
    assert 0 < went_on.figures["epochs"] <= quick.network.brief_epochs
    np.testing.assert_array_equal(went_on.ladder.learned, first.ladder.learned)
    old, new = (each.ladder.controls["label"] for each in (first, went_on))
    assert went_on.figures["kept"] == ["label"] and first.figures["kept"] == []
    assert (old.stack.weights, old.panel_noise) == (new.stack.weights, new.panel_noise)
    assert old.pooled.penalty == new.pooled.penalty
    assert not np.array_equal(old.pooled.weight, new.pooled.weight)  # what is said of content is learned again
    assert not np.array_equal(old.base_models["others"].confusion, new.base_models["others"].confusion)
    tokens = [project.tokens[f"t{u}"] for u in range(0, 120, 5)]
    served = [each.ladder.predict(tokens, ["a0", "a2"])["label"].served for each in (first, went_on)]
    assert 0.0 < np.abs(served[0] - served[1]).mean() < 0.05
    first.ladder.save(tmp_path / "r1")
    loaded = fit(training_set(project), quick, previous=Ladder.load(tmp_path / "r1"))
    assert loaded.figures["brief"]
    np.testing.assert_array_equal(loaded.ladder.predict(tokens, ["a0", "a2"])["label"].served, served[1])
    unknown = Ladder.load(_forgetful(tmp_path / "r1", tmp_path / "r0"))
    assert unknown.fingerprint is None and not fit(training_set(project), quick, previous=unknown).figures["brief"]


def _forgetful(folder, other):
    """The checkpoint as it was written before what a training saw was kept."""
    arrays, meta = checkpoint.load(folder)
    checkpoint.save(other, {name: array for name, array in arrays.items() if not name.startswith("seen.")}, meta)
    return other


def test_all_votes_are_gone_through_again_when_they_are_a_quarter_more(project, training_set, quick):
    early = _without(project, [unit for unit in range(120) if unit % 10 in (1, 2, 3, 4)])
    first = fit(training_set(early), quick).ladder
    all_again = fit(training_set(project), quick, previous=first)
    assert all_again.figures["warm"] and not all_again.figures["brief"]
    assert all_again.ladder.learned.sum() > 1.25 * first.learned.sum()


def test_networks_start_from_nothing_again_when_votes_have_doubled(project, training_set, quick, tmp_path):
    few = fit(training_set(_without(project, [unit for unit in range(120) if unit % 20 > 8])), quick).ladder
    more = fit(training_set(_without(project, [unit for unit in range(120) if unit % 20 > 15])), quick, previous=few)
    assert more.figures["warm"] and more.ladder.begun == few.begun  # 1.75 times as many
    more.ladder.save(tmp_path / "r1")
    every = fit(training_set(project), quick, previous=Ladder.load(tmp_path / "r1"))  # 1.25 times; 2.2 since the start
    assert not every.figures["warm"] and not every.figures["brief"]
    assert every.ladder.begun == {"label": every.ladder.learned.sum()}
    assert every.ladder.begun["label"] > 2 * few.begun["label"]
    scratch = fit(training_set(project), quick)
    answers = [each.ladder.predict([project.tokens["t0"]], ["a0"])["label"].served for each in (every, scratch)]
    np.testing.assert_array_equal(*answers)
    assert fit(training_set(project), quick, previous=every.ladder).figures["warm"]
    every.ladder.begun.clear()  # a checkpoint from before this was kept
    assert not fit(training_set(project), quick, previous=every.ladder).figures["warm"]


@pytest.mark.parametrize(("now", "begun", "restart"), [
    ({"a": 200}, {"a": 100}, False),
    ({"a": 201}, {"a": 100}, True),
    ({"a": 50}, {"a": 100}, False),
    ({"a": 49}, {"a": 100}, True),  # the networks would remember what was taken back
    ({"a": 1000, "b": 290}, {"a": 1000, "b": 24}, True),  # a large control does not hide a small one
    ({"a": 1000, "b": 40}, {"a": 1000, "b": 2}, False),  # but few votes do not matter
    ({"a": 1000, "b": 100}, {"a": 1000}, True),  # a new control
    ({"a": 1000}, {"a": 1000, "b": 900}, True),  # one that is gone
    ({"a": 1000}, {"a": 1000, "b": 30}, False),  # one that is gone and did not matter
    ({"a": 0}, {"a": 3}, True),
    ({"a": 10}, {}, True),  # unknown
])
def test_networks_start_from_nothing_for_a_control_of_another_size(now, begun, restart):
    assert another_size(now, begun, 2.0) is restart


def test_other_contents_are_noticed(project, training_set, quick):
    """The configuration may show another field, or texts be replaced, while the votes stay what they are."""
    first = fit(training_set(_without(project, range(1, 120, 15))), quick)
    shown = {unit: -tokens[:, ::-1].copy() for unit, tokens in project.tokens.items()}
    found = fit(training_set(replace(project, tokens=shown)), quick, previous=first.ladder)
    assert not found.figures["warm"] and not found.figures["kept"]
    few = {unit: shown[unit] if int(unit[1:]) in (2, 3, 4) else tokens for unit, tokens in project.tokens.items()}
    found = fit(training_set(replace(project, tokens=few)), quick, previous=first.ladder)
    assert found.figures["brief"] and found.figures["epochs"] > 0
    again = fit(training_set(replace(project, tokens=few)), quick, previous=found.ladder)
    assert again.figures["brief"] and again.figures["epochs"] == 0


def test_votes_on_other_tasks_are_not_those_that_the_networks_began_with(project, training_set, quick):
    first = fit(training_set(_without(project, range(60, 120))), quick)
    found = fit(training_set(_without(project, range(60))), quick, previous=first.ladder)
    assert not found.figures["warm"]


def test_votes_on_heldout_tasks_alone_train_no_network(project, training_set, quick):
    """They are judged by, and a fifth of all votes; so a training after one of them must not go through everything."""
    first = fit(training_set(_without(project, range(0, 120, 15))), quick)
    again = fit(training_set(project), quick, previous=first.ladder)
    assert again.figures["brief"] and again.figures["epochs"] == 0 and again.figures["kept"] == ["label"]
    tokens = [project.tokens["t1"], project.tokens["t5"]]
    networks = [each.ladder.predict(tokens, ["a0", "a2"])["label"].network for each in (first, again)]
    np.testing.assert_array_equal(*networks)
    counts = [len(each.heldout["label"].targets) for each in (first, again)]
    assert counts[0] < counts[1]


def test_who_is_a_newcomer():
    learned = np.array([1000, 1000, 0])
    assert newcomers(np.array([1100, 1000, 39]), learned).tolist() == [False, False, False]  # too few to matter
    assert newcomers(np.array([1100, 1000, 40]), learned).tolist() == [False, False, True]
    assert newcomers(np.array([30, 30, 4]), np.array([30, 30, 0])).tolist() == [False, False, True]  # few votes in all
    assert newcomers(np.array([1100, 1000, 80]), np.array([1000, 1000, 40])).tolist() == [False, False, False]
    assert not newcomers(np.empty(0, int), np.empty(0, int)).any()


def test_other_folds_start_afresh(project, training_set, quick, before):
    """A member would be stopped on, and score, votes that it was trained on."""
    found = fit(training_set(project), replace(quick, folds=1, members_per_fold=3), previous=before)
    assert found.ladder.committee.network.members == before.committee.network.members
    assert not found.figures["warm"]

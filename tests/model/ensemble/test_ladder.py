import json
from dataclasses import replace

import numpy as np
import pytest

from model.data.spaces import Value
from model.data.votes import Provenance, Vote, Votes
from model.ensemble.ladder import Ladder, LadderConfig, TrainingSet, fit
from model.errors import CheckpointError, ModelError
from model.simulate import simulate_annotators

UNITS = ("t1", "t2", "t3")


def _tokens(simulated, units=UNITS):
    return [simulated.tokens[unit] for unit in units]


def test_predictions_are_distributions_of_the_right_shape(fitted, simulated):
    found = fitted.ladder.predict(_tokens(simulated), ["a2", "a0"])["label"]
    for array in (found.served, found.network, *found.base_models.values()):
        assert array.shape == (3, 2, 3)
        np.testing.assert_allclose(array.sum(-1), 1.0)
    assert found.base_models.keys() == {"prior", "pooled", "network", "conditioned", "others", "factors"}
    assert found.consensus.shape == (3, 3)
    np.testing.assert_allclose(found.consensus.sum(-1), 1.0)
    np.testing.assert_array_equal(found.network, found.base_models["network"])


def test_units_and_annotators_are_answered_in_the_order_asked(fitted, simulated):
    one = fitted.ladder.predict(_tokens(simulated), ["a0", "a1", "a2"])["label"].served
    other = fitted.ladder.predict(_tokens(simulated, UNITS[::-1]), ["a2", "a0", "a1"])["label"].served
    np.testing.assert_allclose(other, one[::-1][:, [2, 0, 1]], atol=1e-6)


def test_many_units_are_answered_as_each_alone(fitted, simulated):
    units = [unit for unit in simulated.tokens for _ in range(3)]  # more than one internal batch
    together = fitted.ladder.predict(_tokens(simulated, units), ["a0"])["label"]
    alone = fitted.ladder.predict(_tokens(simulated, units[-1:]), ["a0"])["label"]
    assert len(units) > 256
    np.testing.assert_allclose(together.served[-1], alone.served[0], atol=1e-6)
    np.testing.assert_allclose(together.consensus[-1], alone.consensus[0], atol=1e-6)


def test_annotators_get_answers_of_their_own_and_unknown_ones_the_generic(fitted, simulated):
    found = fitted.ladder.predict(_tokens(simulated), ["a0", "a1", "nobody", "nobody else"])["label"].served
    assert np.abs(found[:, 0] - found[:, 1]).max() > 0.05
    np.testing.assert_array_equal(found[:, 2], found[:, 3])
    assert np.abs(found[:, 2] - found[:, 0]).max() > 0.01


def test_no_units_no_annotators(fitted, simulated):
    assert fitted.ladder.predict([], ["a0"])["label"].served.shape == (0, 1, 3)
    found = fitted.ladder.predict(_tokens(simulated), [])["label"]
    assert found.served.shape == (3, 0, 3) and found.consensus.shape == (3, 3)


def test_given_votes_move_the_consensus_and_what_others_are_served(fitted, simulated):
    everybody = Votes.from_votes(
        Vote(unit="t2", annotator=f"a{a}", control="label", value=Value.of_class("maybe")) for a in range(4)
    )
    stranger = Votes.from_votes([Vote(unit="t3", annotator="x", control="label", value=Value.of_class("yes"))])
    plain = fitted.ladder.predict(_tokens(simulated), ["a0"], units=UNITS)["label"]
    given = fitted.ladder.predict(_tokens(simulated), ["a0"], units=UNITS, given=everybody)["label"]
    np.testing.assert_allclose(given.consensus[1], [0.0, 1.0, 0.0])
    np.testing.assert_array_equal(given.consensus[[0, 2]], plain.consensus[[0, 2]])
    np.testing.assert_array_equal(given.served[[0, 2]], plain.served[[0, 2]])
    assert given.served[1, 0, 1] > plain.served[1, 0, 1]
    np.testing.assert_array_equal(given.network, plain.network)
    moved = fitted.ladder.predict(_tokens(simulated), [], units=UNITS, given=stranger)["label"].consensus
    assert moved[2, 2] > plain.consensus[2, 2]
    with pytest.raises(ModelError, match="named"):
        fitted.ladder.predict(_tokens(simulated), [], given=everybody)


@pytest.mark.parametrize("wrong", [np.zeros((2, 5), np.float16), np.full((2, 16), np.nan, np.float16)])
def test_unusable_tokens(fitted, wrong):
    with pytest.raises(ModelError, match="unit t9"):
        fitted.ladder.predict([wrong], ["a0"], units=["t9"])


def test_figures_are_json_and_complete(fitted):
    figures = json.loads(json.dumps(fitted.figures, allow_nan=False))
    control = figures["controls"]["label"]
    for part in ("heldout", "cross_validation"):
        assert control[part].keys() == {"served", "prior", "pooled", "network"}
        assert {"accuracy", "log_loss", "brier", "ece", "votes"} <= control[part]["served"].keys()
    assert sum(control["weights"].values()) == pytest.approx(1.0)
    assert figures["heldout_units"] == 24 and figures["annotators"] == 4


def test_content_was_learned(fitted):
    losses = {way: item["log_loss"] for way, item in fitted.figures["controls"]["label"]["heldout"].items()}
    assert losses["served"] < losses["prior"] - 0.03


def test_saved_and_loaded_it_answers_the_same(fitted, simulated, tmp_path):
    fitted.ladder.save(tmp_path / "r1")
    loaded = Ladder.load(tmp_path / "r1")
    assert loaded.annotators == fitted.ladder.annotators and loaded.spaces == fitted.ladder.spaces
    assert loaded.config == fitted.ladder.config
    before = fitted.ladder.predict(_tokens(simulated), ["a0", "new"])["label"]
    after = loaded.predict(_tokens(simulated), ["a0", "new"])["label"]
    np.testing.assert_array_equal(before.served, after.served)
    np.testing.assert_array_equal(before.consensus, after.consensus)


def test_without_a_network_it_is_kept_all_the_same(quick, tmp_path):
    Ladder(annotators=("1", "2"), controls={}, committee=None, dim=0, config=quick).save(tmp_path / "bare")
    loaded = Ladder.load(tmp_path / "bare")
    assert not loaded.reads and loaded.annotators == ("1", "2") and loaded.spaces == {}
    assert loaded.predict([np.zeros((0, 0), np.float16)], ["1"], units=["7"]) == {}
    with pytest.raises(ModelError, match="no network"):
        loaded.committee.scores([])


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    from model import checkpoint

    checkpoint.save(tmp_path / "r1", {"a": np.zeros(1)}, {"annotators": []})
    with pytest.raises(CheckpointError, match="r1"):
        Ladder.load(tmp_path / "r1")


def test_same_seed_same_bits(simulated, training_set, quick, fitted):
    again = fit(training_set(simulated), quick)
    first, second = (f.ladder.predict(_tokens(simulated), ["a0", "a1"])["label"] for f in (fitted, again))
    np.testing.assert_array_equal(first.served, second.served)
    np.testing.assert_array_equal(first.consensus, second.consensus)
    other = fit(training_set(simulated), replace(quick, seed=1))
    assert np.abs(other.ladder.predict(_tokens(simulated), ["a0"])["label"].served - first.served[:, :1]).max() > 1e-6


def test_heldout_votes_teach_nothing(simulated, training_set, quick, fitted):
    votes = simulated.votes
    out = np.array([int(unit[1:]) % 5 == 0 for unit in votes.units])[votes.unit]
    flipped = replace(votes, value=np.where(out, (votes.value + 1) % len(votes.values), votes.value))
    other = fit(training_set(replace(simulated, votes=flipped)), quick)
    first, second = (f.ladder.predict(_tokens(simulated), ["a0"])["label"].served for f in (fitted, other))
    np.testing.assert_array_equal(first, second)
    assert other.figures["controls"]["label"]["heldout"] != fitted.figures["controls"]["label"]["heldout"]


def test_unscored_votes_neither_score_nor_calibrate(simulated, training_set, quick):
    rng = np.random.default_rng(0)
    votes = replace(simulated.votes, scored=rng.random(len(simulated.votes)) < 0.5)
    found = fit(training_set(replace(simulated, votes=votes)), quick)
    figures = found.figures["controls"]["label"]
    heldout = np.array([int(unit[1:]) % 5 == 0 for unit in votes.units])[votes.unit]
    assert figures["heldout"]["served"]["votes"] == int((heldout & votes.scored).sum())
    assert figures["cross_validation"]["served"]["votes"] == int((~heldout & votes.scored).sum())
    none = replace(votes, scored=np.zeros(len(votes), bool))
    uncalibrated = fit(training_set(replace(simulated, votes=none)), quick).ladder.controls["label"].stack
    assert uncalibrated.temperature == pytest.approx(1.0) and not uncalibrated.bias.any()


def test_echoes_teach_less(simulated, training_set, quick):
    """What an annotator merely accepted says less of how often they give a label."""
    votes = simulated.votes
    mine = votes.annotator == votes.annotators.index("a0")
    echo = replace(votes, provenance=np.where(mine, Provenance.ACCEPTED, Provenance.MANUAL).astype(np.int8))
    manual = fit(training_set(simulated), quick).ladder.controls["label"].prior
    echoed = fit(training_set(replace(simulated, votes=echo)), quick).ladder.controls["label"].prior
    training = mine & np.array([int(unit[1:]) % 5 > 0 for unit in votes.units])[votes.unit]
    labels = np.array([simulated.space.classes.index(value.data) for value in votes.values])[votes.value[training]]
    own = np.bincount(labels, minlength=3) / len(labels)
    assert np.abs(echoed[0] - own).sum() > 1.5 * np.abs(manual[0] - own).sum()


def test_several_controls_at_once(quick):
    single = simulate_annotators(np.random.default_rng(1), units=60, annotators=3, control="tone", dim=12)
    multiple = simulate_annotators(
        np.random.default_rng(2), units=60, annotators=4, control="topics", classes=("x", "y", "z"), multiple=True,
        dim=12,
    )
    rows = []
    for project in (single, multiple):
        v = project.votes
        rows += [
            Vote(unit=v.units[u], annotator=v.annotators[a], control=v.controls[0], value=v.values[i])
            for u, a, i in zip(v.unit, v.annotator, v.value, strict=True)
        ]
    data = TrainingSet(
        votes=Votes.from_votes(rows), spaces={"tone": single.space, "topics": multiple.space, "unused": single.space},
        tokens=lambda units: [single.tokens[unit] for unit in units], heldout=lambda unit: int(unit[1:]) % 5 == 0,
    )
    ladder = fit(data, quick).ladder
    found = ladder.predict(_tokens(single), ["a0", "a3"])
    assert found.keys() == {"tone", "topics"}
    np.testing.assert_allclose(found["tone"].served.sum(-1), 1.0)
    assert found["topics"].served.shape == (3, 2, 3)
    assert ((found["topics"].served > 0) & (found["topics"].served < 1)).all()
    assert (found["topics"].consensus >= 0).all() and (found["topics"].consensus <= 1).all()
    assert ladder.controls["tone"].panel.tolist() == [True, True, True, False]


def test_paper_preset_trains(simulated, training_set):
    config = LadderConfig.preset("paper")
    config = replace(config, network=replace(config.network, width=24, epochs=2))
    found = fit(training_set(simulated), config)
    assert found.ladder.committee.network.members == 2
    assert np.isfinite(found.figures["controls"]["label"]["heldout"]["served"]["log_loss"])


def test_progress_is_told_and_may_stop_the_job(simulated, training_set, quick):
    seen = []
    fit(training_set(simulated), quick, progress=lambda share, note: seen.append(share))
    assert seen == sorted(seen) and seen[0] == 0.0 and seen[-1] == 1.0 and len(seen) > 6

    class Stopped(Exception):
        pass

    def stop(share, note):
        if share > 0.1:
            raise Stopped

    with pytest.raises(Stopped):
        fit(training_set(simulated), quick, progress=stop)

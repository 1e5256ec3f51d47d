"""Newcomers beside a ladder: nobody else is touched, and no vote of theirs comes back to them."""

from dataclasses import replace

import numpy as np
import pytest

from model.coldstart.adapting import LITTLE, adapt, is_newcomer
from model.data.spaces import SingleChoice
from model.data.votes import Vote, Votes

NEW = "newcomer"


def _votes(space, units, labels, who=NEW):
    from model.data.spaces import Value

    return Votes.from_votes(
        Vote(unit=unit, annotator=who, control="label", value=Value.of_class(label), time=float(at))
        for at, (unit, label) in enumerate(zip(units, labels, strict=True)))


@pytest.fixture(scope="module")
def ladder(fitted):
    return fitted.ladder


def _adapted(ladder, simulated, votes, **more):
    features = dict(zip(votes.units, ladder.features([simulated.tokens[unit] for unit in votes.units]), strict=True))
    return adapt(ladder, NEW, votes, features, **more)


def _asked(ladder, simulated, units, annotators, **more):
    tokens = [simulated.tokens[unit] for unit in units]
    return ladder.predict(tokens, annotators, units=units, consensus=True, **more)["label"]


def test_who_is_a_newcomer(ladder):
    assert is_newcomer(ladder, "nobody yet")
    assert ladder.trained_on("a0") > LITTLE and not is_newcomer(ladder, "a0")


def test_votes_move_the_newcomer_and_nobody_else(ladder, simulated):
    units = [f"t{u}" for u in range(5)]
    votes = _votes(simulated.space, units, ["maybe"] * 5)
    one = _adapted(ladder, simulated, votes)
    new = ["t50", "t51", "t52"]
    plain = _asked(ladder, simulated, new, [NEW, "a0", "stranger"])
    moved = _asked(ladder, simulated, new, [NEW, "a0", "stranger"], newcomers={NEW: one})
    assert (moved.served[:, 0, 1] > plain.served[:, 0, 1] + 0.1).all()
    np.testing.assert_array_equal(moved.served[:, 1:], plain.served[:, 1:])
    np.testing.assert_array_equal(moved.consensus, plain.consensus)
    np.testing.assert_allclose(moved.served.sum(-1), 1.0)


def test_the_vote_on_a_unit_never_comes_back_to_the_newcomer(ladder, simulated):
    """What they said of a unit does not change what is expected of them there."""
    units = [f"t{u}" for u in range(8)]
    found = []
    for last in ("no", "yes"):
        votes = _votes(simulated.space, units, ["maybe", "no", "yes", "no", "yes", "no", "maybe", last])
        one = _adapted(ladder, simulated, votes)
        given = votes.select(np.flatnonzero(votes.unit == votes.units.index("t7")))
        found.append(_asked(ladder, simulated, ["t7", "t60"], [NEW, "a0"], newcomers={NEW: one}, given=given))
    np.testing.assert_array_equal(found[0].served[0, 0], found[1].served[0, 0])
    assert np.abs(found[0].served[1, 0] - found[1].served[1, 0]).max() > 1e-3  # elsewhere it teaches


def test_a_unit_voted_on_that_taught_nothing_is_left_as_it_is(ladder, simulated):
    votes = _votes(simulated.space, ["t0", "t1"], ["maybe", "maybe"])
    one = _adapted(ladder, simulated, votes, voted={"t2"})
    plain = _asked(ladder, simulated, ["t2"], [NEW])
    np.testing.assert_array_equal(_asked(ladder, simulated, ["t2"], [NEW], newcomers={NEW: one}).served, plain.served)


def test_contents_that_are_not_at_hand_and_foreign_values_are_left_out(ladder, simulated):
    votes = _votes(simulated.space, ["t0", "t1", "t2"], ["maybe", "strange", "no"])
    features = {"t0": ladder.features([simulated.tokens["t0"]])[0], "t1": ladder.features([simulated.tokens["t1"]])[0]}
    one = adapt(ladder, NEW, votes, features)
    assert one is not None and one.controls["label"].votes == 1 and one.units == {"t0", "t1", "t2"}
    assert adapt(ladder, NEW, votes, {}) is None
    assert adapt(ladder, "somebody else", votes, features) is None


def test_the_order_of_rows_does_not_matter_but_their_time(ladder, simulated):
    units = [f"t{u}" for u in range(6)]
    votes = _votes(simulated.space, units, ["no", "yes", "maybe", "no", "yes", "maybe"])
    turned = votes.select(np.arange(6)[::-1])
    first, second = (_adapted(ladder, simulated, each).controls["label"].weights for each in (votes, turned))
    np.testing.assert_array_equal(first, second)
    later = replace(votes, time=votes.time[::-1].copy())
    assert np.abs(_adapted(ladder, simulated, later).controls["label"].weights - first).max() > 0


def test_a_control_with_one_class_teaches_nothing_and_stops_nothing(ladder, simulated):
    """A single box to tick is a class of its own."""
    one = SingleChoice(("maybe",))
    state = ladder.controls["label"]
    prior = replace(state.base_models["prior"], table=np.ones((len(ladder.annotators) + 1, 1)))
    odd = ladder.having({"label": state, "box": replace(
        state, space=one, base_models={**state.base_models, "prior": prior})})
    votes = _votes(simulated.space, ["t0", "t1"], ["maybe", "maybe"])
    both = replace(votes, controls=("label", "box"), control=np.array([0, 1], votes.control.dtype))
    assert set(_adapted(odd, simulated, both).controls) == {"label"}

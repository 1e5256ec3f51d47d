"""Projects at the edge: each works, or ends with one clear sentence."""

import json

import numpy as np
import pytest

from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.ladder import TrainingSet, fit, judge
from model.errors import ModelError, NotEnoughVotes

SPACE = SingleChoice(("x", "y"))


def _data(votes, space=SPACE, *, heldout=lambda unit: False, tokens=None, anonymous=lambda annotator: False):
    rng = np.random.default_rng(0)
    content = {vote.unit: rng.normal(size=(3, 8)).astype(np.float16) for vote in votes}
    return TrainingSet(
        votes=Votes.from_votes(votes), spaces={"c": space}, heldout=heldout,
        tokens=tokens or (lambda units: [content[unit] for unit in units]), anonymous=anonymous,
    )


def _vote(unit, annotator, label):
    return Vote(unit=str(unit), annotator=annotator, control="c", value=Value.of_class(label))


PROJECTS = {
    "one vote": ([_vote(1, "a", "x")], SPACE),
    "one unit": ([_vote(1, "a", "x"), _vote(1, "b", "y")], SPACE),
    "one annotator": ([_vote(u, "a", "xy"[u % 2]) for u in range(24)], SPACE),
    "one class seen": ([_vote(u, "ab"[u % 2], "x") for u in range(24)], SPACE),
    "one class in all": ([_vote(u, "ab"[u % 2], "x") for u in range(24)], SingleChoice(("x",))),
    "no overlap": ([_vote(u, "abc"[u % 3], "xy"[u % 2]) for u in range(30)], SPACE),
    "an annotator with one vote": ([_vote(u, "a", "xy"[u % 2]) for u in range(20)] + [_vote(3, "b", "y")], SPACE),
    "several choices, always none": (
        [Vote(unit=str(u), annotator="a", control="c", value=Value.of_classes([])) for u in range(12)],
        MultipleChoice(("p",)),
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_it_works(name, quick, tmp_path):
    votes, space = PROJECTS[name]
    data = _data(votes, space)
    found = fit(data, quick)
    json.dumps(found.figures, allow_nan=False)
    found.ladder.save(tmp_path / "r1")
    answer = found.ladder.predict(data.tokens(["1"]), ["a", "new"])["c"]
    for array in (answer.served, answer.network, answer.consensus, *answer.base_models.values()):
        assert np.isfinite(array).all() and (array >= 0).all() and (array <= 1).all()
    verdict = judge(found, None, data, quick)
    assert verdict.publish and verdict.reason.endswith(".")
    json.dumps(verdict.figures, allow_nan=False)


def test_identical_features(quick):
    votes = [_vote(u, "ab"[u % 2], "xy"[u % 2]) for u in range(24)]
    same = np.ones((2, 8), np.float16)
    found = fit(_data(votes, tokens=lambda units: [same] * len(units)), quick)
    answer = found.ladder.predict([same], ["a", "b"])["c"].served[0]
    assert answer[0, 0] > 0.6 and answer[1, 1] > 0.6


def test_no_votes(quick):
    with pytest.raises(NotEnoughVotes):
        fit(_data([]), quick)


def test_nan_features_name_the_unit(quick):
    bad = np.full((2, 8), np.nan, np.float16)
    with pytest.raises(ModelError, match=r"unit \d+ contain NaN"):
        fit(_data([_vote(u, "a", "x") for u in range(9)], tokens=lambda units: [bad] * len(units)), quick)


def test_everything_held_out(quick):
    with pytest.raises(NotEnoughVotes, match="held out"):
        fit(_data([_vote(1, "a", "x")], heldout=lambda unit: True), quick)


def test_the_anonymous_teach_but_have_no_seat(quick):
    """Votes that nobody stands behind any more: no query, no seat in the panel, no score; yet they teach."""
    people = [_vote(u, name, "xy"[u % 2]) for u in range(24) for name in "ab"]
    gone = [_vote(u, f"gone:{u}", "x") for u in range(24)]
    found = fit(_data(people + gone, anonymous=lambda annotator: annotator.startswith("gone:")), quick)
    assert found.ladder.annotators == ("a", "b")
    assert found.ladder.committee.network.annotators == 2
    state = found.ladder.controls["c"]
    assert state.panel.tolist() == [True, True]
    assert state.prior[-1, 0] > 0.6  # 48 of 72 votes
    assert len(found.cross_validation["c"].targets) == 48
    given = Votes.from_votes([_vote(1, name, "y") for name in "ab"])
    tokens = [np.zeros((2, 8), np.float16)]
    agreed = found.ladder.predict(tokens, [], units=["1"], given=given)["c"].consensus
    np.testing.assert_allclose(agreed, [[0.0, 1.0]])
    again = fit(_data(people + gone, anonymous=lambda annotator: annotator == "a"), quick, previous=found.ladder)
    assert not again.figures["warm"] and "a" not in again.ladder.annotators


def test_all_votes_anonymous(quick):
    votes = [_vote(u, "gone", "xy"[u % 2]) for u in range(12)]
    found = fit(_data(votes, anonymous=lambda annotator: True), quick)
    answer = found.ladder.predict([np.zeros((2, 8), np.float16)], ["a"])["c"]
    np.testing.assert_allclose(answer.served.sum(-1), 1.0)
    np.testing.assert_allclose(answer.consensus, [[0.5, 0.5]])

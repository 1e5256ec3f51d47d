"""Projects at the edge: each works, or ends with one clear sentence."""

import json

import numpy as np
import pytest

from model.ensemble.ladder import TrainingSet, fit, judge
from model.errors import ModelError, NotEnoughVotes
from model.spaces import MultipleChoice, SingleChoice, Value
from model.votes import Vote, Votes

SPACE = SingleChoice(("x", "y"))


def _data(votes, space=SPACE, *, heldout=lambda unit: False, tokens=None):
    rng = np.random.default_rng(0)
    content = {vote.unit: rng.normal(size=(3, 8)).astype(np.float16) for vote in votes}
    return TrainingSet(
        votes=Votes.from_votes(votes), spaces={"c": space}, heldout=heldout,
        tokens=tokens or (lambda units: [content[unit] for unit in units]),
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
    for array in (answer.served, answer.network, answer.consensus, *answer.rungs.values()):
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

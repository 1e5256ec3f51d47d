"""Answers from votes alone: before a training, and for units without content."""

import subprocess
import sys

import numpy as np
import pytest

from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.first_votes import FirstVotes
from model.errors import NotEnoughVotes

SPACE = SingleChoice(("x", "y"))


def _vote(unit, annotator, label):
    return Vote(unit=str(unit), annotator=annotator, control="c", value=Value.of_class(label))


def _no_content(units):
    raise AssertionError("nobody needs the content")


def _first(votes, space=SPACE):
    data = TrainingSet(
        votes=Votes.from_votes(votes), spaces={"c": space}, tokens=_no_content, heldout=lambda unit: False
    )
    return FirstVotes(data, LadderConfig())


@pytest.fixture(scope="module")
def twelve():
    """Two who agree and one who says the opposite, on twelve units."""
    said = {"a": "xy", "b": "xy", "c": "yx"}
    return [_vote(u, who, labels[u % 2]) for u in range(12) for who, labels in said.items()]


def test_it_answers_from_the_first_votes_on(twelve):
    given = Votes.from_votes([_vote("new", "a", "x")])
    found = _first(twelve).predict(["new", "empty"], ["b", "c", "nobody"], given)["c"]
    assert found.served[0, 0, 0] > 0.7 and found.served[0, 1, 0] < 0.4
    np.testing.assert_allclose(found.served[1], found.base_models["prior"][1])
    assert found.consensus[0, 0] > found.consensus[1, 0]
    np.testing.assert_allclose(found.served.sum(-1), 1.0)


@pytest.mark.parametrize("who", ["a", "stranger"])
def test_no_vote_comes_back(twelve, who):
    first = _first(twelve)
    ways = [
        first.predict(["new"], [who, "b"], Votes.from_votes([_vote("new", who, label), _vote("new", "c", "x")]))["c"]
        for label in ("x", "y")
    ]
    np.testing.assert_array_equal(ways[0].served[0, 0], ways[1].served[0, 0])
    assert np.abs(ways[0].served[0, 1] - ways[1].served[0, 1]).max() > 0.05


def test_one_vote_is_enough_and_none_is_not():
    found = _first([_vote(1, "a", "x")]).predict(["2"], ["a"], Votes.from_votes([]))["c"]
    assert found.served[0, 0, 0] > 0.5
    with pytest.raises(NotEnoughVotes):
        _first([])


def test_sets_of_classes():
    space = MultipleChoice(("p", "q"))
    votes = [
        Vote(unit=str(u), annotator=who, control="c", value=Value.of_classes(["p"] if u % 2 else ["q"]))
        for u in range(10) for who in "abc"
    ]
    given = Votes.from_votes([Vote(unit="n", annotator="a", control="c", value=Value.of_classes(["p"]))])
    served = _first(votes, space).predict(["n"], ["b"], given)["c"].served
    assert served[0, 0, 0] > 0.7 and served[0, 0, 1] < 0.3


def test_it_loads_no_torch():
    code = "import sys, model.ensemble.first_votes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

import numpy as np
import pytest

from model.config import LadderConfig
from model.data.dataset import TrainingSet, build_dataset, check_tokens
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Provenance, Vote, Votes
from model.errors import ModelError, NotEnoughVotes


def _set(votes, spaces, heldout=lambda unit: False):
    return TrainingSet(votes=Votes.from_votes(votes), spaces=spaces, tokens=lambda units: [], heldout=heldout)


def _vote(unit, annotator, label, control="c", **more):
    return Vote(unit=unit, annotator=annotator, control=control, value=Value.of_class(label), **more)


SPACE = {"c": SingleChoice(("x", "y"))}


def test_votes_outside_the_space_or_without_one_are_left_out():
    votes = [
        _vote("1", "a", "x"), _vote("2", "b", "gone"), _vote("3", "c", "x", control="other"),
        _vote("4", "d", "y", weight=0.0),
    ]
    dataset = build_dataset(_set(votes, SPACE), LadderConfig())
    assert dataset.units == ("1",)
    assert dataset.annotators == ("a",)
    assert list(dataset.controls) == ["c"]
    np.testing.assert_array_equal(dataset.controls["c"].y, [[1, 0]])


def test_known_annotators_keep_their_index():
    votes = [_vote("1", "a", "x"), _vote("1", "m", "x"), _vote("1", "z", "y")]
    dataset = build_dataset(_set(votes, SPACE), LadderConfig(), known=("z", "gone"))
    assert dataset.annotators == ("z", "gone", "a", "m")
    assert sorted(dataset.controls["c"].annotator) == [0, 2, 3]


def test_echoes_weigh_less():
    votes = [_vote("1", "a", "x", provenance=Provenance.ACCEPTED), _vote("2", "a", "x", provenance=Provenance.CHANGED)]
    dataset = build_dataset(_set(votes, SPACE), LadderConfig(echo_weight=0.25))
    weights = dict(zip(dataset.controls["c"].unit, dataset.controls["c"].weight, strict=True))
    assert weights == {0: 0.25, 1: 1.0}


def test_regions_of_a_task_share_a_fold_and_heldout_units_have_none():
    votes = [_vote(f"{task}/{region}", "a", "x") for task in range(40) for region in "pqr"]
    dataset = build_dataset(_set(votes, SPACE, lambda unit: unit.startswith("7/")), LadderConfig())
    folds = {}
    for unit, fold, out in zip(dataset.units, dataset.fold, dataset.heldout, strict=True):
        folds.setdefault(unit.split("/")[0], set()).add(int(fold))
        assert out == (fold == -1) == unit.startswith("7/")
    assert all(len(found) == 1 for found in folds.values())
    assert set.union(*folds.values()) == {-1, 0, 1, 2, 3}


def test_several_controls_share_units():
    votes = [_vote("1", "a", "x"), Vote(unit="2", annotator="b", control="m", value=Value.of_classes(["p", "q"]))]
    dataset = build_dataset(_set(votes, SPACE | {"m": MultipleChoice(("p", "q", "r"))}), LadderConfig())
    assert dataset.units == ("1", "2")
    np.testing.assert_array_equal(dataset.controls["m"].y, [[1, 1, 0]])


@pytest.mark.parametrize("votes", [[], [_vote("1", "a", "gone")]])
def test_nothing_usable(votes):
    with pytest.raises(NotEnoughVotes, match="no votes"):
        build_dataset(_set(votes, SPACE), LadderConfig())


def test_everything_held_out():
    with pytest.raises(NotEnoughVotes, match="held out"):
        build_dataset(_set([_vote("1", "a", "x")], SPACE, lambda unit: True), LadderConfig())


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([np.zeros((0, 3))], "at least one token"),
        ([np.zeros(3)], "at least one token"),
        ([np.full((2, 3), np.nan)], "NaN"),
        ([np.full((2, 3), np.inf)], "NaN or infinity"),
        ([np.zeros((2, 4))], "dimension 4, not 3"),
        ([], "the tokens of 0 came back"),
    ],
)
def test_unusable_tokens_name_the_unit(tokens, message):
    with pytest.raises(ModelError, match=message):
        check_tokens(["u"], tokens, 3)

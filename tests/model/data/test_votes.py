import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.data.spaces import Value
from model.data.votes import Provenance, Vote, Votes
from model.errors import ModelError

VOTE = st.builds(
    Vote,
    unit=st.sampled_from(["1", "2", "10"]),
    annotator=st.sampled_from(["5", "6", "deleted:9"]),
    control=st.sampled_from(["mood", "topics"]),
    value=st.sampled_from([Value.of_class("a"), Value.of_class("b"), Value.of_classes(["a"]), Value.of_number(2)]),
    time=st.floats(0, 2e9),
    weight=st.sampled_from([0.25, 1.0]),
    provenance=st.sampled_from(Provenance),
    scored=st.booleans(),
)


def rows(votes):
    return [
        Vote(
            votes.units[votes.unit[i]], votes.annotators[votes.annotator[i]], votes.controls[votes.control[i]],
            votes.values[votes.value[i]], float(votes.time[i]), float(votes.weight[i]),
            Provenance(votes.provenance[i]), bool(votes.scored[i]),
        )
        for i in range(len(votes))
    ]


@settings(derandomize=True, max_examples=100)
@given(st.lists(VOTE, max_size=12))
def test_every_vote_comes_back_in_order(votes):
    assert rows(Votes.from_votes(votes)) == votes


@settings(derandomize=True, max_examples=50)
@given(st.lists(VOTE, max_size=8).flatmap(lambda votes: st.tuples(st.just(votes), st.permutations(votes))))
def test_the_tables_do_not_depend_on_the_order_of_rows(both):
    one, other = map(Votes.from_votes, both)
    for table in ("units", "annotators", "controls", "values"):
        assert getattr(one, table) == getattr(other, table)


@settings(derandomize=True, max_examples=50)
@given(st.lists(VOTE, max_size=12), st.sampled_from(["mood", "topics", "gone"]))
def test_the_votes_of_a_control(votes, control):
    all_votes = Votes.from_votes(votes)
    of_one = all_votes.of_control(control)
    assert rows(of_one) == [vote for vote in votes if vote.control == control]
    assert of_one.units == all_votes.units and of_one.values == all_votes.values


def test_rows_are_selected_by_mask_and_by_index():
    votes = Votes.from_votes([Vote(str(unit), "5", "mood", Value.of_class("a"), time=unit) for unit in range(4)])
    assert votes.select(np.array([3, 1])).time.tolist() == [3.0, 1.0]
    assert votes.select(np.array([True, False, True, False])).time.tolist() == [0.0, 2.0]


def test_types_of_the_columns():
    votes = Votes.from_votes([Vote("1", "5", "mood", Value.of_class("a"))])
    types = {field.name: getattr(votes, field.name).dtype for field in dataclasses.fields(votes)[4:]}
    assert {name: kind.name for name, kind in types.items()} == {
        "unit": "int32", "annotator": "int32", "control": "int32", "value": "int32", "time": "float64",
        "weight": "float32", "provenance": "int8", "scored": "bool",
    }


def test_no_votes_are_votes():
    none = Votes.from_votes([])
    assert len(none) == 0 and none.units == () and len(none.of_control("mood")) == 0


def test_columns_of_different_length_are_refused():
    votes = Votes.from_votes([Vote("1", "5", "mood", Value.of_class("a"))])
    with pytest.raises(ModelError, match="differ in length"):
        dataclasses.replace(votes, time=np.zeros(2))

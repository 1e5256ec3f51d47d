import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.data.numbers import number_bins
from model.data.spaces import MultipleChoice, SingleChoice, Value, ValueKind
from model.errors import ModelError

cases = settings(derandomize=True, max_examples=100)
NAMES = st.lists(st.text(max_size=5), min_size=1, max_size=6, unique=True).map(tuple)
PATHS = st.lists(st.lists(st.text(max_size=3), max_size=3).map(tuple), max_size=3).map(tuple)
VALUES = st.one_of(
    st.builds(Value.of_class, st.text()),
    st.builds(Value.of_classes, st.lists(st.text(max_size=4), max_size=4)),
    st.builds(Value.of_number, st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(Value, st.sampled_from([ValueKind.PATHS, ValueKind.RANKING]), PATHS),
    st.builds(Value, st.just(ValueKind.TEXT), st.text()),
)


@cases
@given(VALUES)
def test_every_value_comes_back_from_its_json(value):
    assert Value.from_json(value.kind.value, value.to_json()) == value


def test_a_set_of_classes_has_one_form():
    assert Value.of_classes(["b", "a", "b"]) == Value.of_classes(("a", "b"))
    assert Value.of_classes(["b", "a"]).to_json() == '["a","b"]'
    assert hash(Value.of_classes([])) == hash(Value.of_classes(()))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("odour", '"a"'), ("class", "3"), ("class", "["), ("number", '"3"'), ("number", "true"), ("classes", '"a"'),
        ("classes", "[1]"), ("paths", '["a"]'), ("ranking", "[[1]]"), ("text", "null"),
    ],
)
def test_what_was_never_stored_is_refused(kind, text):
    with pytest.raises(ModelError):
        Value.from_json(kind, text)


@cases
@given(NAMES)
def test_single_choice_is_one_hot_and_comes_back(names):
    space = SingleChoice(names)
    for index, name in enumerate(names):
        row = space.encode(Value.of_class(name))  # (C,)
        assert row.dtype == np.float32 and row.tolist() == np.eye(len(names))[index].tolist()
        assert space.decode(row) == Value.of_class(name) and space.contains(Value.of_class(name))


@cases
@given(NAMES, st.data())
def test_multiple_choice_is_multi_hot_and_comes_back(names, data):
    space = MultipleChoice(names)
    value = Value.of_classes(data.draw(st.lists(st.sampled_from(names), unique=True)))
    row = space.encode(value)  # (C,)
    assert row.tolist() == [float(name in value.data) for name in names]
    assert space.decode(row) == value and space.contains(value)


@pytest.mark.parametrize("space", [SingleChoice(("a", "b")), MultipleChoice(("a", "b"))])
@pytest.mark.parametrize("value", [Value.of_class("z"), Value.of_classes(["a", "z"]), Value.of_number(1)])
def test_values_outside_are_refused(space, value):
    assert not space.contains(value)
    with pytest.raises(ModelError):
        space.encode(value)


def test_the_kinds_are_not_mixed():
    assert not SingleChoice(("a",)).contains(Value.of_classes(["a"]))
    assert not MultipleChoice(("a",)).contains(Value.of_class("a"))


def test_ties_go_to_the_first_class_and_one_half_is_chosen():
    assert SingleChoice(("a", "b")).decode(np.array([0.5, 0.5])) == Value.of_class("a")
    assert MultipleChoice(("a", "b", "c")).decode(np.array([0.5, 0.49, 1.0])) == Value.of_classes(["a", "c"])


def test_neither_spaces_nor_votes_load_torch():
    """Command line and web process read votes without waiting for torch."""
    code = "import sys, json, model, model.data.spaces, model.data.votes; print(json.dumps('torch' in sys.modules))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) is False


def test_what_is_said_is_offered_and_as_sure_as_its_own_probability() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    offered = np.array([[True, True, True], [True, False, True], [False, False, False]])
    values, sure = SingleChoice(("a", "b", "c")).decide(p, offered)
    assert values == [Value.of_class("a"), Value.of_class("c"), None]
    assert sure[:2].tolist() == pytest.approx([0.5, 0.6]), "what is not offered leaves its share to the others"
    _, sure = SingleChoice(("a", "b", "c")).decide(p, offered, complete=False)
    assert sure[:2].tolist() == pytest.approx([0.5, 0.3]), "unless there are classes that nobody knows yet"
    sets, sure = MultipleChoice(("a", "b", "c")).decide(p, offered)
    assert sets == [Value.of_classes(["a"]), Value.of_classes([]), None]
    assert sure[:2].tolist() == pytest.approx([0.5 * 0.7 * 0.8, 0.8 * 0.7])


def test_a_number_is_as_sure_as_the_bin_that_it_lies_in_not_as_the_likeliest_one() -> None:
    """0, 5, 6 and 7 with .40, .15, .30 and .15: the median is 5, or 6, and never as sure as the 0 is likely."""
    space = number_bins({}, least=0, most=10, step=1)
    assert space is not None
    p = np.zeros((1, 11))
    p[0, [0, 5, 6, 7]] = 0.40, 0.15, 0.30, 0.15
    (value,), sure = space.decide(p, np.ones((1, 11), np.bool_))
    assert value == Value.of_number(5.0) and sure.tolist() == pytest.approx([0.15])

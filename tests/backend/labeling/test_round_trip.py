"""For any config that can be written: config -> value -> region -> value."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.labeling.controls.choices import Choices
from backend.labeling.task_data import as_text
from model.data.spaces import Value
from tests.backend.labeling.configs import LABELS, TEXTS, Label, choice, choices_of, config_of

cases = settings(derandomize=True, max_examples=150, deadline=None)


@cases
@given(LABELS)
def test_every_single_choice_comes_back(labels):
    control = choices_of("".join(map(choice, labels)))
    assert control.space().classes == tuple(label.value for label in labels)
    for label in labels:
        value = Value.of_class(label.value)
        (region,) = control.encode(value, 0.5)
        assert region["value"] == {"choices": [label.stored]}
        assert control.decode(json.loads(json.dumps([region]))) == value


@cases
@given(LABELS, st.data())
def test_every_set_of_choices_comes_back(labels, data):
    control = choices_of("".join(map(choice, labels)), attributes='choice="multiple"')
    chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
    value = Value.of_classes([label.value for label in chosen])
    (region,) = control.encode(value, 1.0)
    assert set(region["value"]["choices"]) == {label.stored for label in chosen}
    assert control.decode(json.loads(json.dumps([region]))) == value
    assert control.space().decode(control.space().encode(value)) == value


TREES = st.recursive(
    st.tuples(st.builds(Label, TEXTS, st.none() | TEXTS), st.just([])),
    lambda inner: st.tuples(st.builds(Label, TEXTS, st.none() | TEXTS), st.lists(inner, max_size=3)),
    max_leaves=6,
)


def nested(tree) -> str:
    label, children = tree
    return choice(label, "".join(map(nested, children)))


@cases
@given(st.lists(TREES, min_size=1, max_size=3), st.booleans(), st.booleans(), st.data())
def test_every_class_of_a_tree_comes_back(trees, multiple, paths, data):
    attributes = f'choice="{"multiple" if multiple else "single"}" allowNested="{str(paths).lower()}"'
    control = config_of("".join(map(nested, trees)), attributes=attributes).control("c")
    if control is None:
        return  # two choices could not be told apart; that is declared, and tested elsewhere
    assert isinstance(control, Choices)
    classes = control.space().classes
    assert len(set(classes)) == len(classes) > 0
    if multiple:
        values = [Value.of_classes(data.draw(st.lists(st.sampled_from(classes), min_size=1, unique=True)))]
    else:
        values = [Value.of_class(name) for name in classes]
    for value in values:
        assert control.decode(json.loads(json.dumps(control.encode(value)))) == value


@cases
@given(st.lists(st.tuples(TEXTS, st.none() | TEXTS), max_size=5), st.lists(TEXTS, max_size=3))
def test_dynamic_choices_come_back_within_their_task(listed, stored):
    data = {"opts": [{"value": value, "alias": alias} for value, alias in listed]}
    control = config_of("", attributes='value="$opts"').control("c")
    for label in stored:
        value = control.decode([{"from_name": "c", "value": {"choices": [label]}}], data)
        assert value is not None
        if control.offered(value, data) is not None:
            assert control.decode(control.encode(value, data=data), data) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@cases
@given(JSON)
def test_any_json_in_place_of_choices_or_options_is_survived(thing):
    control = config_of('<Choice value="A"/>', attributes='value="$opts"').control("c")
    control.decode([{"from_name": "c", "value": {"choices": thing}}], {"opts": thing})
    control.offered(Value.of_class("A"), {"opts": thing})
    as_text(thing)

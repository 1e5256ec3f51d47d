import pytest

from backend.labeling import parse_config
from backend.labeling.controls.choices import MAX_DYNAMIC_CLASSES
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Vote, Votes
from model.errors import ModelError
from tests.backend.labeling.configs import choices_of, config_of, region

FLAT = '<Choice value="A" alias="a"/><Choice value=" B &amp; 😀 "/><View><Choice value="C"/></View>'
TREE = """<Choice value="Animal"><Choice value="Dog" alias="dog"/><Choice value="Cat"/></Choice>
<Choice value="Plant"><Choice value="Tree"><Choice value="Oak"/></Choice></Choice><Choice value="Other"/>"""


def decoded(control, *entries, **more):
    return control.decode([region(*entries, **more)])


def test_classes_are_values_in_document_order():
    assert choices_of(FLAT).space() == SingleChoice(("A", " B & 😀 ", "C"))
    assert choices_of(FLAT, attributes='choice="multiple"').space() == MultipleChoice(("A", " B & 😀 ", "C"))
    assert choices_of(FLAT, attributes='choice="single-radio"').space() == SingleChoice(("A", " B & 😀 ", "C"))


def test_the_alias_is_what_label_studio_stores():
    control = choices_of(FLAT)
    assert decoded(control, "a") == Value.of_class("A")
    assert decoded(control, "A") == Value.of_class("A")  # from before there was an alias
    assert control.encode(Value.of_class("A"))[0]["value"] == {"choices": ["a"]}


def test_an_alias_that_is_the_value_of_another_choice():
    control = choices_of('<Choice value="T" alias="x"/><Choice value="U" alias="T"/>')
    assert decoded(control, "T") == Value.of_class("U") and decoded(control, "x") == Value.of_class("T")
    assert control.encode(Value.of_class("T"))[0]["value"] == {"choices": ["x"]}


def test_one_value_with_several_aliases_is_told_apart_by_them():
    control = choices_of('<Choice value="Other" alias="o1"/><Choice value="Other" alias="o2"/><Choice value="A"/>')
    assert control.space() == SingleChoice(("o1", "o2", "A"))
    assert decoded(control, "o2") == Value.of_class("o2")


def test_duplicate_choices_are_one_class():
    assert choices_of('<Choice value="A"/><Choice value="B"/><Choice value="A"/>').space() == SingleChoice(("A", "B"))


def test_choice_texts_between_the_tags_and_choices_without_value():
    control = choices_of('<Choice>Yes</Choice><Choice alias="n"/><Choice html="x"/>')
    assert control.space() == SingleChoice(("Yes", "n"))


@pytest.mark.parametrize(
    "result",
    [
        [],
        [region()],
        [region("A", name="other")],
        [region("A", item_index=1)],
        [{"from_name": "c", "value": {"choices": ["A"], "start": 0, "end": 3}}],  # the verdict on a region
        [{"from_name": "c", "value": {"rating": 3}}],
        [{"from_name": "c", "value": None}],
        [{"from_name": "c"}],
        [{"from_name": "c", "value": {"choices": [None, {}, True, []]}}],
    ],
)
def test_what_says_nothing_about_the_task_gives_no_value(result):
    assert choices_of(FLAT).decode(result) is None


def test_odd_but_clear_answers_are_read():
    control = choices_of('<Choice value="A"/><Choice value="3"/>')
    assert control.decode([{"from_name": "c", "value": {"choices": "A"}}]) == Value.of_class("A")
    assert decoded(control, 3) == Value.of_class("3")
    assert decoded(control, " A ") == Value.of_class("A") and decoded(control, "A", "A") == Value.of_class("A")
    assert decoded(choices_of('<Choice value=" A "/>'), "A") == Value.of_class(" A ")


def test_a_label_that_left_the_config_is_kept_but_lies_outside_the_space():
    control = choices_of(FLAT)
    value = decoded(control, "Removed")
    assert value == Value.of_class("Removed") and not control.space().contains(value)


def test_two_answers_to_a_single_choice_are_never_guessed_into_one():
    control = choices_of(FLAT)
    value = decoded(control, "a", "C")
    assert value == Value.of_classes(["A", "C"]) and not control.space().contains(value)


def test_several_answers_and_explicitly_none():
    control = choices_of(FLAT, attributes='choice="multiple"')
    assert decoded(control, "a", "C") == Value.of_classes(["A", "C"])
    assert control.decode([region("a"), region("C")]) == Value.of_classes(["A", "C"])
    assert decoded(control) == Value.of_classes([])
    assert control.decode([]) is None
    assert control.encode(Value.of_classes([])) == []


@pytest.mark.parametrize("value", [Value.of_class("Z"), Value.of_classes(["A"]), Value.of_number(1)])
def test_values_outside_the_space_are_not_encoded(value):
    with pytest.raises(ModelError, match="Choices 'c' does not offer"):
        choices_of(FLAT).encode(value)


def test_nested_choices_without_paths_are_stored_flat():
    control = choices_of(TREE)
    assert control.space() == SingleChoice(("Animal", "Dog", "Cat", "Plant", "Tree", "Oak", "Other"))
    assert decoded(control, "dog") == Value.of_class("Dog") and decoded(control, "Animal") == Value.of_class("Animal")
    assert decoded(control, ["Animal", "dog"]) == Value.of_class("Dog")  # from when paths were allowed


def test_nested_choices_stored_as_paths():
    control = choices_of(TREE, attributes='allowNested="true"')
    # A parent of one child is chosen exactly when the child is: one class.
    names = ("Animal", "Animal / Dog", "Animal / Cat", "Plant / Tree / Oak", "Other")
    assert control.space() == SingleChoice(names)
    assert decoded(control, ["Animal", "dog"]) == Value.of_class("Animal / Dog")
    assert decoded(control, ["Animal"], ["Animal", "dog"], ["Animal", "Cat"]) == Value.of_class("Animal")
    assert decoded(control, ["Animal"]) == Value.of_class("Animal")
    assert decoded(control, ["Plant"], ["Plant", "Tree"], ["Plant", "Tree", "Oak"]) == Value.of_class(names[3])
    assert decoded(control, ["Animal", "Cow"]) == Value.of_class("Animal / Cow")  # left the config
    assert control.encode(Value.of_class("Animal"))[0]["value"]["choices"] == [
        ["Animal"], ["Animal", "dog"], ["Animal", "Cat"],
    ]


def test_nested_multiple_choices_are_sets_of_leaves():
    control = choices_of(TREE, attributes='allowNested="true" choice="multiple"')
    assert control.space() == MultipleChoice(("Animal / Dog", "Animal / Cat", "Plant / Tree / Oak", "Other"))
    both = Value.of_classes(["Animal / Dog", "Animal / Cat"])
    assert decoded(control, ["Animal"], ["Animal", "dog"], ["Animal", "Cat"]) == both
    assert control.decode(control.encode(both)) == both


DYNAMIC = '<View><Text name="t" value="$text"/><Choices name="c" toName="t" value="$opts" {}>{}</Choices></View>'
TASK = {"opts": [{"value": "Red", "alias": "r"}, {"value": "Blue"}, "Green", {"html": "x"}, None]}


def test_dynamic_choices_collect_their_classes_from_votes():
    config = parse_config(DYNAMIC.format("", ""))
    assert config.spaces(None) == {} and config.spaces(Votes.from_votes([])) == {}
    votes = Votes.from_votes([Vote(str(u), "1", "c", Value.of_class(v)) for u, v in enumerate(["Red", "Blue", "Red"])])
    assert config.spaces(votes) == {"c": SingleChoice(("Blue", "Red"))}
    fixed_too = parse_config(DYNAMIC.format('choice="multiple"', '<Choice value="None of them"/>'))
    votes = Votes.from_votes([Vote("1", "1", "c", Value.of_classes(["Red", "None of them"]))])
    assert fixed_too.spaces(votes) == {"c": MultipleChoice(("None of them", "Red"))}


def test_dynamic_choices_that_are_new_with_every_task_do_not_grow_without_bound():
    votes = Votes.from_votes(
        [Vote(str(u), "1", "c", Value.of_class(f"text {u}")) for u in range(MAX_DYNAMIC_CLASSES * 2)]
        + [Vote(f"again {u}", "1", "c", Value.of_class("often")) for u in range(3)]
    )
    classes = parse_config(DYNAMIC.format("", "")).spaces(votes)["c"].classes
    assert len(classes) == MAX_DYNAMIC_CLASSES and "often" in classes


def test_dynamic_choices_offer_what_the_task_brings_along():
    config = parse_config(DYNAMIC.format("", ""))
    control = config.control("c")
    assert control.decode([region("r")], TASK) == Value.of_class("Red")
    assert control.encode(Value.of_class("Red"), data=TASK)[0]["value"] == {"choices": ["r"]}
    assert control.offered(Value.of_class("Green"), TASK) == Value.of_class("Green")
    red = {"c": (Value.of_class("Red"), 0.5)}
    assert config.prediction(red, data={"opts": [{"value": "Blue"}]}, model_version="v", score=0.5) is None
    for nothing in ({}, {"opts": None}, {"opts": "text"}, {"opts": {"a": 1}}, {"opts": []}):
        assert config.prediction(red, data=nothing, model_version="v", score=0.5) is None


def test_dynamic_choices_may_be_nested_in_the_data():
    config = parse_config(DYNAMIC.format('allowNested="true"', ""))
    data = {"opts": [{"value": "A", "children": [{"value": "x"}, {"value": "y"}]}]}
    assert config.control("c").decode([region(["A", "x"])], data) == Value.of_class("A / x")
    cyclic: dict = {"value": "A"}
    cyclic["children"] = [cyclic]
    assert config.control("c").decode([region(["A"])], {"opts": [cyclic]}) is not None


def test_a_dollar_price_is_a_label():
    assert config_of('<Choice value="$100"/>').spaces() == {"c": SingleChoice(("$100",))}

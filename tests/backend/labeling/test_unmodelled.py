import pytest

from backend.labeling import parse_config
from backend.labeling.controls.unmodelled import RECOGNISED

CHOICES = '<Choices name="c" toName="t" {}><Choice value="A"/></Choices>'


def config_of(inside: str):
    return parse_config(f'<View><Text name="t" value="$text"/>{inside}</View>')


@pytest.mark.parametrize(("kind", "tag"), [(kind, tag) for kind, (tag, _) in RECOGNISED.items()])
def test_every_other_control_is_declared_by_name(kind, tag):
    config = config_of(f'<{tag} name="x" toName="t"/>' + CHOICES.format(""))
    (declared,) = config.unmodelled
    assert (declared.name, declared.tag) == ("x", tag) and kind == tag.lower()
    assert declared.reason.startswith(f"{tag} 'x' ") and declared.reason.endswith("not modelled yet.")
    assert [control.name for control in config.controls] == ["c"]


@pytest.mark.parametrize(
    ("attributes", "word"),
    [
        ('perItem="true"', "perItem"),
        ('visibleWhen="choice-selected"', "visibleWhen"),
        ('visibleWhen="region-selected" whenTagName="other"', "visibleWhen"),
        ('visibleWhen="choice-selected" whenTagName="other" whenRole="x"', "visibleWhen"),
        ('whenTagName="other"', "visibleWhen"),
        ('whenChoiceValue="x"', "visibleWhen"),
    ],
)
def test_choices_that_depend_on_more_than_the_task_are_declared(attributes, word):
    (declared,) = config_of(CHOICES.format(attributes)).unmodelled
    assert declared.name == "c" and word in declared.reason and declared.reason.endswith("not modelled yet.")


@pytest.mark.parametrize("attributes", ['perRegion="false"', 'perItem="false"', 'visibleWhen=""'])
def test_a_condition_that_is_off_is_none(attributes):
    assert config_of(CHOICES.format(attributes)).controls


def test_a_condition_on_the_view_around_counts():
    inside = CHOICES.format("")
    config = config_of(f'<View visibleWhen="choice-unselected" whenTagName="z"><View>{inside}</View></View>')
    assert "visibleWhen" in config.unmodelled[0].reason and not config.controls


def test_repeated_controls_are_declared():
    repeated = CHOICES.replace('"c"', '"c_{{{{idx}}}}"').format("")
    config = config_of(f'<Repeater on="$items">{repeated}</Repeater>')
    assert "Repeater" in config.unmodelled[0].reason and not config.controls


def test_relations_need_no_name_and_are_declared_once():
    config = config_of('<Relations><Relation value="a"/><Relation value="b"/></Relations>' + CHOICES.format(""))
    assert [(each.name, each.tag) for each in config.unmodelled] == [("", "Relations")]


@pytest.mark.parametrize(
    ("choices", "word"),
    [
        ("", "offers no choices"),
        ("<Choice/>", "offers no choices"),
        ('<Choice value="$one"/>', "task data one by one"),
        ('<Choice value="A" alias="x"/><Choice value="B" alias="x"/>', "same name"),
        (
            '<Choice value="A" alias="B"/><Choice value="A" alias="C"/><Choice value="B" alias="E"/>',
            "same name",
        ),
    ],
)
def test_choices_that_cannot_be_told_apart_are_declared_not_guessed(choices, word):
    (declared,) = config_of(f'<Choices name="c" toName="t">{choices}</Choices>').unmodelled
    assert word in declared.reason


def test_unknown_tags_are_decoration():
    config = config_of('<Fancy name="f" toName="t"/><Style>.a{}</Style><Collapse><Panel value="x"/></Collapse>')
    assert config.controls == () and config.unmodelled == ()


@pytest.mark.parametrize("inside", [
    '<Header name="h" value="Rate it"/><Rating name="r" toName="h"/>',
    '<Markdown name="h" value="Rate it"/><Choices name="r" toName="t,h"><Choice value="A"/></Choices>',
    '<View name="h"/><Taxonomy name="r" toName="h"><Choice value="A"/></Taxonomy>', '<Rating name="r"/>',
    '<Number name="r" toName=" , "/>',
])
def test_a_control_about_no_object_is_declared_and_the_others_are_read(inside):
    config = config_of(inside + CHOICES.format(""))
    (declared,) = config.unmodelled
    assert declared.name == "r" and "is not modelled" in declared.reason and "toName" in declared.reason
    assert [control.name for control in config.controls] == ["c"]


@pytest.mark.parametrize(("tag", "text"), [
    ("Choices", "Is $name"), ("Choices", "$name"), ("Choices", "Is it ${a.b[0]}? $x"), ("Taxonomy", "Is $name"),
])
def test_a_choice_with_task_data_in_its_text_is_another_in_every_task(tag, text):
    choices = f'<Choice value="A"/><Choice value="{text}"/>'
    (declared,) = config_of(f'<{tag} name="c" toName="t">{choices}</{tag}>').unmodelled
    assert "task data one by one" in declared.reason


def test_an_amount_of_money_is_no_task_data():
    assert not config_of('<Choices name="c" toName="t"><Choice value="5 $"/><Choice value="$5"/></Choices>').unmodelled

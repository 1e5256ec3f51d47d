"""A control that is shown only when something was chosen is predicted only when that is predicted."""

from __future__ import annotations

from backend.labeling import LabelConfig, parse_config
from model.data.spaces import Value

CHOICES = '<Choices name="{}" toName="t" {}><Choice value="{}"/><Choice value="{}" alias="{}"/></Choices>'


def config_of(*controls: str) -> LabelConfig:
    return parse_config(f'<View><Text name="t" value="$text"/>{"".join(controls)}</View>')


def answered(config: LabelConfig, **labels: str) -> list[str]:
    values = {name: (Value.of_class(label), 0.9) for name, label in labels.items()}
    found = config.prediction(values, data={"text": "x"}, model_version="v", score=0.5)
    return [] if found is None else [region["from_name"] for region in found["result"]]


KIND = CHOICES.format("kind", "", "Fine", "Toxic", "tox")
SHOWN_WHEN = 'visibleWhen="choice-selected" whenTagName="{}" whenChoiceValue="{}"'
WHY = CHOICES.format("why", SHOWN_WHEN.format("kind", "{}"), "Insult", "Threat", "t")


def test_it_is_learned_and_shown_only_where_the_condition_holds() -> None:
    config = config_of(KIND, WHY.format("Toxic, Spam"))
    assert [control.name for control in config.controls] == ["kind", "why"]
    assert answered(config, kind="Toxic", why="Insult") == ["kind", "why"]
    assert answered(config, kind="Fine", why="Insult") == ["kind"]
    assert answered(config, why="Insult") == []


def test_the_condition_may_name_the_alias() -> None:
    config = config_of(KIND, WHY.format("tox"))
    assert answered(config, kind="Toxic", why="Insult") == ["kind", "why"]


def test_any_choice_where_none_is_named_and_views_around_it() -> None:
    inside = CHOICES.format("why", "", "Insult", "Threat", "t")
    config = config_of(KIND, f'<View visibleWhen="choice-selected" whenTagName="kind"><View>{inside}</View></View>')
    assert answered(config, kind="Fine", why="Threat") == ["kind", "why"]
    assert answered(config, why="Threat") == []


def test_conditions_chain_whatever_the_order_in_the_document() -> None:
    third = CHOICES.format("how", SHOWN_WHEN.format("why", "Insult"), "A", "B", "b")
    config = config_of(third, KIND, WHY.format("Toxic"))
    assert answered(config, kind="Toxic", why="Insult", how="A") == ["how", "kind", "why"]
    assert answered(config, kind="Fine", why="Insult", how="A") == ["kind"]


def test_a_circle_shows_nothing() -> None:
    one = CHOICES.format("one", 'visibleWhen="choice-selected" whenTagName="two"', "A", "B", "b")
    two = CHOICES.format("two", 'visibleWhen="choice-selected" whenTagName="one"', "A", "B", "b")
    assert answered(config_of(one, two), one="A", two="A") == []

"""Single choices are ordered where the tag says so, or where every class is a number."""

import pytest

from backend.labeling.controls.choices import Choices
from model.data.spaces import MultipleChoice, SingleChoice, Value
from tests.backend.labeling.configs import choices_of


def of(*values: str, attributes: str = "") -> Choices:
    inside = "".join(
        f'<Choice value="{value}"{f" alias={chr(34)}{alias}{chr(34)}" if alias else ""}/>'
        for value, _, alias in (each.partition("=") for each in values)
    )
    return choices_of(inside, attributes=attributes)


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (("1", "2", "3"), ("1", "2", "3")),
        (("3", "2", "1"), ("3", "2", "1")),  # from the largest down is an order too
        (("10", "2", "-0.5"), ("10", "2", "-0.5")),
        (("2", "10", "-0.5"), ("-0.5", "2", "10")),
        (("bad=1", "good=3", "fair=2"), ("bad", "fair", "good")),  # by the alias
    ],
)
def test_numbers_stand_in_their_order(values: tuple[str, ...], classes: tuple[str, ...]) -> None:
    control = of(*values)
    assert control.space() == SingleChoice(classes, ordered=True)
    for name in classes:
        assert control.decode(control.encode(Value.of_class(name))) == Value.of_class(name)


@pytest.mark.parametrize(
    "values", [("1", "2"), ("1", "2", "many"), ("1", "1.0", "2"), ("a", "b", "c"), ("1e3", "2", "3")]
)
def test_other_classes_have_no_order(values: tuple[str, ...]) -> None:
    assert of(*values).space() == SingleChoice(values)


def test_the_tag_may_say_that_its_choices_stand_in_order() -> None:
    control = of("low", "middle", "high", attributes='ordered="true"')
    assert control.space() == SingleChoice(("low", "middle", "high"), ordered=True)
    assert control.signature() != of("low", "middle", "high").signature()


def test_several_choices_are_a_set_whatever_they_are_called() -> None:
    assert of("1", "2", "3", attributes='choice="multiple" ordered="true"').space() == MultipleChoice(("1", "2", "3"))

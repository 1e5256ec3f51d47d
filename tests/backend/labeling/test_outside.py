"""What is kept and not learned from is said in a sentence for each reason."""

from __future__ import annotations

import pytest

from backend.labeling import parse_config
from backend.labeling.outside import kept_aside
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes

NUMBER = '<Number name="x" toName="t" min="0" max="10"/>'
TREE = '<Taxonomy name="x" toName="t"{}><Choice value="A"><Choice value="B"/></Choice></Taxonomy>'
SINGLE = '<Choices name="x" toName="t"><Choice value="A"/><Choice value="B"/></Choices>'
SEVERAL = SINGLE.replace('toName="t"', 'toName="t" choice="multiple"')
RANKER = '<List name="l" value="$items"/><Ranker name="x" toName="l"/>'


def said(control: str, *values: Value, name: str = "x") -> list[str]:
    config = parse_config(f'<View><Text name="t" value="$text"/>{control}</View>')
    votes = Votes.from_votes(Vote(unit=str(at // 2), annotator=str(at % 2), control=name, value=value)
                             for at, value in enumerate(values))
    return kept_aside(config, config.spaces(votes), votes).get(name, [])


def ranking(*items: str) -> Value:
    return Value(ValueKind.RANKING, tuple((item,) for item in items))


@pytest.mark.parametrize(
    ("control", "value", "words"),
    [
        (NUMBER, Value.of_number(11), "numbers from 0 to 10, and these are out of range"),
        (NUMBER, Value.of_class("B"), "one class, given when the control asked for something else"),
        (SINGLE, Value.of_number(3), "a number, given when the control asked for something else"),
        (SINGLE, ranking("A"), "a ranking, given when the control asked for something else"),
        (SEVERAL, Value.of_class("A"), "one class, given when the control asked for something else"),
        (SINGLE, Value.of_class("Z"), "a class that the control does not offer any more"),
        (TREE.format(""), Value.of_classes(["A / Z"]), "a path that is not in the tree"),
        (TREE.format(' maxUsages="1"'), Value.of_classes(["A", "A / B"]), "several where one is asked for"),
        ('<Rating name="x" toName="t" maxRating="3"/>', Value.of_class("5"), "does not offer any more"),
        ('<TextArea name="x" toName="t"/>', Value.of_class("A"), "no control of this name that is learned"),
    ],
)
def test_each_reason_has_a_sentence(control: str, value: Value, words: str) -> None:
    (sentence,) = said(control, value)
    assert words in sentence and sentence.startswith("1 vote with 'x' is kept and not learned from: ")
    assert sentence.endswith(".") and "Z" not in sentence  # what was answered stays out of messages


def test_votes_that_are_learned_from_need_no_sentence() -> None:
    assert said(SINGLE, Value.of_class("A"), Value.of_class("B")) == []
    assert said(NUMBER, Value.of_number(0), Value.of_number(10)) == []


def test_one_reason_is_said_once() -> None:
    (sentence,) = said(NUMBER, Value.of_number(11), Value.of_number(12), Value.of_number(5))
    assert sentence.startswith("2 votes with 'x' are kept")


def test_rankings_are_compared_and_what_cannot_be_is_said() -> None:
    (sentence,) = said(RANKER, ranking("a", "b", "c"), ranking("a", "b", "c"), ranking("a", "a"), ranking("b", "c"))
    assert "4 votes with 'x' are kept, and learned by Plackett-Luce scores, not by the network" in sentence
    assert "Kendall's tau of 1.00" in sentence and "1 that name an item twice" in sentence
    (lacking,) = said(RANKER, ranking("a", "b"), ranking("a"))
    assert "1 of other items than most ranked cannot be compared" in lacking

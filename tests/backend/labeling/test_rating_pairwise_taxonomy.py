"""Stars, sides and paths: from real regions to values and back, and what a changed configuration leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backend.labeling import LabelConfig, parse_config
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.errors import ModelError

FIXTURES = Path(__file__).parents[2] / "fixtures" / "label-studio"
TREE = """<Taxonomy name="tax" toName="t" {}><Choice value="Animal"><Choice value="Dog"/><Choice value="Cat" alias="c"/>
</Choice><Choice value="Plant"/></Taxonomy>"""


def config_of(control: str) -> LabelConfig:
    return parse_config(f'<View><Text name="t" value="$text"/><Text name="u" value="$other"/>{control}</View>')


def regions(fixture: str) -> list[dict[str, Any]]:
    return [
        region for annotation in json.loads((FIXTURES / fixture).read_text()) for region in annotation["result"]
    ]


def region(kind: str, name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": "t", "type": kind, "value": value}


@pytest.mark.parametrize(
    ("control", "fixture", "value"),
    [
        ('<Rating name="rating" toName="t"/>', "annotations_list_multi.json", Value.of_class("4")),
        ('<Pairwise name="pw" toName="t,u"/>', "annotations_list_pairwise.json", Value.of_class("left")),
        (TREE.format(""), "annotations_list_multi.json", Value.of_classes(["Plant", "Animal / Dog"])),
    ],
)
def test_real_annotations_come_back(control: str, fixture: str, value: Value) -> None:
    (read,) = config_of(control).controls
    real = [one for one in regions(fixture) if one["from_name"] == read.name]
    assert read.decode(real) == value
    (made,) = read.encode(value, 0.75)
    assert made["score"] == 0.75 and made["origin"] == "prediction"
    assert made["to_name"] == "t"  # an object, also for pairs: Label Studio's import drops anything else
    assert made["type"] == real[0]["type"] and set(made["value"]) == set(real[0]["value"])
    assert read.decode(json.loads(json.dumps([made]))) == value
    space = read.space()
    assert space.decode(space.encode(value)) == value


def test_every_star_comes_back() -> None:
    (rating,) = config_of('<Rating name="r" toName="t" maxRating="10"/>').controls
    assert rating.space() == SingleChoice(tuple(map(str, range(1, 11))), ordered=True)
    for star in range(1, 11):
        assert rating.decode(rating.encode(Value.of_class(str(star)))) == Value.of_class(str(star))


@pytest.mark.parametrize("stars", [0, -1, 2.5, True, None, "4", [4]])
def test_stars_that_are_none(stars: object) -> None:
    (rating,) = config_of('<Rating name="r" toName="t"/>').controls
    assert rating.decode([region("rating", "r", {"rating": stars})]) is None


def test_more_stars_than_there_are_now_are_kept_but_not_in_the_space() -> None:
    (rating,) = config_of('<Rating name="r" toName="t" maxRating="3"/>').controls
    old = rating.decode([region("rating", "r", {"rating": 5})])
    assert old == Value.of_class("5") and not rating.space().contains(old) and rating.offered(old) is None
    with pytest.raises(ModelError, match="does not offer"):
        rating.encode(old)


@pytest.mark.parametrize("written", ["0", "-3", "many", "1000"])
def test_a_rating_without_a_usable_maximum_says_so(written: str) -> None:
    (declared,) = config_of(f'<Rating name="r" toName="t" maxRating="{written}"/>').unmodelled
    assert "maxRating" in declared.reason


def test_a_pair_needs_two_objects() -> None:
    assert "two objects" in config_of('<Pairwise name="p" toName="t"/>').unmodelled[0].reason


def test_inner_nodes_are_answers_unless_only_leaves_are() -> None:
    (tree,) = config_of(TREE.format("")).controls
    assert tree.space() == MultipleChoice(("Animal", "Animal / Dog", "Animal / Cat", "Plant"))
    (leaves,) = config_of(TREE.format('leafsOnly="true" maxUsages="1"')).controls
    assert leaves.space() == SingleChoice(("Animal / Dog", "Animal / Cat", "Plant"))
    (stored,) = leaves.encode(Value.of_class("Animal / Cat"))
    assert stored["value"] == {"taxonomy": [["Animal", "c"]]}


def test_several_paths_where_one_is_asked_for_and_unknown_paths_are_kept_as_they_are() -> None:
    (tree,) = config_of(TREE.format('maxUsages="1"')).controls
    two = tree.decode([region("taxonomy", "tax", {"taxonomy": [["Plant"], ["Animal", "Dog"]]})])
    assert two == Value.of_classes(["Plant", "Animal / Dog"]) and not tree.space().contains(two)
    unknown = tree.decode([region("taxonomy", "tax", {"taxonomy": [["Fungus", "Amanita"]]})])
    assert unknown == Value.of_class("Fungus / Amanita") and not tree.space().contains(unknown)


def test_nothing_chosen() -> None:
    (several,) = config_of(TREE.format("")).controls
    assert several.decode([]) is None and several.encode(Value.of_classes([])) == []
    assert several.decode([region("taxonomy", "tax", {"taxonomy": []})]) == Value.of_classes([])


@pytest.mark.parametrize("stored", [
    [[], 3, [None]], [[]], [[None]], [["Animal", None]], [["Plant"], [float("nan")]], "", [["Plant"], None], {"a": 1},
])
def test_a_path_that_cannot_be_read_is_no_vote_and_not_the_empty_set(stored: object) -> None:
    for attributes in ("", 'maxUsages="1"'):
        (tree,) = config_of(TREE.format(attributes)).controls
        assert tree.decode([region("taxonomy", "tax", {"taxonomy": stored})]) is None


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ('<Taxonomy name="x" toName="t" apiUrl="https://example.org"/>', "does not stand in the labeling"),
        ('<Taxonomy name="x" toName="t" value="$tree"/>', "does not stand in the labeling"),
        ('<Taxonomy name="x" toName="t"><Choice value="A"/><Choice value="A"/></Taxonomy>', "same name"),
    ],
)
def test_trees_that_cannot_be_learned_say_why(tag: str, words: str) -> None:
    assert words in config_of(tag).unmodelled[0].reason


def test_of_a_large_tree_the_paths_that_were_chosen_most_are_learned() -> None:
    many = "".join(f'<Choice value="p{index}"/>' for index in range(400))
    (tree,) = config_of(f'<Taxonomy name="x" toName="t">{many}</Taxonomy>').controls
    space = tree.space({Value.of_classes(["p399"]): 5})
    assert len(space.classes) == 256 and "p399" in space.classes


def test_a_real_number_comes_back() -> None:
    (number,) = config_of('<Number name="n" toName="t" min="0" max="100"/>').controls
    read = number.decode([region("number", "n", {"number": 42})])
    assert read == Value.of_number(42)
    (made,) = number.encode(Value.of_number(42.0), 0.5)
    assert made["type"] == "number" and made["value"] == {"number": 42} and isinstance(made["value"]["number"], int)
    assert number.space() is None and number.offered(Value.of_number(101)) is None
    with pytest.raises(ModelError, match="does not offer"):
        number.encode(Value.of_number(-1))


@pytest.mark.parametrize("number", [True, None, "4", [4], float("nan"), float("inf"), 10**400])
def test_numbers_that_are_none(number: object) -> None:
    (control,) = config_of('<Number name="n" toName="t"/>').controls
    assert control.decode([region("number", "n", {"number": number})]) is None


@pytest.mark.parametrize(
    ("limits", "words"),
    [('min="a"', "min is no number"), ('max="nan"', "max is no number"), ('min="5" max="5"', "min is not below"),
     ('step="-1"', "step is below 0"), ('min="0" max="1" step="2"', "above its range")],
)
def test_limits_that_make_no_sense_say_why(limits: str, words: str) -> None:
    (declared,) = config_of(f'<Number name="n" toName="t" {limits}/>').unmodelled
    assert words in declared.reason

"""Words on coloured ground: everything escaped, nothing lost, unread text told."""

import re

import pytest

from backend.report.explanations.words import heat_text, name_of, step_class, strongest
from model.explain.places import Place


def places(*spans):
    return [Place(kind="text", start=start, end=end) for start, end in spans]


def bare(markup):
    return re.sub(r"<[^>]*>", "", str(markup)).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") \
        .replace("&#39;", "'").replace("&#34;", '"')


@pytest.mark.parametrize("text", ["<script>alert(1)</script> & 'so' \"on\"", "سلام 👩‍👩‍👧 דבר", "a b"])
def test_text_stays_text(text):
    half = len(text) // 2
    made = heat_text(text, places((0, half), (half, len(text))), [0.5, -0.25], most=0.5)
    assert bare(made) == text and "<script" not in made
    assert 'class="heat-10"' in made and 'class="against-5"' in made


def test_weights_near_nothing_have_no_colour():
    assert step_class(0.001, 1.0) == "" and step_class(0.0, 0.0) == "" and step_class(9.0, 1.0) == "heat-10"
    assert "span" not in heat_text("a b", places((0, 1), (2, 3)), [0.0, 0.0], most=0.0)


def test_unread_text_is_told_and_not_shown():
    text = "head " + "x" * 300 + " tail"
    made = heat_text(text, places((0, 4), (306, 310)), [0.1, 0.1], most=0.1)
    assert "xxx" not in made and "[300 characters that the model does not read]" in made and "tail" in made


def test_places_of_other_kinds_are_not_in_the_text():
    made = heat_text("a", [Place(kind="image", row=0, column=0, side=2), *places((0, 1))], [1.0, 1.0], most=1.0)
    assert str(made).count("<span") == 1


def test_the_strongest_places_in_words():
    mixed = [*places((0, 4)), Place(kind="image", piece=1, row=1, column=2, side=7), Place(kind="audio", seconds=3.04),
             Place(kind="audio")]
    found = strongest("word", mixed, [0.1, -0.3, 0.2, 0.001], count=4)
    assert found == [("row 2, column 3 of image 2", -0.3), ("3.0 s", 0.2), ("word", 0.1)]
    assert name_of(mixed[3], "word") == "a moment"
    assert strongest("word", mixed, []) == []

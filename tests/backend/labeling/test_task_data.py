import pytest

from backend.labeling.task_data import MISSING, as_text, lookup, resolve, variables, with_defined

DATA = {"text": "hello", "n": 3, "a": {"b": "deep", "list": [{"x": "y"}]}, "dotted.key": "flat", "none": None}


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("$text", "hello"),
        ("$a.b", "deep"),
        ("$a.list[0].x", "y"),
        ("$dotted.key", "flat"),
        ("$n", 3),
        ("$none", None),
        ("$a.list", [{"x": "y"}]),
        ("$text - $a.b.", "hello - deep"),  # the last dot is punctuation
        ("($text)", "(hello)"),
        ("$gone - $n", " - 3"),
        ("plain", "plain"),
        ("5 $ each", "5 $ each"),
    ],
)
def test_a_template_is_resolved_as_in_the_front_end(template, value):
    assert resolve(DATA, template) == value


@pytest.mark.parametrize("path", ["gone", "a.gone", "a.b.c", "a.list[1].x", "a.list.x", "[", "", "text[0]"])
def test_what_is_not_there_is_missing(path):
    assert lookup(DATA, path) is MISSING


def test_variables_are_listed_once_in_order():
    assert variables("$b and $a.c and $b $") == ["b", "a.c"]
    assert variables("no data") == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (MISSING, ""), ("x", "x"), (3, "3"), (["a", "b"], "a\nb"), ({"k": "ü"}, '{"k": "ü"}'), ([1], "[1]")],
)
def test_any_json_has_a_text(value, text):
    assert as_text(value) == text


def test_data_from_before_the_config_stands_under_the_first_key():
    assert with_defined({"$undefined$": "early"}, "text") == {"$undefined$": "early", "text": "early"}
    assert with_defined({"$undefined$": "early", "text": "own"}, "text")["text"] == "own"

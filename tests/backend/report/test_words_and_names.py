"""Numbers in words, names that are masked, and tables that are ordered."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backend.errors import ClientError
from backend.report import words
from backend.report.asked import Asked, whole
from backend.report.links import Links, with_query
from backend.report.names import Names
from backend.report.table import Column, as_csv, ordered, safe

NAMES = Names({"10": "Zoe", "9": "", "deleted:4": "gone"}, mask=False)
VALUE = Column(name="value", title="Value", help="", read=lambda row, names: row)


@pytest.mark.parametrize("made, expected", [
    (words.number(1234567), "1\u202f234\u202f567"), (words.number(None), "–"), (words.number(float("nan")), "–"),
    (words.decimal(-0.5), "−0.50"), (words.decimal(-0.001), "0.00"), (words.decimal(None), "–"),
    (words.evidence(4.6), "strong"), (words.evidence(0.0), "fair"), (words.evidence(-0.7), "slight"),
    (words.evidence(float("-inf")), "–"),
    (words.percent(0.805, 1), "80.5\u202f%"), (words.percent(None), "–"), (words.seconds(2.5), "2.5 s"),
    (words.seconds(59.6), "60 s"), (words.seconds(600), "10 min"), (words.seconds(7200), "2.0 h"),
    (words.moment(datetime(2026, 11, 8, 9, 5, tzinfo=UTC)), "8 Nov 2026, 09:05 UTC"),
    (words.count(1, "vote"), "1 vote"), (words.count(0, "is", "are"), "0 are"),
    (words.shortened("a  b\nc", 9), "a b c"), (words.shortened("one two three", 9), "one two …"),
    (words.shortened("x" * 30, 9), "x" * 9 + " …")])
def test_words(made, expected):
    assert made == expected


def test_names_as_they_are():
    assert [NAMES.name(who) for who in ("10", "9", "deleted:4", "11")] == ["Zoe", "9", "gone", "11"]
    assert NAMES.slug("10") == "10" and NAMES.find("10") == "10" and NAMES.find("11") is None


def test_masked_names_go_by_the_order_of_ids_and_tell_no_id():
    names = Names({"10": "Zoe", "9": "Abe", "deleted:4": "gone"}, mask=True)
    assert [names.name(who) for who in ("9", "10", "deleted:4")] == ["Annotator 1", "Annotator 2", "Annotator 3"]
    assert names.slug("10") == "annotator-2" and names.find("annotator-2") == "10" and names.find("10") is None
    assert names.name("11") == "Somebody" and names.slug("11") == "unknown"


def test_who_began_later_is_numbered_last_and_has_the_newest_name():
    names = Names({"10": "Zoe", "12": "Abe"}, mask=True, later={"9": "new", "11": "newer", "12": "Abe"})
    assert [names.slug(who) for who in ("10", "12", "9", "11")] == [f"annotator-{place}" for place in (1, 2, 3, 4)]
    plain = Names({"10": "Zoe"}, mask=False, later={"9": "new", "10": "Zoë"})
    assert (plain.name("9"), plain.name("10"), plain.find("9")) == ("new", "Zoë", "9")


def test_rows_without_a_value_come_last_either_way():
    assert ordered([2, None, 3, 1], VALUE, NAMES, descending=False) == [1, 2, 3, None]
    assert ordered([2, None, 3, 1], VALUE, NAMES, descending=True) == [3, 2, 1, None]
    assert ordered(["b", None, "A"], VALUE, NAMES, descending=False) == ["A", "b", None]


def test_pages_of_rows():
    shown = Asked.of({"page": "3"}, limit=4, paged=True).of_rows(list(range(10)), [VALUE], NAMES)
    assert (list(shown.rows), shown.page, shown.pages, shown.total) == ([8, 9], 3, 3, 10)
    beyond = Asked.of({"page": "9"}, limit=4, paged=True).of_rows(list(range(10)), [VALUE], NAMES)
    assert list(beyond.rows) == [] and beyond.pages == 3


@pytest.mark.parametrize("given", ["0", "-1", "1.5", "x", "²", "9" * 30])
def test_a_number_out_of_bounds_is_refused(given):
    with pytest.raises(ClientError, match="page takes a whole number from 1 to 9"):
        whole({"page": given}, "page", 1, low=1, high=9)


def test_csv_quotes_and_defuses():
    text = as_csv(["a", "b"], [{"a": '=HYPERLINK("x")', "b": -1.5}, {"a": "x,\"y\"", "b": None}])
    assert text == 'a,b\r\n"\'=HYPERLINK(""x"")",-1.5\r\n"x,""y""",\r\n'


@pytest.mark.parametrize("label, expected", [
    ("-3.5", "-3.5"), ("+2e3", "+2e3"), ("-1+2", "'-1+2"), ("-inf", "'-inf"), ("-nan", "'-nan"), ("-", "'-"),
    ("\n=1+1", "'\n=1+1"), ("=1", "'=1"), ("@x", "'@x"), (-3.5, -3.5), (None, "")])
def test_negative_labels_stay_and_formulas_do_not(label, expected):
    assert safe(label) == expected


def test_links_are_relative_to_their_page():
    links = Links.of_path("/projects/12/annotators/3", project=12, label_studio="http://ls")
    assert links.page("tasks", list="divided") == "../../../projects/12/tasks?list=divided"
    assert links.annotator("a/b") == "../../../projects/12/annotators/a%2Fb"
    assert links.task(7) == "http://ls/projects/12/data?task=7"
    assert Links(project=12, label_studio="").task(7) == ""
    assert with_query({"a": "1", "page": "2"}, page=None, b="x y") == "?a=1&b=x+y"

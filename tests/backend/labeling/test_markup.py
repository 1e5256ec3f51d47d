import pytest

from backend.errors import LabelConfigError
from backend.labeling import parse_config
from backend.labeling.markup import MAX_CHARACTERS, MAX_DEPTH, read, walk
from tests.backend.labeling.configs import SENTIMENT

BOMB = """<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><View><Header value="&c;"/></View>"""
EXTERNAL = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><View>&e;</View>'


@pytest.mark.parametrize(
    ("xml", "says"),
    [
        (None, "no labeling configuration yet"),
        ("", "no labeling configuration yet"),
        (" \n\ufeff", "no labeling configuration yet"),
        (17, "no labeling configuration yet"),
        ("<View>", "not well-formed XML (line 1"),
        ("not xml", "not well-formed"),
        ("<View><Choice value='a & b'/></View>", "not well-formed"),
        ("<View>\x00</View>", "not well-formed"),
        ("<View a='\ud800'/>", "characters that XML does not allow"),
        (BOMB, "must not declare"),
        (EXTERNAL, "must not declare"),
        ("<!DOCTYPE View><View/>", "must not declare"),
        ("<View>" + " " * MAX_CHARACTERS + "</View>", "longer than 5,000,000 characters"),
        ("<View>" * (MAX_DEPTH + 1) + "</View>" * (MAX_DEPTH + 1), "nested deeper"),
        ("<View>" * 200_000 + "</View>" * 200_000, "nested deeper"),
    ],
)
def test_what_cannot_be_read_says_why_in_one_sentence(xml, says):
    with pytest.raises(LabelConfigError) as caught:
        parse_config(xml)
    assert says in str(caught.value)
    assert str(caught.value).endswith(".") and caught.value.status == 400


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "UTF-16", "no-such-encoding"])
def test_an_xml_declaration_with_any_encoding_is_read(encoding):
    declared = f'\ufeff\n <?xml version="1.0" encoding="{encoding}"?>{SENTIMENT.replace("Neutral", "Größe 😀")}'
    assert parse_config(declared).spaces()["label"].classes == ("Positive", "Negative", "Größe 😀")


def test_tags_and_attributes_have_no_case_but_values_do():
    tag = read('<VIEW><Choices Name="N" TONAME="t" perRegion="True"/></VIEW>')
    assert tag.kind == "view"
    assert tag.children[0].attributes == {"name": "N", "toname": "t", "perregion": "True"}
    assert tag.children[0].is_true("perregion")


def test_comments_and_namespaces_are_no_matter():
    tag = read('<View xmlns="http://x"><!-- <Choices/> --><?pi?><Text name="t"/></View>')
    assert [child.kind for child in tag.children] == ["text"]


def test_walk_is_in_document_order_with_ancestors():
    tags = [(tag.kind, [a.kind for a in around]) for tag, around in walk(read("<a><b><c/></b><d/></a>"))]
    assert tags == [("a", []), ("b", ["a"]), ("c", ["a", "b"]), ("d", ["a"])]


def test_inner_markup_is_the_value_as_in_the_front_end():
    root = read("<View><Choice>  R&amp;D </Choice><HyperText><b>$a</b> and</HyperText><View><b/>x</View></View>")
    assert [child.inner for child in root.children] == ["R&amp;D", "<b>$a</b> and", ""]

"""What regions show: words of spans, parts of pictures, and a sentence for everything that cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from backend.labeling import parse_config
from backend.labeling.content import unpack
from backend.labeling.region_content import Drawn, Read, drawn_in, read_region

TEXT = parse_config("""<View><Text name="t" value="$text"/><Labels name="span" toName="t"><Label value="A"/></Labels>
<Choices name="tone" toName="t" perRegion="true"><Choice value="kind"/></Choices></View>""")
HYPER = parse_config("""<View><HyperText name="t" value="$text"/>
<Choices name="tone" toName="t" perRegion="true"><Choice value="kind"/></Choices></View>""")
IMAGE = parse_config("""<View><Image name="i" value="$image"/><Text name="t" value="$text"/>
<Choices name="tone" toName="i" perRegion="true"><Choice value="kind"/></Choices></View>""")
SOUND = parse_config("""<View><Audio name="a" value="$sound"/>
<Choices name="tone" toName="a" perRegion="true"><Choice value="kind"/></Choices></View>""")
PICTURE = {"image": "https://h/1.png", "text": "caption"}


def entry(to_name: str, value: dict[str, Any], name: str = "tone", **more: Any) -> dict[str, Any]:
    return {"id": "r", "from_name": name, "to_name": to_name, "value": value, **more}


def read(config: Any, data: dict[str, Any], value: dict[str, Any], **more: Any) -> Read:
    (name,) = config.regional["tone"].to_names
    (region,) = drawn_in(config, [entry(name, value, **more)]).values()
    return read_region(config, data, region, task=7)


def test_a_span_is_its_words() -> None:
    said = {"text": "  So be kind, please."}
    assert read(TEXT, said, {"start": 8, "end": 12, "text": "kind"}).content == "kind"
    assert read(TEXT, said, {"start": 8, "end": 12}).content == "kind"


def test_offsets_count_as_browsers_do_or_as_python_does() -> None:
    said = {"text": "\U0001f600 be kind"}
    for start, end in ((5, 9), (6, 10)):
        assert read(TEXT, said, {"start": start, "end": end, "text": "kind"}).content == "kind"


def test_words_of_hypertext_are_those_stored() -> None:
    said = {"text": "<p>So <b>be\n kind</b></p>"}
    span = {"start": "/p[1]/text()[1]", "startOffset": 0, "globalOffsets": {"start": 3, "end": 10}}
    assert read(HYPER, said, {**span, "text": "be kind"}).content == "be kind"
    assert "without its words" in read(HYPER, said, span).problem
    assert "has changed" in read(HYPER, said, {**span, "text": "be rude"}).problem


@pytest.mark.parametrize(("value", "why"), [
    ({"start": 0, "end": 99}, "ends beyond"),
    ({"start": 3, "end": 3}, "is empty"), ({"start": 2, "end": 3}, "is empty"),
    ({"start": 3, "end": 1}, "is empty"), ({"start": -3, "end": 1}, "no start and end"), ({"start": "x"}, "no start"),
    ({"start": float("nan"), "end": float("inf")}, "no start"), ({"start": 1e300, "end": 1e301}, "no start"),
    ({"start": 0, "end": 2, "text": "Go"}, "has changed"),
])  # fmt: skip
def test_a_bad_span_is_a_sentence(value: dict[str, Any], why: str) -> None:
    found = read(TEXT, {"text": "So be kind"}, value)
    assert why in found.problem and not found.content and "kind" not in found.problem


def test_a_box_is_its_part_of_the_picture_in_the_layout_of_the_task() -> None:
    found = unpack(read(IMAGE, PICTURE, {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 5}).content)
    assert found.modalities == unpack(IMAGE.content(PICTURE, task=7)).modalities and found.text == ""
    (part,) = found.media
    assert (part.address, part.box) == ("https://h/1.png", (10.0, 20.0, 30.0, 40.0, 5.0))


def test_polygons_and_ellipses_are_the_rectangle_around_them() -> None:
    for shape in ({"points": [[10, 20], [40, 30], [20, 60]]}, {"x": 25, "y": 40, "radiusX": 15, "radiusY": 20}):
        (part,) = unpack(read(IMAGE, PICTURE, shape).content).media
        assert part.box == (10.0, 20.0, 30.0, 40.0, 0.0)


@pytest.mark.parametrize(("value", "why"), [
    ({"x": 1}, "no geometry"), ({"x": 1, "y": 1, "width": 0, "height": 9}, "no size"),
    ({"x": 120, "y": 1, "width": 9, "height": 9}, "outside"), ({"x": -20, "y": 1, "width": 9, "height": 9}, "outside"),
    ({"points": [[1, 2], "x"]}, "no size"), ({"points": [[1, None]]}, "no geometry"), ({"points": []}, "no geometry"),
    ({"x": float("nan"), "y": 1, "width": 9, "height": 9}, "no geometry"),
])  # fmt: skip
def test_a_bad_box_is_a_sentence(value: dict[str, Any], why: str) -> None:
    found = read(IMAGE, PICTURE, value)
    assert why in found.problem and not found.content


def test_a_picture_that_the_task_lacks_is_a_sentence() -> None:
    box = {"x": 1, "y": 1, "width": 9, "height": 9}
    assert "does not have" in read(IMAGE, PICTURE, box, item_index=3).problem
    assert "does not have" in read(IMAGE, {"text": "caption"}, box).problem


def test_other_regions_are_read_as_their_task() -> None:
    sound = {"sound": "https://h/1.wav"}
    assert read(SOUND, sound, {"start": 0.5, "end": 1.5}).content == SOUND.content(sound, task=7)
    assert read(SOUND, {}, {"start": 0.5, "end": 1.5}).problem


def test_entries_of_one_place_are_one_region_with_what_makes_it() -> None:
    label = entry("t", {"start": 0, "end": 2, "text": "So", "labels": ["A"]}, "span", type="labels")
    found = drawn_in(TEXT, [label, entry("t", {"start": 0, "end": 2, "text": "So", "choices": ["kind"]}),
                            entry("elsewhere", {"start": 0, "end": 2}), entry("t", {"choices": ["kind"]}),
                            {"from_name": ["span"], "to_name": "t", "value": {"start": 1}},
                            {"value": None, "to_name": "t"}, {"value": {"start": 1}, "to_name": ["t"]}])
    (region,) = found.values()
    assert region.entries == (label,) and region.geometry == {"start": 0, "end": 2, "text": "So"}
    assert isinstance(region, Drawn)


@pytest.mark.parametrize("kind", ["textarea", "datetime", "chatmessage", "customanything", None])
def test_free_text_on_a_region_is_neither_its_shape_nor_its_words(kind: str | None) -> None:
    where = {"start": 0, "end": 2, "text": "So"}
    label = entry("t", {**where, "labels": ["A"]}, "span", type="labels")
    remark = entry("t", {**where, "text": ["a private remark"]}, "why", type=kind)
    (region,) = drawn_in(TEXT, [label, remark, entry("t", {**where, "choices": ["kind"]}, type="choices")]).values()
    assert region.entries == (label,) and region.geometry == where
    assert drawn_in(TEXT, [remark]) == {}

"""Generated labeling configurations and annotations, good and bad, from a number alone."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

WORDS = ("A", "B", "good", "ä", "1", "2", "3.5", "-1", "0", " ", "", "$x", "A / B", "\U0001f600", "<&\"'>", "a" * 300)
ODD = (
    None, True, False, 0, -1, 3, 2.5, 1e300, -1e300, float("nan"), float("inf"), 10**40, "", "A", "left", [], {}, [[]],
    ["A"], ["A", "A"], ["A", None, 3], [["A", "B"]], [[["A"]]], {"A": 1}, {"_": ["i1", "i1"]}, {"_": "i1"}, "\ud800",
)
KEYS = {
    "Choices": "choices", "Rating": "rating", "Number": "number", "Taxonomy": "taxonomy", "Pairwise": "selected",
    "Ranker": "ranker", "TextArea": "text", "DateTime": "datetime", "Labels": "labels",
    "RectangleLabels": "rectanglelabels",
}
FLAGS = ("perRegion", "perItem", "allowNested", "leafsOnly", "ordered")
TAGS = tuple(KEYS)


def _attributes(random: Random, tag: str) -> str:
    said = {name: random.choice(("true", "false")) for name in FLAGS if random.random() < 0.1}
    for name in ("min", "max", "step") if tag == "Number" else ():
        if random.random() < 0.5:
            said[name] = random.choice(("0", "1", "-5", "10", "1e3", "0.1", "1e308", "nan", "inf", "", "x", "٣"))
    if tag == "Rating" and random.random() < 0.5:
        said["maxRating"] = random.choice(("3", "10", "0", "-1", "x", "²", "100"))
    if random.random() < 0.3:
        said["choice"] = random.choice(("single", "multiple", "single-radio", "?"))
    if random.random() < 0.2:
        said["value"] = random.choice(("$items", "$", "$a.b[0]", "$text"))
    if random.random() < 0.15:
        said |= {"visibleWhen": random.choice(("choice-selected", "region-selected")), "whenTagName": "c0"}
    if random.random() < 0.1:
        said["maxUsages"] = random.choice(("1", "2", "x"))
    return " ".join(f"{name}={quoteattr(text)}" for name, text in said.items())


def _options(random: Random, tag: str, depth: int = 0) -> str:
    child = {"Ranker": "Bucket", "Labels": "Label", "RectangleLabels": "Label"}.get(tag, "Choice")
    found = []
    for _ in range(random.randrange(4 if depth else 7)):
        alias = f" alias={quoteattr(random.choice(WORDS))}" if random.random() < 0.3 else ""
        word = quoteattr(random.choice(WORDS))
        inside = _options(random, tag, depth + 1) if depth < 3 and random.random() < 0.2 else ""
        found.append(f"<{child} name={word} value={word}{alias}>{inside}</{child}>")
    return "".join(found)


def config(random: Random) -> str:
    """A labeling configuration; sometimes it is none, or not well-formed."""
    controls = []
    for at in range(random.randrange(1, 5)):
        tag, to = random.choice(TAGS), random.choice(("t", "t", "t,u", "l", "gone"))
        name = f"c{random.choice((at, at, at, 0))}"
        controls.append(
            f'<{tag} name="{name}" toName="{to}" {_attributes(random, tag)}>{_options(random, tag)}</{tag}>')
    whole = ('<View><Text name="t" value="$text"/><Text name="u" value="$other"/><List name="l" value="$items"/>'
             f'{"".join(controls)}</View>')
    if random.random() < 0.05:
        at = random.randrange(len(whole))
        whole = whole[:at] + random.choice(("<", ">", '"', "\x00", "&", "</View>")) + whole[at:]
    return whole


def _value(random: Random, tag: str) -> Any:
    right = {
        "Choices": ["A"], "Rating": random.randrange(1, 7), "Number": random.choice((0, 3, 2.5, 11)),
        "Taxonomy": [["A", "B"]], "Pairwise": random.choice(("left", "right")), "Ranker": {"_": ["i2", "i1"]},
        "Labels": ["A"], "RectangleLabels": ["A"], "TextArea": ["words"], "DateTime": "2026-11-28",
    }[tag]
    if tag in ("Choices", "Taxonomy") and random.random() < 0.5:
        right = [[word] if tag == "Taxonomy" else word for word in random.sample(WORDS, random.randrange(4))]
    return right if random.random() < 0.6 else random.choice(ODD)


def _region(random: Random) -> Any:
    if random.random() < 0.03:
        return random.choice(ODD)
    tag = random.choice(TAGS)
    value: Any = {KEYS[tag]: _value(random, tag)}
    if random.random() < 0.1:
        value |= random.choice(({"start": 0, "end": 3}, {"x": 1, "y": 2, "width": 3, "height": 4}, {"points": []}))
    region: dict[str, Any] = {
        "id": random.choice(("r1", 3, None)), "from_name": f"c{random.randrange(5)}", "to_name": "t",
        "type": KEYS[tag], "value": value if random.random() < 0.95 else random.choice(ODD),
        "origin": random.choice(("manual", "prediction", "prediction-changed", None, 3)),
    }
    for key in list(region):
        if random.random() < 0.02:
            region[key] = random.choice(ODD)
    return region


def task(random: Random) -> dict[str, Any]:
    """A task with annotations as Label Studio sends them, and as it never would."""
    annotations: Any = [
        {
            "id": at + 1, "completed_by": random.choice((1, 2, {"id": 3}, None, "x")), "was_cancelled": False,
            "created_at": random.choice(("2026-11-28T10:00:00Z", "then", None, 3)), "lead_time": random.choice(ODD),
            "result": random.choice(ODD) if random.random() < 0.05 else
            [_region(random) for _ in range(random.randrange(6))],
        }
        for at in range(random.randrange(4))
    ]
    return {
        "id": 7, "annotations": annotations if random.random() < 0.97 else random.choice(ODD),
        "data": random.choice((
            {"text": "words", "other": "more", "items": [{"id": "i1", "value": "A"}, {"id": "i2"}]},
            {"text": None, "items": random.choice(ODD)}, {}, json.loads('{"text": ["a", {"b": 1}]}'),
        )),
    }

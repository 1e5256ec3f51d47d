"""What stands in mutated requests instead of the right thing: odd values, label configurations, task data.

`PLANTED` is part of every text made here, so that an answer or a log line that repeats input can be seen.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

PLANTED = "zq7planted"
DEEP = "@@deep:%d@@"  # becomes nested lists when the body is written
RAW = "@@raw:%s@@"  # becomes what stands in it, without quotes
AGAIN = "@@again@@"  # in front of a key: the same key once more

WRONG_TYPES: tuple[Any, ...] = (
    True, False, 0, 1, 1.5, "", PLANTED, " ", [], {}, [[]], [None], {PLANTED: 1}, [PLANTED], {"id": None}, [{"id": []}],
)
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1.0, -0.0, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, "1", "１", RAW % "1e999",
    RAW % "-1e-999", RAW % ("9" * 5000), RAW % "01", RAW % "+1", RAW % "0x10",
)
NOT_NUMBERS = tuple(RAW % name for name in ("NaN", "Infinity", "-Infinity", "nan", "undefined"))
TEXTS = (
    "\ud800", "\udfff\ud800", PLANTED + "\ud83d", "\x00", f"\x00{PLANTED}\x00", "\u202e" + PLANTED, "\u2028\u2029",
    "\ufeff", "e\u0301" * 500, "\U0001f469\u200d\U0001f52c" * 50, "\x1b[31m" + PLANTED, "\r\nX-Evil: " + PLANTED,
    "../../../etc/passwd", "'; DROP TABLE votes; --", "%s%n{0}{{7*7}}", "<script>" + PLANTED + "</script>",
)
PROJECTS: tuple[Any, ...] = (
    "1", "1.", ".1", "1.1795817992 ", " 1.1795817992", "1.1795817992\n", "01.1795817992", "1.1795817992.3", "-1.5",
    "١.١٧٩٥٨١٧٩٩٢", "1e3.5", "1,1795817992", "9" * 18 + "." + "9" * 18, "9" * 19 + ".1", "0.0", "77", 77,
    "77.1795817992",
    "../1.1795817992", "1/1795817992", "1.1795817992\x00", PLANTED,
)
ACTIONS: tuple[Any, ...] = (
    "ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED", "ANNOTATIONS_DELETED", "ANNOTATION_DELETED",
    "TASKS_CREATED", "TASKS_DELETED", "TASKS_UPDATED", "PROJECT_CREATED", "PROJECT_UPDATED", "PROJECT_DELETED",
    "START_TRAINING", "LABEL_LINK_CREATED", "REVIEW_CREATED", "annotation_created", "ANNOTATION_CREATED ", "",
    "CREATED",
    "A" * 10_000, PLANTED, None, 1, ["ANNOTATION_CREATED"], {"action": "ANNOTATION_CREATED"},
)
DATA: tuple[Any, ...] = (
    {}, {"$undefined$": PLANTED}, {"text": None}, {"text": 5}, {"text": []}, {"text": [PLANTED, 1]},
    {"text": {"a": {}}},
    {"text": ""}, {"text": " \n\t"}, {"text": "word " * 20_000}, {"text": "w" * 200_000}, {"text": "<b>" * 3000},
    {"text": "<!--" + PLANTED}, {"text": "&#0;&#x110000;&bad;&#55296;"}, {"text": "\ud800 \x00"}, {"TEXT": PLANTED},
    {"text": DEEP % 60}, {"text": DEEP % 900}, {"": PLANTED}, {"text": True}, {"a.b": 1, "text": {"text": PLANTED}},
    {str(number): number for number in range(2000)},
)
ANNOTATIONS: tuple[Any, ...] = (
    None, {}, "", [None], [PLANTED], [[]], [{}], [{"completed_by": []}], [{"completed_by": {"id": {}}}],
    [{"completed_by": {"email": PLANTED}}], [{"completed_by": "5", "was_cancelled": "yes"}], [{"completed_by": True}],
    [{"completed_by": 1e308}], [{"completed_by": 5, "result": None}] * 300,
)


def odd_config(random: Random, xml: str) -> str:
    """A label configuration with something wrong in it; often it is still a valid one."""
    tags = re.findall(r"<[^/!?][^>]*>", xml)
    tag = random.choice(tags) if tags else ""
    names = re.findall(r'\b([a-zA-Z]+)="', xml)
    name = random.choice(names) if names else "name"
    return random.choice((
        lambda: xml.replace(tag, "", 1),  # a tag dropped, most often leaving its end
        lambda: xml.replace(tag, tag * 2, 1),
        lambda: re.sub(r"<Choice [^>]*/>", "", xml),
        lambda: re.sub(r"(<Choice [^>]*/>)", r"\1\1", xml),  # every choice doubled
        lambda: xml.replace("</View>", re.sub(r"</?View>", "", xml) + "</View>"),  # every control doubled
        lambda: xml.replace("Choices", "Chioces"),
        lambda: xml.replace("Choices", random.choice(("Labels", "Rating", "TextArea", "Taxonomy", "Pairwise"))),
        lambda: xml.replace("<Text", "<Image"),
        lambda: xml.replace(f'{name}="', f'x{name}="'),
        lambda: re.sub(rf'\b{name}="[^"]*"', f'{name}=""', xml),
        # A refusal may name controls and tags, but no label.
        lambda: re.sub(rf'\b{name}="[^"]*"', f'{name}="{PLANTED if name == "value" else "nobody"}"', xml),
        lambda: re.sub(rf'\b{name}="[^"]*"', "", xml),
        lambda: re.sub(r'toName="[^"]*"', 'toName="text,text,nobody"', xml),
        lambda: re.sub(r'value="\$[^"]*"', 'value="$a.b[0].c - $text"', xml),
        lambda: re.sub(r'value="\$[^"]*"', 'value="$$"', xml),
        lambda: xml[: random.randrange(len(xml) + 1)],
        lambda: xml.lower(),
        lambda: "<View>" * 400 + xml + "</View>" * 400,
        lambda: "<View>" * 60_000,
        lambda: f'<!DOCTYPE x [<!ENTITY a "{PLANTED}"><!ENTITY b "&a;&a;&a;">]>' + xml.replace("Positive", "&b;"),
        lambda: '<!DOCTYPE x SYSTEM "file:///etc/passwd">' + xml,
        lambda: '<?xml version="1.0" encoding="utf-16"?>' + xml,
        lambda: f"<!-- {PLANTED} -->" + xml + "<![CDATA[" + PLANTED + "]]>",
        lambda: xml.replace("<View>", '<View xmlns="urn:x" xmlns:p="urn:y" p:name="a">', 1),
        lambda: xml.replace("</Choices>", "".join(f'<Choice value="c{n}"/>' for n in range(3000)) + "</Choices>"),
        lambda: xml.replace("</Choices>", '<Choice value="\x00"/><Choice value="&#1;"/></Choices>'),
        lambda: xml.replace("</Choices>", "<Choice/><Choice value=''/><Choice><Choice value='in'/></Choice></Choices>"),
        lambda: xml.replace("\ufeff", "") * 2,
        lambda: json.dumps(xml),
    ))()

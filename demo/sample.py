"""The sample project: 360 short messages and the question that is asked about them.

Moods, forms and lengths are balanced: each nine messages of the file are one of each mood and form; of each such kind a
third is short, a third is long, and a third has an exclamation mark or a word in capitals. So no rule that an annotator
may have is about something rare, and none says the same as another one by accident.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

TITLE = "How polite is this message?"
CONTROL = "politeness"
OBJECT = "message"
LABELS = ("Polite", "Neutral", "Impolite")
LABEL_CONFIG = f"""<View>
  <Header value="{TITLE}"/>
  <Text name="{OBJECT}" value="$text"/>
  <Choices name="{CONTROL}" toName="{OBJECT}" choice="single" showInline="true">
    <Choice value="Polite"/>
    <Choice value="Neutral"/>
    <Choice value="Impolite"/>
  </Choices>
</View>"""


@dataclass(frozen=True, slots=True)
class Message:
    """One text of the sample."""

    id: str
    text: str
    mood: str  # "warm", "plain" or "cross"
    form: str  # "question", "command" or "statement"


def load() -> list[Message]:
    """All messages, in the order of the file."""
    lines = Path(__file__).with_name("sample.jsonl").read_text(encoding="utf-8").splitlines()
    return [Message(**json.loads(line)) for line in lines]

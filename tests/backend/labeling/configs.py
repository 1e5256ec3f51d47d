"""Small label configs, and hypothesis strategies for arbitrary ones."""

from __future__ import annotations

from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from hypothesis import strategies as st

from backend.labeling import LabelConfig, parse_config
from backend.labeling.controls.choices import Choices

SENTIMENT = """<View><Text name="text" value="$text"/>
  <Choices name="label" toName="text" choice="single">
    <Choice value="Positive"/><Choice value="Negative"/><Choice value="Neutral"/>
  </Choices></View>"""

# Any text that XML can hold; a "$name" in it would be read from task data.
TEXTS = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), min_size=1, max_size=8
).filter(lambda text: "$" not in text)


class Label(NamedTuple):
    value: str
    alias: str | None = None

    @property
    def stored(self) -> str:
        return self.value if self.alias is None else self.alias


LABELS = st.lists(
    st.builds(Label, TEXTS, st.none() | TEXTS), min_size=1, max_size=6, unique_by=lambda label: label.stored
).filter(lambda labels: len({label.value for label in labels}) == len(labels))


def choice(label: Label, inside: str = "") -> str:
    alias = "" if label.alias is None else f" alias={quoteattr(label.alias)}"
    return f"<Choice value={quoteattr(label.value)}{alias}>{inside}</Choice>"


def config_of(inside: str, *, attributes: str = "") -> LabelConfig:
    """A config with one Choices named "c"."""
    return parse_config(
        f'<View><Text name="t" value="$text"/><Choices name="c" toName="t" {attributes}>{inside}</Choices></View>'
    )


def choices_of(inside: str, *, attributes: str = "") -> Choices:
    control = config_of(inside, attributes=attributes).control("c")
    assert isinstance(control, Choices)
    return control


def region(*entries: object, name: str = "c", **more: object) -> dict[str, object]:
    value = {"choices": list(entries)}
    return {"id": "r", "from_name": name, "to_name": "t", "type": "choices", "value": value, **more}

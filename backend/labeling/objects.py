"""Object tags: what annotators look at. Text and HyperText become the text that the encoder reads.

All of them count that show task data, whether or not a control names them: annotators read them all the same.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.html_text import strip_html
from backend.labeling.markup import Tag
from backend.labeling.task_data import MISSING, as_text, lookup, resolve, variables, with_defined

# lower-case kind -> as Label Studio spells it
OBJECT_TAGS = {
    "audio": "Audio", "audioplus": "AudioPlus", "chat": "Chat", "hypertext": "HyperText", "image": "Image",
    "list": "List", "paragraphs": "Paragraphs", "pdf": "Pdf", "table": "Table", "text": "Text",
    "timeseries": "TimeSeries", "video": "Video",
}
_TEXTS = frozenset({"text", "hypertext"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTag:
    """A Text or HyperText that shows task data."""

    name: str
    tag: str  # as Label Studio spells it
    template: str  # "$text", "$a.b", "$title - $text"
    encoding: str = "none"  # "base64" and "base64unicode" as in Label Studio

    @property
    def key(self) -> str:
        """The first field that it reads, such as "text"."""
        return variables(self.template)[0]

    def text(self, data: Mapping[str, Any]) -> str:
        """What an annotator reads; "" where the task has nothing to show."""
        shown = as_text(resolve(data, self.template))
        if self.encoding != "none":
            try:
                shown = base64.b64decode(shown, validate=False).decode("utf-8", errors="replace")
            except (binascii.Error, ValueError):
                shown = ""
        return (strip_html(shown) if self.tag == "HyperText" else shown).strip()

    def problems(self, data: Mapping[str, Any]) -> list[str]:
        """Sentences on what keeps the text from being read; they carry names from the config only."""
        missing = [path for path in variables(self.template) if lookup(data, path) is MISSING]
        if missing:
            return [f"The task has no field '{path}', which {self.tag} '{self.name}' shows." for path in missing]
        return [] if self.text(data) else [f"{self.tag} '{self.name}' is empty for this task."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An object tag whose content Polyvox does not read."""

    name: str
    tag: str
    reason: str


def read_object(tag: Tag) -> ObjectTag | Unread | None:
    """The object that a tag is; None for a tag that is no object or shows no task data."""
    spelled = OBJECT_TAGS.get(tag.kind)
    if spelled is None or not variables(tag.value):
        return None
    name = tag.get("name")
    if tag.kind not in _TEXTS:
        return Unread(name=name, tag=spelled, reason=f"{spelled} '{name}' is not read yet: only text is.")
    if tag.get("valuetype").strip().lower() == "url":
        reason = f"{spelled} '{name}' is behind a URL (valueType), which is not read yet."
        return Unread(name=name, tag=spelled, reason=reason)
    encoding = tag.get("encoding").strip().lower() or "none"
    return ObjectTag(name=name, tag=spelled, template=tag.value, encoding=encoding)


def content(objects: Sequence[ObjectTag], data: Mapping[str, Any]) -> str:
    """All texts of a task, one after the other."""
    whole = defined(objects, data)
    return "\n".join(text for text in (tag.text(whole) for tag in objects) if text)


def defined(objects: Sequence[ObjectTag], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Data in which Label Studio's `$undefined$` field stands where the first object looks for it."""
    return with_defined(data, objects[0].key) if objects else data

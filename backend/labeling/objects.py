"""Object tags: what annotators look at. Texts and dialogues become the text that the encoder reads; images, sounds and
videos become references to files.

All of them count that show task data, whether or not a control names them: annotators read them all the same.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backend.labeling.content import Content, Medium, modalities_of
from backend.labeling.html_text import strip_html
from backend.labeling.markup import Tag
from backend.labeling.task_data import MISSING, as_text, lookup, resolve, variables, with_defined

# lower-case kind -> as Label Studio spells it
OBJECT_TAGS = {
    "audio": "Audio", "audioplus": "AudioPlus", "chat": "Chat", "hypertext": "HyperText", "image": "Image",
    "list": "List", "paragraphs": "Paragraphs", "pdf": "Pdf", "table": "Table", "text": "Text",
    "timeseries": "TimeSeries", "video": "Video",
}
_TEXTS = frozenset({"text", "hypertext", "paragraphs", "chat"})
_MEDIA = {"image": "image", "audio": "audio", "audioplus": "audio", "video": "video"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTag:
    """A Text, HyperText, Paragraphs or Chat that shows task data."""

    name: str
    tag: str  # as Label Studio spells it
    template: str  # "$text", "$a.b", "$title - $text"
    encoding: str = "none"  # "base64" and "base64unicode" as in Label Studio
    speaker_key: str = ""  # of dialogues: the fields of a turn
    words_key: str = ""

    @property
    def key(self) -> str:
        """The first field that it reads, such as "text"."""
        return variables(self.template)[0]

    def text(self, data: Mapping[str, Any]) -> str:
        """What an annotator reads; "" where the task has nothing to show."""
        shown = self.source(data)
        return (strip_html(shown) if self.tag == "HyperText" else shown).strip()

    def source(self, data: Mapping[str, Any]) -> str:
        """The text as the task has it, markup and margins too: what offsets of spans count in."""
        shown = self._shown(resolve(data, self.template))
        if self.encoding != "none":
            try:
                shown = base64.b64decode(shown, validate=False).decode("utf-8", errors="replace")
            except (binascii.Error, ValueError):
                shown = ""
        return shown

    def _shown(self, value: Any) -> str:
        if not self.words_key or not isinstance(value, list):
            return as_text(value)
        turns = [turn for turn in value if isinstance(turn, Mapping)]
        spoken = [(as_text(turn.get(self.speaker_key)), as_text(turn.get(self.words_key))) for turn in turns]
        return "\n".join(f"{speaker}: {words}" if speaker else words for speaker, words in spoken if words)

    def problems(self, data: Mapping[str, Any]) -> list[str]:
        """Sentences on what keeps the text from being read; they carry names from the config only."""
        missing = [path for path in variables(self.template) if lookup(data, path) is MISSING]
        if missing:
            return [f"The task has no field '{path}', which {self.tag} '{self.name}' shows." for path in missing]
        return [] if self.text(data) else [f"{self.tag} '{self.name}' is empty for this task."]


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaTag:
    """An Image, Audio or Video that shows a file, or several, of a task."""

    name: str
    tag: str  # as Label Studio spells it
    modality: str  # "image", "audio" or "video"
    template: str

    def addresses(self, data: Mapping[str, Any]) -> list[str]:
        """Where the files are; [] where the task has none."""
        value = resolve(data, self.template)
        several = value if isinstance(value, list) else [value]
        return [one.strip() for one in several if isinstance(one, str) and one.strip()]

    def problems(self, data: Mapping[str, Any]) -> list[str]:
        """Sentences on what keeps the file from being found; they carry names from the config only."""
        missing = [path for path in variables(self.template) if lookup(data, path) is MISSING]
        if missing:
            return [f"The task has no field '{path}', which {self.tag} '{self.name}' shows." for path in missing]
        return [] if self.addresses(data) else [f"{self.tag} '{self.name}' has no file in this task."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """An object tag whose content Polyvox does not read."""

    name: str
    tag: str
    reason: str


def read_object(tag: Tag) -> ObjectTag | MediaTag | Unread | None:
    """The object that a tag is; None for a tag that is no object or shows no task data."""
    spelled = OBJECT_TAGS.get(tag.kind)
    shown = tag.value or tag.get("valuelist")
    if spelled is None or not variables(shown):
        return None
    name = tag.get("name")
    if tag.kind in _MEDIA:
        return MediaTag(name=name, tag=spelled, modality=_MEDIA[tag.kind], template=shown)
    if tag.kind not in _TEXTS:
        return Unread(name=name, tag=spelled, reason=f"{spelled} '{name}' is not read yet.")
    if tag.get("valuetype").strip().lower() == "url":
        reason = f"{spelled} '{name}' is behind a URL (valueType), which is not read yet."
        return Unread(name=name, tag=spelled, reason=reason)
    speaker, words = "", ""
    if tag.kind == "paragraphs":
        speaker, words = tag.get("namekey") or "author", tag.get("textkey") or "text"
    elif tag.kind == "chat":
        speaker, words = "role", "content"
    encoding = tag.get("encoding").strip().lower() or "none"
    return ObjectTag(
        name=name, tag=spelled, template=shown, encoding=encoding, speaker_key=speaker, words_key=words
    )


def content(
    objects: Sequence[ObjectTag], media: Sequence[MediaTag], data: Mapping[str, Any], task: int | None
) -> Content:
    """All texts of a task, one after the other, and where its media are."""
    whole = defined([*objects, *media], data)
    return Content(
        text="\n".join(text for text in (tag.text(whole) for tag in objects) if text), task=task,
        media=tuple(Medium(modality=tag.modality, address=one) for tag in media for one in tag.addresses(whole)),
        modalities=modalities_of([*(["text"] if objects else []), *(tag.modality for tag in media)]) if media else (),
    )


def defined(objects: Sequence[ObjectTag | MediaTag], data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Data in which Label Studio's `$undefined$` field stands where the first object looks for it."""
    return with_defined(data, variables(objects[0].template)[0]) if objects else data

"""What a task shows, as one string: the key under which its tokens are cached and what encoders are given.

A task that shows nothing but text is its text. A task with images, sounds or videos is a marked line of JSON with the
text, the kinds of media that its labeling configuration shows, and where each medium is.

Invariants: equal contents are equal strings; a text never passes for packed media, whatever it begins with.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

_MARK = "\x1e"  # "record separator"; texts lose it, so no task can forge media


@dataclass(frozen=True, slots=True, kw_only=True)
class Medium:
    """One image, sound or video of a task."""

    modality: str  # "image", "audio" or "video"
    address: str  # as the task has it
    box: tuple[float, ...] | None = None  # of an image the part that counts, see `model.encoders.crops`; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that a task shows."""

    text: str
    media: tuple[Medium, ...] = ()  # in the order of the configuration; those that a task lacks are absent
    modalities: tuple[str, ...] = ()  # that the configuration shows, sorted; () for text alone
    task: int | None = None  # Label Studio's id, for media that only a task may be asked for


def pack(content: Content) -> str:
    """The string of a content; "" where a task shows nothing."""
    text = content.text.lstrip(_MARK)
    if not content.modalities:
        return text
    if not text and not content.media:
        return ""
    inside = any(medium.address.partition(":")[0] not in ("data", "http", "https") for medium in content.media)
    packed = [
        text, list(content.modalities),
        [[medium.modality, medium.address, *([] if medium.box is None else [medium.box])] for medium in content.media],
        content.task if inside else None,
    ]
    return _MARK + json.dumps(packed, ensure_ascii=False, separators=(",", ":"))


def unpack(packed: str) -> Content:
    """Inverse of `pack`."""
    if not packed.startswith(_MARK):
        return Content(text=packed)
    text, modalities, media, task = json.loads(packed[len(_MARK) :])
    return Content(
        text=text, modalities=tuple(modalities), task=task,
        media=tuple(Medium(modality=modality, address=address, box=tuple(box[0]) if box else None)
                    for modality, address, *box in media),
    )


def text_of(packed: str) -> str:
    """The text among what a task shows; "" where there is none."""
    return unpack(packed).text


def modalities_of(media: Sequence[str]) -> tuple[str, ...]:
    """The kinds among media tags, sorted, without repeats; a video is seen and heard."""
    return tuple(sorted({*media, *(["audio"] if "video" in media else [])}))

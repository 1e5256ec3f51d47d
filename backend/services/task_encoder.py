"""`TaskEncoder`: packed contents of tasks -> tokens, whatever a task shows: text, images, sound, video, or several.

Text alone is given to the text encoder as it is. Of a task with media every piece is read and encoded by its own
encoder, one batch a modality, and laid side by side (`model.encoders.layout`). A piece that cannot be read is left out,
the task is learned from what remains, and the reason is kept: such tokens are not cached, and the piece is asked for
again after a pause that doubles from a minute to a day, so that ten thousand missing files are no storm of requests.
Files on the web are the same for every task that names them: whoever knows the tasks names them (`backend.jobs`).

The encoders of images and sound are loaded at the first task that needs them.

Shape legend: T tokens of a task, D dimension of the text encoder, W width of the layout.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from backend.errors import MediaError
from backend.labeling.content import Content, Medium, unpack
from model.errors import ContentError, ModelError

if TYPE_CHECKING:
    from model.encoders import Encoder
    from model.encoders.decoders import Decoder
    from model.encoders.image import ImageEncoder
    from model.encoders.layout import Layout, Piece
    from model.encoders.sound import SoundEncoder
    from model.encoders.video import VideoEncoder

logger = logging.getLogger(__name__)
Tokens = NDArray[np.float16]  # (T, D) or (T, W)
_READERS = 8  # files that are fetched at the same time
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 86_400.0
_REMEMBERED = 20_000  # pieces that could not be read


class Reader(Protocol):
    """What gives the bytes of a medium; see `backend.media.MediaReader`."""

    def read(self, value: object, *, task: int | None = None) -> bytes:
        """The bytes. Raises MediaError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    sentence: str
    again_at: float
    pause_s: float


class TaskEncoder:
    """Implements `model.encoders.FallibleEncoder` over one encoder for each modality."""

    def __init__(
        self, text: Encoder, *, reader: Reader, decoder: Decoder, images: Callable[[], ImageEncoder],
        sounds: Callable[[], SoundEncoder], names: str, seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`names` tells the encoders of images and sound apart from others, without loading them. `decoder` reads parts
        of pictures, and videos."""
        self._decoder = decoder
        self._text = text
        self._reader = reader
        self._load_images = images
        self._load_sounds = sounds
        self._seconds = seconds
        self._failures: OrderedDict[tuple[int | None, Medium], _Failure] = OrderedDict()
        self.dim = text.dim
        self.id = f"{text.id}+{names}"

    def encode(self, contents: Sequence[str]) -> list[Tokens]:
        """Tokens of each content: (T, D) of text alone, (T, W) where there are media."""
        unpacked = [unpack(content) for content in contents]
        plain = [row for row, content in enumerate(unpacked) if not content.modalities]
        texts = self._text.encode([unpacked[row].text for row in plain])
        found: dict[int, Tokens] = dict(zip(plain, texts, strict=True))
        mixed = [row for row, content in enumerate(unpacked) if content.modalities]
        if mixed:
            found |= dict(zip(mixed, self._encode_mixed([unpacked[row] for row in mixed]), strict=True))
        return [found[row] for row in range(len(contents))]

    def spans(self, text: str) -> NDArray[np.int64]:
        """Where the tokens of a text stand in it, (T, 2). Raises ModelError where the text encoder cannot say."""
        from model.encoders import LocatingEncoder

        if not isinstance(self._text, LocatingEncoder):
            raise ModelError("this text encoder does not say where its tokens stand")
        return self._text.spans(text)

    def failures(self, contents: Sequence[str]) -> dict[str, str]:
        """content -> a sentence, for those of which a piece could not be read lately."""
        found = {}
        for content in contents:
            unpacked = unpack(content)
            for medium in unpacked.media:
                for tried in (medium, replace(medium, box=None)):  # the part of a picture, or its file
                    failure = self._failures.get((unpacked.task, tried))
                    if failure is not None:
                        found[content] = failure.sentence
        return found

    def _encode_mixed(self, contents: Sequence[Content]) -> list[Tokens]:
        wanted = [(row, content.task, medium) for row, content in enumerate(contents) for medium in content.media]
        files = self._parts([(task, medium) for _, task, medium in wanted])
        pieces: list[list[Piece]] = [[] for _ in contents]
        self._add_texts(contents, pieces)
        by_modality: dict[str, list[tuple[int, int | None, Medium, bytes]]] = {}
        for row, task, medium in wanted:
            if (data := files.get((task, medium))) is not None:
                by_modality.setdefault(medium.modality, []).append((row, task, medium, data))
        for modality, found in by_modality.items():
            encoded = self._each(modality, [data for *_, data in found])
            for (row, task, medium, _), result in zip(found, encoded, strict=True):
                if isinstance(result, ContentError):
                    self._failed(task, medium, str(result))
                else:
                    self._failures.pop((task, medium), None)
                    pieces[row] += _ordered(result, pieces[row])
        layouts = [self._layout(content.modalities) for content in contents]
        return [layout.assemble(found) for layout, found in zip(layouts, pieces, strict=True)]

    def _parts(self, wanted: Sequence[tuple[int | None, Medium]]) -> dict[tuple[int | None, Medium], bytes]:
        """The bytes of each medium; of parts of a picture, which is read and decoded once for all of them, a PNG."""
        files = self._read([(task, replace(medium, box=None)) for task, medium in wanted])
        found: dict[tuple[int | None, Medium], bytes] = {}
        boxed: dict[tuple[int | None, Medium], list[Medium]] = {}
        for task, medium in dict.fromkeys(wanted):
            file = (task, replace(medium, box=None))
            if file in files and medium.box is None:
                found[file] = files[file]
            elif file in files:
                boxed.setdefault(file, []).append(medium)
        for (task, whole), parts in boxed.items():
            try:
                cut = self._decoder.crops(files[task, whole], [part.box for part in parts if part.box is not None])
            except ContentError as error:
                self._failed(task, whole, str(error))
                continue
            for part, data in zip(parts, cut, strict=True):
                if isinstance(data, ContentError):
                    self._failed(task, part, str(data))
                else:
                    found[task, part] = data
        return found

    def _add_texts(self, contents: Sequence[Content], pieces: list[list[Piece]]) -> None:
        from model.encoders.layout import Piece

        rows = [row for row, content in enumerate(contents) if content.text and "text" in content.modalities]
        for row, tokens in zip(rows, self._text.encode([contents[row].text for row in rows]), strict=True):
            pieces[row].append(Piece(modality="text", tokens=tokens))

    def _read(self, wanted: Sequence[tuple[int | None, Medium]]) -> Mapping[tuple[int | None, Medium], bytes]:
        """The files that can be had now; those that failed lately are not asked for."""
        now = self._seconds()
        due = [
            key for key in dict.fromkeys(wanted)
            if (failure := self._failures.get(key)) is None or failure.again_at <= now
        ]
        with ThreadPoolExecutor(_READERS, thread_name_prefix="media") as pool:
            read = list(pool.map(self._read_one, due))
        return {key: data for key, data in zip(due, read, strict=True) if data is not None}

    def _read_one(self, key: tuple[int | None, Medium]) -> bytes | None:
        task, medium = key
        try:
            return self._reader.read(medium.address, task=task)
        except MediaError as error:
            self._failed(task, medium, str(error))
            return None
        except Exception as error:  # whatever one file does, only that file fails
            self._failed(task, medium, f"The file cannot be read ({type(error).__name__}).")
            return None

    def _failed(self, task: int | None, medium: Medium, sentence: str) -> None:
        before = self._failures.pop((task, medium), None)
        pause = _FIRST_PAUSE_S if before is None else min(2 * before.pause_s, _LONGEST_PAUSE_S)
        self._failures[(task, medium)] = _Failure(
            sentence=sentence, pause_s=pause, again_at=self._seconds() + pause
        )
        if len(self._failures) > _REMEMBERED:
            self._failures.popitem(last=False)
        if before is None and task is not None:  # neither address nor content: the task says where to look
            logger.warning("A medium (%s) of task %s is left out: %s", medium.modality, task, sentence)

    def _each(self, modality: str, files: Sequence[bytes]) -> list[list[Piece] | ContentError]:
        """The pieces of each file; where a batch fails as a whole, one after the other, so that one file fails alone.

        Running out of memory is not the fault of a file."""
        try:
            return self._pieces(modality, files)
        except (MemoryError, ModelError):
            raise
        except Exception as error:
            if "out of memory" in str(error).lower():
                raise
            kind = type(error).__name__  # its message may quote the file
            logger.warning("A batch of %d media (%s) failed (%s); they are read one by one", len(files), modality, kind)
        found: list[list[Piece] | ContentError] = []
        for data in files:
            try:
                found += self._pieces(modality, [data])
            except (MemoryError, ModelError):
                raise
            except Exception as error:
                found.append(ContentError(f"The file cannot be read ({type(error).__name__})."))
        if len(files) > 1 and all(isinstance(each, ContentError) for each in found):
            logger.error("All %d files of a batch (%s) failed", len(files), modality)
        return found

    def _pieces(self, modality: str, files: Sequence[bytes]) -> list[list[Piece] | ContentError]:
        """The pieces of each file: one, or two of a video that has sound."""
        from model.encoders.layout import Piece

        if modality == "image":
            grids = self._images.encode(files)
            return [one if isinstance(one, ContentError) else [Piece(modality="image", tokens=one, grid=True)]
                    for one in grids]  # fmt: skip
        heard = self._sounds.encode(files)
        sounds = [one if isinstance(one, ContentError) else
                  [Piece(modality="audio", tokens=one.tokens, seconds=one.seconds)] for one in heard]  # fmt: skip
        if modality == "audio":
            return sounds
        seen = self._videos.encode(files)
        return [
            frames if isinstance(frames, ContentError) else
            [Piece(modality="video", tokens=frames.tokens, seconds=frames.seconds),
             *([] if isinstance(sound, ContentError) else sound)]  # a video may be silent
            for frames, sound in zip(seen, sounds, strict=True)
        ]  # fmt: skip

    @cached_property
    def _images(self) -> ImageEncoder:
        return self._load_images()

    @cached_property
    def _sounds(self) -> SoundEncoder:
        return self._load_sounds()

    @cached_property
    def _videos(self) -> VideoEncoder:
        from model.encoders.video import VideoEncoder

        return VideoEncoder(self._images, decoder=self._decoder)

    def _layout(self, modalities: Sequence[str]) -> Layout:
        from model.encoders.layout import Layout

        dims = []
        if "text" in modalities:
            dims.append(("text", self._text.dim))
        if "image" in modalities or "video" in modalities:
            dims.append(("image", self._images.dim))
        if "audio" in modalities:
            dims.append(("audio", self._sounds.dim))
        return Layout(dims=tuple(dims))


def _ordered(new: Sequence[Piece], before: Sequence[Piece]) -> list[Piece]:
    """New pieces of a task, numbered after those of the same modality that it already has."""
    return [replace(piece, order=sum(other.modality == piece.modality for other in before)) for piece in new]

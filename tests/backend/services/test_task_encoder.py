"""Tokens of tasks with media: pieces in their places; failures are left out, named, not kept, not repeated at once."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from backend.errors import MediaError
from backend.labeling.content import Content, Medium, modalities_of, pack
from backend.services.features import Features
from backend.services.task_encoder import TaskEncoder
from model.encoders import FallibleEncoder
from model.encoders.decoders import Inline
from model.encoders.layout import MODALITIES
from model.encoders.sound import Heard
from model.errors import ContentError


class Words:
    """A token a word, 3 wide."""

    id, dim = "words", 3

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float16]]:
        return [np.full((max(len(text.split()), 1), 3), len(text), np.float16) for text in texts]


class Pictures:
    """Four tokens an image, 2 wide; what is called broken cannot be read."""

    dim, side = 2, 8

    def encode(self, images: Sequence[bytes]) -> list[NDArray[np.float16] | ContentError]:
        return [ContentError("The image is damaged.") if image == b"broken" else np.full((4, 2), len(image), np.float16)
                for image in images]  # fmt: skip


class Sounds:
    """A token a byte, 4 wide."""

    dim = 4

    def encode(self, recordings: Sequence[bytes]) -> list[Heard | ContentError]:
        return [Heard(tokens=np.ones((len(one), 4), np.float16), seconds=np.arange(len(one), dtype=np.float32))
                for one in recordings]  # fmt: skip


class Files:
    """A shelf of files that counts how often each is asked for."""

    def __init__(self, **files: bytes) -> None:
        self.files = files
        self.asked: list[tuple[str, int | None]] = []

    def read(self, value: object, *, task: int | None = None) -> bytes:
        self.asked.append((str(value), task))
        if value not in self.files:
            raise MediaError("The host answered 404 for the file.")
        return self.files[str(value)]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def content(text: str = "", *media: tuple[str, str], shows: Sequence[str] = ("image", "text"), task: int = 1) -> str:
    return pack(Content(
        text=text, media=tuple(Medium(modality=kind, address=address) for kind, address in media),
        modalities=modalities_of(shows), task=task,
    ))  # fmt: skip


@pytest.fixture
def files() -> Files:
    return Files(cat=b"cat", horse=b"horse", broken=b"broken", purr=b"purr")


def encoder(files: Files, clock: Clock | None = None) -> TaskEncoder:
    return TaskEncoder(
        Words(), reader=files, decoder=Inline(), images=Pictures, sounds=Sounds, names="pictures+sounds",  # type: ignore[arg-type]
        seconds=clock or Clock(),
    )


def kinds(tokens: NDArray[np.float16], content_width: int) -> list[str]:
    return [MODALITIES[int(row.argmax())] for row in tokens[:, content_width : content_width + len(MODALITIES)]]


def test_text_alone_is_what_the_text_encoder_makes_of_it(files: Files) -> None:
    (tokens,) = encoder(files).encode(["two words"])
    assert tokens.shape == (2, 3) and not files.asked


def test_text_and_images_lie_side_by_side(files: Files) -> None:
    one, two = encoder(files).encode([
        content("a b c", ("image", "cat"), ("image", "horse")), content("", ("image", "horse"), task=2)
    ])
    assert kinds(one, 5) == ["text"] * 3 + ["image"] * 8 and kinds(two, 5) == ["image"] * 4
    assert one.shape[1] == two.shape[1]
    assert one[3, 3] == 3 and one[7, 3] == 5  # cat, then horse
    assert one[3, -1] != one[7, -1]  # the first is not the second image
    assert files.asked == [("cat", 1), ("horse", 1), ("horse", 2)]


def test_sound_beside_text(files: Files) -> None:
    (tokens,) = encoder(files).encode([content("a", ("audio", "purr"), shows=("audio", "text"))])
    assert kinds(tokens, 7) == ["text"] + ["audio"] * 4


def test_order_of_a_mixed_batch(files: Files) -> None:
    tokens = encoder(files).encode(["a b", content("c", ("image", "cat")), "d e f"])
    assert [len(one) for one in tokens] == [2, 5, 3]


def test_a_file_that_cannot_be_read_is_left_out_and_named(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    mixed = encoder(files)
    lost, damaged, whole = (content("a", ("image", name), task=7) for name in ("gone", "broken", "cat"))
    tokens = mixed.encode([lost, damaged, whole])
    assert [len(one) for one in tokens] == [1, 1, 5]
    assert mixed.failures([lost, damaged, whole]) == {
        lost: "The host answered 404 for the file.", damaged: "The image is damaged."
    }
    assert "task 7" in caplog.text and "gone" not in caplog.text


def test_a_task_of_which_nothing_can_be_read_says_nothing(files: Files) -> None:
    (tokens,) = encoder(files).encode([content("", ("image", "gone"))])
    assert len(tokens) == 1 and not tokens.any()


def test_what_failed_is_asked_for_again_after_pauses_that_double(files: Files) -> None:
    clock = Clock()
    mixed = encoder(files, clock)
    lost = content("a", ("image", "gone"))
    for now in (0, 1, 59, 61, 100, 170, 190):
        clock.now = now
        mixed.encode([lost])
    assert len(files.asked) == 3  # at 0, 61 and 190
    files.files["gone"] = b"back"
    clock.now = 1000
    assert len(mixed.encode([lost])[0]) == 5 and mixed.failures([lost]) == {}


def test_ten_thousand_missing_files_are_one_request_each(files: Files) -> None:
    mixed = encoder(files)
    contents = [content("a", ("image", f"gone{task}"), task=task) for task in range(10_000)]
    for _ in range(3):
        assert len(mixed.encode(contents)) == 10_000
    assert len(files.asked) == 10_000 and len(mixed.failures(contents)) == 10_000


def test_tokens_that_lack_a_file_are_not_kept(files: Files, tmp_path: Path) -> None:
    clock = Clock()
    mixed = encoder(files, clock)
    assert isinstance(mixed, FallibleEncoder)
    features = Features(encoder_factory=lambda: mixed, folder=tmp_path, max_mb=16)
    lost, whole = content("a", ("image", "gone")), content("a", ("image", "cat"))
    assert [len(one) for one in features.texts([lost, whole])] == [1, 5]
    assert features.cached([lost, whole]) == [False, True]
    files.files["gone"], clock.now = b"back", 61
    assert len(features.texts([lost])[0]) == 5 and features.cached([lost]) == [True]
    features.close()


def test_parts_of_a_picture_are_encoded_alone_and_its_file_is_read_once(files: Files) -> None:
    image = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(image, "PNG")
    files.files |= {"p.png": image.getvalue(), "bad.png": b"<html>"}
    made = [pack(Content(text="", modalities=("image", "text"), task=1, media=(
        Medium(modality="image", address=address, box=box),)))
        for address, box in (("p.png", (0, 0, 50, 50, 0)), ("p.png", (0, 0, 100, 100, 0)),
                             ("p.png", (300, 0, 9, 9, 45)), ("bad.png", (0, 0, 9, 9, 0)))]  # fmt: skip
    task_encoder = encoder(files)
    small, large, outside, bad = task_encoder.encode(made)
    assert small.shape == large.shape and not np.array_equal(small, large)
    assert [asked[0] for asked in files.asked].count("p.png") == 1
    failures = task_encoder.failures(made)
    assert set(failures) == set(made[2:]) and "outside the picture" in failures[made[2]]
    assert small.shape[1] == outside.shape[1] == bad.shape[1]


class Unlucky(Files):
    """One file ends its reader with an error that nobody foresaw."""

    def read(self, value: object, *, task: int | None = None) -> bytes:
        if value == "7-schön":
            raise UnicodeEncodeError("ascii", str(value), 5, 6, "ordinal not in range(128)")
        return super().read(value, task=task)


class Fragile(Pictures):
    """Pictures of which one ends the whole batch."""

    def encode(self, images: Sequence[bytes]) -> list[NDArray[np.float16] | ContentError]:
        if b"trap" in images:
            raise KeyError("trap")
        return super().encode(images)


def test_whatever_one_file_does_only_that_file_fails(caplog: pytest.LogCaptureFixture) -> None:
    files = Unlucky(cat=b"cat", trap=b"trap", horse=b"horse")
    mixed = TaskEncoder(
        Words(), reader=files, decoder=Inline(), images=Fragile, sounds=Sounds, names="x",  # type: ignore[arg-type]
        seconds=Clock())
    odd, trap, *whole = (content("a", ("image", name)) for name in ("7-schön", "trap", "cat", "horse"))
    tokens = mixed.encode([odd, whole[0], trap, whole[1]])
    assert [len(one) for one in tokens] == [1, 5, 1, 5]
    assert mixed.failures([odd, trap, *whole]) == {
        odd: "The file cannot be read (UnicodeEncodeError).", trap: "The file cannot be read (KeyError)."}
    assert "schön" not in caplog.text and "task 1" in caplog.text

"""Reading images of every kind that people upload, and refusing what is none."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from model.encoders.pictures import FORMATS, read_picture
from model.errors import ContentError


def encoded(picture: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def halves(mode: str = "RGB", left: Any = (255, 0, 0), right: Any = (0, 0, 255)) -> Image.Image:
    picture = Image.new(mode, (40, 40), left)
    picture.paste(right, (20, 0, 40, 40))
    return picture


def corner(pixels: np.ndarray, left: bool = True) -> list[int]:
    return [int(value) for value in pixels[2, 2 if left else -3]]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_read(form: str) -> None:
    pixels = read_picture(encoded(halves(), form), 16)
    assert pixels.shape == (16, 16, 3)
    assert np.allclose(corner(pixels), (255, 0, 0), atol=12)
    assert np.allclose(corner(pixels, False), (0, 0, 255), atol=12)


def test_rotation_by_exif_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    assert np.allclose(corner(read_picture(encoded(halves(), "JPEG", exif=exif), 16)), (0, 0, 255), atol=12)


def test_transparency_is_laid_on_white() -> None:
    assert corner(read_picture(encoded(halves("RGBA", (0, 0, 0, 0), (0, 0, 0, 255))), 16)) == [255, 255, 255]


def test_greys_of_one_and_of_two_bytes() -> None:
    assert np.allclose(corner(read_picture(encoded(halves("L", 100, 0)), 16)), 100, atol=4)
    wide = np.zeros((40, 40), np.uint16)
    wide[:, :20] = 65535
    pixels = read_picture(encoded(Image.fromarray(wide)), 16)
    assert corner(pixels) == [255, 255, 255] and corner(pixels, False) == [0, 0, 0]


def test_the_first_frame_of_an_animation_counts() -> None:
    file = io.BytesIO()
    halves().save(file, "GIF", save_all=True, append_images=[Image.new("RGB", (40, 40), "black")])
    assert corner(read_picture(file.getvalue(), 16)) == [255, 0, 0]


def test_one_pixel() -> None:
    assert read_picture(encoded(Image.new("RGB", (1, 1), (9, 8, 7))), 16).tolist() == [[[9, 8, 7]] * 16] * 16


@pytest.mark.parametrize("side", [11_000, 30_000])
def test_too_many_pixels_are_refused_before_they_are_decoded(side: int) -> None:
    data = bytearray(encoded(Image.new("1", (8, 8))))
    data[16:24] = side.to_bytes(4, "big") * 2  # the size in the header of a PNG
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    with pytest.raises(ContentError, match="more than 100 million pixels"):
        read_picture(bytes(data), 16)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not an image"), (b"plain text", "not an image"), (b" <!DOCTYPE html><p>", "web page"),
        (b"<svg/>", "a drawing"), (b"%PDF-1.4", "not an image"), (b"\x89PNG\r\n\x1a\n", "not an image|damaged"),
    ],
)
def test_what_is_no_image(data: bytes, words: str) -> None:
    with pytest.raises(ContentError, match=words):
        read_picture(data, 16)


@pytest.mark.parametrize("form", FORMATS)
def test_damaged_files_are_refused_or_read_but_never_crash(form: str) -> None:
    rng = np.random.default_rng(5)
    good = encoded(halves(), form)
    for _ in range(40):
        bad = bytearray(good[: int(rng.integers(1, len(good)))] if rng.random() < 0.5 else good)
        for place in rng.integers(0, len(bad), 3):
            bad[place] = int(rng.integers(256))
        try:
            assert read_picture(bytes(bad), 16).shape == (16, 16, 3)
        except ContentError as error:
            assert str(error).endswith(".")

"""Parts of pictures: what a box shows, turned, beyond the edge, or nothing at all."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from model.encoders.crops import crops
from model.errors import ContentError


def picture() -> bytes:
    """40 x 20: left half red, right half blue."""
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, :20, 0] = pixels[:, 20:, 2] = 255
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def opened(part: bytes | ContentError) -> Image.Image:
    assert isinstance(part, bytes)
    return Image.open(io.BytesIO(part))


def test_boxes_are_cut_out_within_the_picture() -> None:
    red, blue, whole = map(opened, crops(picture(), [(0, 0, 50, 100, 0), (75, 50, 500, 500, 0), (-9, -9, 200, 200, 0)]))
    assert red.size == (20, 20) and red.getcolors() == [(400, (255, 0, 0))]
    assert blue.size == (10, 10) and blue.getcolors() == [(100, (0, 0, 255))]
    assert whole.size == (40, 20)


def test_a_turned_box_is_the_rectangle_around_it() -> None:
    # Ten pixels wide and four high, turned by 90 degrees about (20, 5): it hangs down to the left of that corner.
    (part,) = crops(picture(), [(50, 25, 25, 20, 90)])
    assert opened(part).size in ((4, 10), (5, 11)) and opened(part).getpixel((0, 0)) == (255, 0, 0)


def test_outside_the_picture_is_a_sentence_and_spoils_nothing_else() -> None:
    gone, there = crops(picture(), [(150, 0, 10, 10, 45), (0, 0, 1, 1, 0)])
    assert isinstance(gone, ContentError) and opened(there).size == (1, 1)
    with pytest.raises(ContentError):
        crops(b"<html>", [(0, 0, 1, 1, 0)])

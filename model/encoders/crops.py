"""Parts of a picture as pictures of their own: what annotators judged when they drew a box.

A box is (x, y, width, height, degrees) as Label Studio has it: percent of the picture as people see it, turned
clockwise about its upper left corner. Of a turned box the upright rectangle around it counts; what lies outside the
picture is cut off. The picture is decoded once for all of its boxes in one call, within the limits of `pictures`.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import BinaryIO

from PIL import Image

from model.encoders.pictures import upright
from model.errors import ContentError

Box = Sequence[float]  # (5,)
_DECODED = 1024  # a JPEG may be decoded to twice this side, not below
_LARGEST = 512  # pixels a side of a crop; encoders take less


def crops(source: bytes | BinaryIO, boxes: Sequence[Box]) -> list[bytes | ContentError]:
    """A PNG for each box, in order, or why there is none. Raises ContentError for what is no readable image,
    and MemoryError."""
    picture = upright(source, _DECODED)
    return [_crop(picture, box) for box in boxes]


def _crop(picture: Image.Image, box: Box) -> bytes | ContentError:
    left, top, right, bottom = _around(picture, box)
    if right <= left or bottom <= top:
        return ContentError("The box lies outside the picture.")
    part = picture.crop((left, top, right, bottom))
    part.thumbnail((_LARGEST, _LARGEST))
    out = io.BytesIO()
    part.save(out, "PNG", compress_level=1)
    return out.getvalue()


def _around(picture: Image.Image, box: Box) -> tuple[int, int, int, int]:
    """Pixels of the upright rectangle around a box, within the picture; at least one where the box touches it."""
    x, y = box[0] / 100 * picture.width, box[1] / 100 * picture.height
    wide, high = box[2] / 100 * picture.width, box[3] / 100 * picture.height
    sine, cosine = math.sin(math.radians(box[4])), math.cos(math.radians(box[4]))
    corners = [(x + a * cosine - b * sine, y + a * sine + b * cosine)
               for a, b in ((0, 0), (wide, 0), (0, high), (wide, high))]
    across, down = [corner[0] for corner in corners], [corner[1] for corner in corners]
    return (max(math.floor(min(across)), 0), max(math.floor(min(down)), 0),
            min(math.ceil(max(across)), picture.width), min(math.ceil(max(down)), picture.height))

"""Bytes of an image file -> an upright RGB picture of a given size, within limits.

Only formats of `FORMATS` are opened, by their content and not by their name. The size is read from the header and
judged before a pixel is decoded, since a small file may unpack to any size. Rotation by EXIF is applied, transparency
is laid on white, 16-bit greys are scaled, of an animation the first frame counts.

Pixels are held once: what Pillow decoded (at most 4 bytes a pixel) is made RGB in strips, and a picture of more than
`WHOLE_PIXELS` is made smaller by a whole factor on the way.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from model.errors import ContentError

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
MAX_PIXELS = 100_000_000  # 400 MB in memory; cameras stay below
WHOLE_PIXELS, KEPT_PIXELS = 16_000_000, 4_000_000  # a larger one is made smaller, to what is kept of it
_TOO_MANY = f"The image has more than {MAX_PIXELS // 1_000_000} million pixels."
# What Pillow's decoders raise for damaged files, each its own.
_DAMAGED = (OSError, ValueError, SyntaxError, TypeError, ArithmeticError, LookupError, EOFError)
_GREY_16 = frozenset({"I", "I;16", "I;16B", "I;16L", "F"})
_STRIP = 1_000_000  # pixels that are converted at a time
_ORIENTATION = 0x0112  # the tag of EXIF
_NO_MEMORY = "out of memory"  # in what Pillow says of some decoders


def read_picture(source: bytes | BinaryIO, size: int) -> NDArray[np.uint8]:
    """RGB pixels (size, size, 3) of the whole picture, squeezed to a square: annotators judge its margins as well.

    Raises ContentError with a sentence for what is no readable image or has more than `MAX_PIXELS` pixels, and
    MemoryError.
    """
    return np.asarray(upright(source, size).resize((size, size), Image.Resampling.BICUBIC), np.uint8)


def upright(source: bytes | BinaryIO, size: int) -> Image.Image:
    """The whole picture as people see it, RGB, in its own shape; perhaps smaller: of a JPEG, though not below `size`,
    and of more than `WHOLE_PIXELS`.

    Raises ContentError with a sentence for what is no readable image or has more than `MAX_PIXELS` pixels, and
    MemoryError.
    """
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    try:
        with Image.open(file, formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ContentError(_TOO_MANY)
            opened.draft("RGB", (2 * size, 2 * size))  # JPEG decodes a smaller picture several times faster
            opened.load()
            picture = _rgb(opened)
            picture.getexif()[_ORIENTATION] = opened.getexif().get(_ORIENTATION, 1)
            ImageOps.exif_transpose(picture, in_place=True)
            return picture
    except ContentError:
        raise
    except Image.DecompressionBombError as error:  # Pillow's own limit is higher and not to be switched off
        raise ContentError(_TOO_MANY) from error
    except UnidentifiedImageError as error:
        raise ContentError(_unreadable(file)) from error
    except _DAMAGED as error:
        if _NO_MEMORY in str(error).lower():
            raise MemoryError from error
        raise ContentError("The image is damaged.") from error


def _rgb(picture: Image.Image) -> Image.Image:
    """RGB; of a large picture made smaller by the whole factor that leaves at most `KEPT_PIXELS`."""
    pixels = picture.width * picture.height
    factor = math.ceil(math.sqrt(pixels / KEPT_PIXELS)) if pixels > WHOLE_PIXELS else 1
    deep = picture.mode in _GREY_16 and any(_brightest(strip) > 255 for _, strip in _strips(picture, 1))
    top = 65535.0 if deep else 255.0
    if pixels <= _STRIP:
        return _converted(picture, top)
    whole = Image.new("RGB", (math.ceil(picture.width / factor), math.ceil(picture.height / factor)))
    for row, strip in _strips(picture, factor):
        part = _converted(strip, top)
        whole.paste(part.reduce(factor) if factor > 1 else part, (0, row // factor))
    return whole


def _strips(picture: Image.Image, factor: int) -> Iterator[tuple[int, Image.Image]]:
    """Strips of the whole width and the row where each begins, a multiple of `factor`."""
    high = max(_STRIP // picture.width // factor, 1) * factor
    for row in range(0, picture.height, high):
        yield row, picture.crop((0, row, picture.width, min(row + high, picture.height)))


def _brightest(picture: Image.Image) -> float:
    return float(np.asarray(picture).max(initial=0))


def _converted(picture: Image.Image, top: float) -> Image.Image:
    """RGB of pixels whose grey, where there are more than 256, reaches from 0 to `top`."""
    if picture.mode in _GREY_16:
        grey = np.asarray(picture, np.float64)
        return Image.fromarray((grey.clip(0, top) / top * 255).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        whole = picture.convert("RGBA")
        white = Image.new("RGBA", whole.size, "white")
        return Image.alpha_composite(white, whole).convert("RGB")
    return picture.convert("RGB")


def _unreadable(file: BinaryIO) -> str:
    file.seek(0)
    start = file.read(512).lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<svg")):
        return "The file is a web page or a drawing, not an image of " + ", ".join(FORMATS) + "."
    return "The file is not an image of " + ", ".join(FORMATS) + "."

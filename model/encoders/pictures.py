"""Bytes of an image file -> an upright RGB picture of a given size, within limits.

Only formats of `FORMATS` are opened, by their content and not by their name. The size is read from the header and
judged before a pixel is decoded, since a small file may unpack to any size. Rotation by EXIF is applied, transparency
is laid on white, 16-bit greys are scaled, of an animation the first frame counts.
"""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from model.errors import ContentError

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")
MAX_PIXELS = 100_000_000  # 300 MB as RGB; cameras stay below
_TOO_MANY = f"The image has more than {MAX_PIXELS // 1_000_000} million pixels."
# What Pillow's decoders raise for damaged files, each its own.
_DAMAGED = (OSError, ValueError, SyntaxError, TypeError, ArithmeticError, LookupError, EOFError)
_GREY_16 = frozenset({"I", "I;16", "I;16B", "I;16L", "F"})


def read_picture(data: bytes, size: int) -> NDArray[np.uint8]:
    """RGB pixels (size, size, 3) of the whole picture, squeezed to a square: annotators judge its margins as well.

    Raises ContentError with a sentence for what is no readable image or has more than `MAX_PIXELS` pixels.
    """
    return np.asarray(upright(data, size).resize((size, size), Image.Resampling.BICUBIC), np.uint8)


def upright(data: bytes, size: int) -> Image.Image:
    """The whole picture as people see it, RGB, in its own shape; of a JPEG perhaps smaller, though not below `size`.

    Raises ContentError with a sentence for what is no readable image or has more than `MAX_PIXELS` pixels.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise ContentError(_TOO_MANY)
            opened.draft("RGB", (2 * size, 2 * size))  # JPEG decodes a smaller picture several times faster
            return _rgb(ImageOps.exif_transpose(opened))
    except ContentError:
        raise
    except Image.DecompressionBombError as error:  # Pillow's own limit is higher and not to be switched off
        raise ContentError(_TOO_MANY) from error
    except UnidentifiedImageError as error:
        raise ContentError(_unreadable(data)) from error
    except _DAMAGED as error:
        raise ContentError("The image is damaged.") from error


def _rgb(picture: Image.Image) -> Image.Image:
    if picture.mode in _GREY_16:
        grey = np.asarray(picture, np.float64)
        top = 65535.0 if grey.max(initial=0.0) > 255 else 255.0
        return Image.fromarray((grey.clip(0, top) / top * 255).astype(np.uint8)).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        whole = picture.convert("RGBA")
        white = Image.new("RGBA", whole.size, "white")
        return Image.alpha_composite(white, whole).convert("RGB")
    return picture.convert("RGB")


def _unreadable(data: bytes) -> str:
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<svg")):
        return "The file is a web page or a drawing, not an image of " + ", ".join(FORMATS) + "."
    return "The file is not an image of " + ", ".join(FORMATS) + "."

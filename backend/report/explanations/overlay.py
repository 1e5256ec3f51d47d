"""Weights over the cells of a picture as a PNG: the picture, pale, under its heat; several side by side with captions.

Red speaks for the answer, blue against it; the strength of the colour is the share of the largest weight. Cells are
those of the encoder, which sees the whole picture squeezed to a square, so they lie over the whole picture here, too.
A picture that cannot be read is a grey one of the same heat.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from model.encoders.pictures import upright
from model.errors import ContentError

SIDE = 320  # pixels of the longer side
_FOR, _AGAINST = (214, 40, 40), (38, 84, 200)
_STRENGTH, _PALE = 0.72, 0.45  # of the heat at its most; how much of the picture's colour is taken away
_MARGIN, _CAPTION = 12, 30
_GREY = (226, 226, 224)
Cells = NDArray[np.float64]  # (S, S)


def overlay(data: bytes | None, cells: Cells, *, most: float, side: int = SIDE) -> Image.Image:
    """The picture of `data` with the heat of `cells`; grey without a picture that can be read."""
    base = _base(data, side)
    grey = base.convert("L").convert("RGB")
    pale = np.asarray(Image.blend(base, grey, _PALE), np.float64)
    share = np.clip(cells / most, -1.0, 1.0) if most > 0 else np.zeros_like(cells)
    heat = np.asarray(
        Image.fromarray(share.astype(np.float32)).resize(base.size, Image.Resampling.BICUBIC), np.float64
    ).clip(-1.0, 1.0)
    colour = np.where(heat[..., None] > 0, np.array(_FOR), np.array(_AGAINST))
    alpha = _STRENGTH * np.abs(heat)[..., None]
    return Image.fromarray((pale * (1 - alpha) + colour * alpha).round().astype(np.uint8))


def side_by_side(panels: Sequence[tuple[str, Image.Image]]) -> Image.Image:
    """Pictures of one size in a row, each under its caption. Captions are for plain names: HTML shows all scripts."""
    width, height = panels[0][1].size
    step = width + _MARGIN
    whole = Image.new("RGB", (_MARGIN + step * len(panels), height + _CAPTION + 2 * _MARGIN), "white")
    draw, font = ImageDraw.Draw(whole), ImageFont.load_default(15)
    for place, (caption, picture) in enumerate(panels):
        left = _MARGIN + place * step
        draw.text((left, _MARGIN), caption, fill=(27, 31, 36), font=font)
        whole.paste(picture, (left, _MARGIN + _CAPTION))
    return whole


def png(picture: Image.Image) -> bytes:
    """The file."""
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return out.getvalue()


def _base(data: bytes | None, side: int) -> Image.Image:
    try:
        picture = upright(data, side) if data else None
    except ContentError:
        picture = None
    if picture is None:
        return Image.new("RGB", (side, side), _GREY)
    scale = side / max(picture.size)
    width, height = (max(1, round(each * scale)) for each in picture.size)
    return picture.resize((width, height), Image.Resampling.LANCZOS)

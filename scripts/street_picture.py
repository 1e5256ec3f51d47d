"""A street, drawn by Pillow in one-point perspective, with the haze, shade and grain of a photo.

What stands on the street has a place across it and a depth, 0 at the foot of the picture and 1 at the vanishing point.
"""

from __future__ import annotations

import io
import random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 640, 480
VANISHING = (330, 215)


def street() -> bytes:
    """A street between houses: pavements, trees on the left, a bus and a car, people, a crossing. JPEG."""
    rng = random.Random(11)
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    pen = ImageDraw.Draw(picture)
    for y in range(HEIGHT):
        t = min(1.0, y / 240)
        pen.line([(0, y), (WIDTH, y)], fill=(int(120 + 95 * t), int(165 + 60 * t), int(210 + 25 * t)))
    for x, y, r in ((90, 50, 34), (130, 62, 26), (480, 40, 30), (520, 52, 22)):
        pen.ellipse((x - 2 * r, y - r // 2, x + 2 * r, y + r // 2), fill=(232, 236, 240))
    pen.polygon([_at(-260, 1), _at(260, 1), _at(260, 0), _at(-260, 0)], fill=(104, 104, 108))
    _ground(pen)
    for side, depths in ((-1, (0.0, 0.3, 0.52, 0.68, 0.8, 0.88, 0.94)), (1, (0.0, 0.36, 0.6, 0.78, 0.87, 0.94))):
        for far, near in reversed(list(zip(depths[1:], depths, strict=False))):
            _house(pen, rng, side, near, far)
    for depth in (0.72, 0.58, 0.4, 0.16):
        _tree(pen, rng, depth)
    _vehicle(pen, 95, 0.56, (190, 60, 40), tall=True)
    _vehicle(pen, -80, 0.42, (40, 70, 130), tall=False)
    for across, depth, coat in ((-330, 0.45, (150, 40, 60)), (-300, 0.2, (40, 60, 50)), (270, 0.5, (90, 80, 130)),
                                (310, 0.52, (170, 140, 60)), (60, 0.2, (60, 60, 70))):
        _person(pen, across, depth, coat)
    hazy = picture.filter(ImageFilter.GaussianBlur(1.1))
    grain = np.random.default_rng(3).normal(0, 5, (HEIGHT, WIDTH, 1))
    wide, high = np.linspace(-1, 1, WIDTH)[None, :, None], np.linspace(-1, 1, HEIGHT)[:, None, None]
    shade = 1.0 - 0.125 * (wide**2 + high**2)
    out = io.BytesIO()
    Image.fromarray((np.asarray(hazy) * shade + grain).clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=90)
    return out.getvalue()


def _at(across: float, near: float, up: float = 0.0) -> tuple[float, float]:
    """A point of the street on the picture: `near` 1 is at the foot of the picture, 0 at the vanishing point."""
    x, y = VANISHING
    return x + across * near * 1.5, y + (HEIGHT + 60 - y) * near - up * near


def _near(depth: float) -> float:
    return 1.0 - depth


def _quad(pen: ImageDraw.ImageDraw, across: tuple[float, float], depth: tuple[float, float],
          fill: tuple[int, int, int]) -> None:
    near, far = _near(depth[0]), _near(depth[1])
    pen.polygon([_at(across[0], near), _at(across[1], near), _at(across[1], far), _at(across[0], far)], fill=fill)


def _ground(pen: ImageDraw.ImageDraw) -> None:
    for side in (-1, 1):
        _quad(pen, (side * 230, side * 420), (0, 0.97), (168, 162, 152))
        _quad(pen, (side * 222, side * 232), (0, 0.97), (205, 202, 194))
    for step in range(12):
        _quad(pen, (-5, 5), (0.3 + step * 0.055, 0.325 + step * 0.055), (224, 222, 205))
    for stripe in range(-5, 6):
        _quad(pen, (stripe * 40 - 11, stripe * 40 + 11), (0.14, 0.24), (226, 226, 222))


def _house(pen: ImageDraw.ImageDraw, rng: random.Random, side: int, near: float, far: float) -> None:
    a, b, wall = _near(near), _near(far), side * 420
    height = rng.choice((520, 640, 760, 880))
    tone = rng.choice(((156, 92, 74), (188, 168, 140), (140, 132, 126), (172, 120, 92), (120, 128, 140)))
    pen.polygon([_at(wall, a), _at(wall, b), _at(wall, b, height), _at(wall, a, height)], fill=tone)
    floors, bays = height // 110, 4
    for floor in range(floors):
        for bay in range(bays):
            p, q = (a + (b - a) * (bay + share) / bays for share in (0.25, 0.75))
            low, high = floor * 110 + 25, floor * 110 + (85 if floor else 95)
            light = (70, 84, 100) if floor else rng.choice(((90, 70, 50), (210, 190, 130), (60, 80, 84)))
            pen.polygon([_at(wall, p, low), _at(wall, q, low), _at(wall, q, high), _at(wall, p, high)], fill=light)


def _tree(pen: ImageDraw.ImageDraw, rng: random.Random, depth: float) -> None:
    near = _near(depth)
    x, y = _at(-262, near)
    pen.rectangle((x - 7 * near, y - 200 * near, x + 7 * near, y), fill=(84, 64, 48))
    for _ in range(90):
        cx, cy = x + rng.gauss(0, 52) * near, y - (275 + rng.gauss(0, 48)) * near
        r, green = 26 * near, rng.randint(82, 138)
        pen.ellipse((cx - r, cy - r, cx + r, cy + r), fill=(green - 44, green, 44))


def _vehicle(pen: ImageDraw.ImageDraw, across: float, depth: float, paint: tuple[int, int, int], *, tall: bool) -> None:
    near = _near(depth)
    x, y = _at(across, near)
    w, h = (92 * near, (190 if tall else 105) * near)
    pen.ellipse((x - w * 1.1, y - 8 * near, x + w * 1.1, y + 12 * near), fill=(70, 70, 74))
    pen.rounded_rectangle((x - w, y - h, x + w, y), radius=int(16 * near), fill=paint)
    pen.rectangle((x - 0.82 * w, y - 0.9 * h, x + 0.82 * w, y - 0.5 * h), fill=(52, 62, 74))
    for lamp in (x - 0.75 * w, x + 0.75 * w):
        pen.ellipse((lamp - 9 * near, y - 40 * near, lamp + 9 * near, y - 22 * near), fill=(240, 230, 180))


def _person(pen: ImageDraw.ImageDraw, across: float, depth: float, coat: tuple[int, int, int]) -> None:
    near = _near(depth)
    x, y = _at(across, near)
    for leg in (-9, 5):
        pen.rectangle((x + leg * near, y - 62 * near, x + (leg + 8) * near, y), fill=(40, 42, 52))
    body = (x - 17 * near, y - 128 * near, x + 17 * near, y - 55 * near)
    pen.rounded_rectangle(body, radius=int(9 * near), fill=coat)
    pen.ellipse((x - 11 * near, y - 153 * near, x + 11 * near, y - 128 * near), fill=(196, 158, 132))

"""Heat over pictures and bars over time: in the right place, also without a picture or a time."""

import io

import numpy as np
import pytest
from PIL import Image

from backend.report.explanations.moments import bars
from backend.report.explanations.overlay import overlay, png, side_by_side
from model.explain.places import Place


def picture(width=64, height=48, colour="white", kind="PNG"):
    out = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(out, kind)
    return out.getvalue()


def test_heat_lies_where_the_weight_is():
    cells = np.zeros((4, 4))
    cells[0, 3], cells[3, 0] = 1.0, -1.0
    made = np.asarray(overlay(picture(80, 40), cells, most=1.0, side=80)).astype(int)
    assert made.shape == (40, 80, 3)
    red, blue = made[..., 0] - made[..., 2], made[..., 2] - made[..., 0]
    row, column = np.unravel_index(red.argmax(), red.shape)
    assert row < 10 and column >= 60
    row, column = np.unravel_index(blue.argmax(), blue.shape)
    assert row >= 30 and column < 20


@pytest.mark.parametrize("data", [None, b"", b"no picture", picture()[:40], b"<svg onload=alert(1)>"])
def test_a_damaged_picture_is_grey(data):
    made = overlay(data, np.ones((2, 2)), most=1.0, side=50)
    assert made.size == (50, 50) and Image.open(io.BytesIO(png(made))).format == "PNG"


@pytest.mark.parametrize("most", [0.0, 1.0])
def test_no_weight_is_no_colour(most):
    made = np.asarray(overlay(picture(), np.zeros((3, 3)), most=most))
    assert (made == 255).all()


def test_thin_pictures_have_a_pixel():
    assert overlay(picture(1, 900), np.ones((2, 2)), most=1.0).size == (1, 320)


def test_side_by_side():
    panels = [(name, overlay(picture(), np.ones((2, 2)), most=1.0)) for name in ("one", "two <b>", "سه")]
    assert side_by_side(panels).size[0] > 3 * 320


@pytest.mark.parametrize("weights, base", [([0.1, 0.4, 0.0], 84), ([0.1, -0.4, 0.0], 42)])
def test_moments_are_bars_that_say_when(weights, base):
    places = [Place(kind="audio", seconds=0.3 + at * 0.6) for at in range(3)]
    made = bars(places, weights, most=0.4, title="Sound <1>")
    assert made.count("<rect") == 3 and "strongest at 0.9 s" in made and f'y1="{base}"' in made
    assert "0.3 s" in made and "1.5 s" in made and "Sound &lt;1&gt;" in made and "style=" not in made


def test_moments_without_a_time():
    made = bars([Place(kind="audio")] * 2, [0.0, 0.2], most=0.2, title="Sound")
    assert "moment 2" in made and "begins" in made

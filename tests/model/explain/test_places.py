"""Tokens back to what people see: words, cells, moments, frames; nothing is cut in the middle of a letter."""

import numpy as np
import pytest

from model.encoders.layout import Layout, Piece, read_layout
from model.encoders.text import TextEncoder
from model.explain.places import MOST, layout_places, text_places

LAYOUT = Layout(dims=(("text", 3), ("image", 2), ("audio", 4)))
DIMS = {"text": 3, "image": 2, "video": 2, "audio": 4}


@pytest.fixture(scope="module")
def encoder():
    return TextEncoder.load()


def words(text, encoder):
    found = text_places(text, encoder.spans(text))
    assert len(found.of_token) == len(encoder.encode([text])[0])
    return [text[place.start : place.end] for place in found.places]


@pytest.mark.parametrize("text, expected", [
    ("You are UNBELIEVABLY kind!", ["You", "are", "UNBELIEVABLY", "kind", "!"]),
    ("سلام دنیا، خوبی", ["سلام", "دنیا", "،", "خوبی"]),
    ("thanks 👩‍👩‍👧 you 👍🏽", ["thanks", "👩‍👩‍👧", "you", "👍🏽"]),
    ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
    ("<b>&amp;</b>", ["<", "b", ">", "&", "amp", ";", "<", "/", "b", ">"]),
])
def test_words_of_a_text(text, expected, encoder):
    assert words(text, encoder) == expected


def test_the_middle_of_a_long_text_is_in_no_place_and_places_are_few(encoder):
    text = " ".join(f"word{number}" for number in range(400))
    found = text_places(text, encoder.spans(text))
    assert len(found) <= MOST + 1 and len(found.of_token) == 256
    gaps = [after.start - before.end for before, after in zip(found.places[:-1], found.places[1:], strict=True)]
    assert found.places[0].start == 0 and found.places[-1].end == len(text)
    assert sum(gap > 500 for gap in gaps) == 1  # head, then tail


def test_a_text_of_nothing_has_no_places(encoder):
    assert len(text_places("", encoder.spans(""))) == 0


def piece(kind, count, **more):
    return Piece(modality=kind, tokens=np.ones((count, DIMS[kind]), np.float16), **more)


def test_pieces_of_a_task_are_found_in_its_tokens():
    times = np.arange(6, dtype=np.float32) * 0.6 + 0.3
    frames = np.repeat(np.array([0.0, 12.5, 25.0], np.float32), 4)
    tokens = LAYOUT.assemble([
        piece("text", 3), piece("image", 9, grid=True), piece("image", 9, grid=True, order=1),
        piece("video", 12, seconds=frames), piece("audio", 6, seconds=times),
    ])
    found = layout_places(tokens, "a b", np.array([[0, 0], [0, 1], [2, 3]]))
    kinds = [(place.kind, place.piece) for place in found.places]
    counts = {("text", 0): 2, ("image", 0): 9, ("image", 1): 9, ("video", 0): 3, ("audio", 0): 6}
    assert kinds == [kind for kind, count in counts.items() for _ in range(count)]
    assert [place.seconds for place in found.places[-9:-6]] == pytest.approx([0, 12.5, 25.0], abs=0.05)
    assert [place.seconds for place in found.places[-6:]] == pytest.approx(times.tolist(), abs=0.05)
    corner = found.places[2 + 5]
    assert (corner.row, corner.column, corner.side) == (1, 2, 3)
    assert found.of_token.tolist()[:4] == [-1, 0, 1, 2]


@pytest.mark.parametrize("seconds", [[0.5, 100.0, 30.0], [0.3, 0.9, 100.0, 100.6], None])
def test_a_time_that_cannot_be_known_is_none(seconds):
    """Windows of a long recording, or tokens without a time."""
    times = None if seconds is None else np.array(seconds, np.float32)
    tokens = LAYOUT.assemble([piece("audio", 4 if times is None else len(times), seconds=times)])
    assert {place.seconds for place in layout_places(tokens, "", None).places} == {None}


@pytest.mark.parametrize("count, places", [(49, 49), (50, 49), (197, 49), (256, 64), (1, 0), (7, 0)])
def test_cells_of_a_picture(count, places):
    found = layout_places(LAYOUT.assemble([piece("image", count, grid=True)]), "", None)
    assert len(found) == places
    counts = np.bincount(found.of_token[found.of_token >= 0], minlength=places)
    assert (counts > 0).all()


def test_twelve_images_are_twelve_grids():
    tokens = LAYOUT.assemble([piece("image", 4, grid=True, order=order) for order in range(12)])
    assert [(kind, which, len(rows)) for kind, which, rows in read_layout(tokens).pieces()] == [
        ("image", which, 4) for which in range(12)]


def test_long_sounds_have_few_moments():
    seconds = np.arange(500, dtype=np.float32) * 0.6 + 0.3
    found = layout_places(LAYOUT.assemble([piece("audio", 500, seconds=seconds)]), "", None)
    assert len(found) <= MOST
    assert found.places[-1].seconds == pytest.approx(297.9, abs=2.0)


def test_a_token_that_says_nothing_is_no_place():
    assert len(layout_places(LAYOUT.assemble([]), "", None)) == 0


def test_weights_and_masks_by_place():
    found = text_places("a b", np.array([[0, 0], [0, 1], [2, 3], [0, 0]]))
    assert found.sums(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist() == [[2.0, 3.0]]
    assert found.stay(np.array([[True, False]])).tolist() == [[True, True, False, True]]

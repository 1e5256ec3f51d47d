from __future__ import annotations

import numpy as np

from model.encoders.layout import MODALITIES, Layout, Piece

LAYOUT = Layout(dims=(("text", 3), ("image", 2), ("audio", 4)))


def piece(modality: str, count: int, dim: int, **more: object) -> Piece:
    return Piece(modality=modality, tokens=np.ones((count, dim), np.float16), **more)  # type: ignore[arg-type]


def marker(row: np.ndarray) -> str:
    return MODALITIES[int(row[9 : 9 + len(MODALITIES)].argmax())]


def test_every_modality_has_columns_and_a_mark_of_its_own() -> None:
    matrix = LAYOUT.assemble([piece("text", 2, 3), piece("image", 4, 2), piece("audio", 1, 4), piece("video", 1, 2)])
    assert matrix.shape == (8, LAYOUT.width) and matrix.dtype == np.float16
    content = matrix[:, :9] != 0
    assert content[0].tolist() == [True] * 3 + [False] * 6
    assert content[2].tolist() == [False] * 3 + [True] * 2 + [False] * 4
    assert content[6].tolist() == [False] * 5 + [True] * 4
    assert content[7].tolist() == content[2].tolist()
    assert [marker(row) for row in matrix] == ["text"] * 2 + ["image"] * 4 + ["audio", "video"]


def test_places_in_a_grid_and_in_time_tell_tokens_apart() -> None:
    grid = LAYOUT.assemble([piece("image", 9, 2, grid=True)])
    assert len({row.tobytes() for row in grid}) == 9
    timed = LAYOUT.assemble([piece("audio", 5, 4, seconds=np.array([0.1, 0.7, 1.3, 40.0, 90.0], np.float32))])
    assert len({row.tobytes() for row in timed}) == 5


def test_several_images_of_a_task_are_told_apart() -> None:
    first, second = LAYOUT.assemble([piece("image", 1, 2), piece("image", 1, 2, order=1)])
    assert first.tobytes() != second.tobytes()


def test_nothing_at_all_is_one_token_that_says_nothing() -> None:
    assert not LAYOUT.assemble([]).any() and LAYOUT.assemble([]).shape == (1, LAYOUT.width)

"""Cells come back as they were, appear whole, and are never taken for those of another problem."""

from __future__ import annotations

import numpy as np
import pytest

from model.errors import ModelError
from model.evaluate.cells import Cell, CellKey, CellStore

KEY = CellKey("served@no-self-attention", "half-visible", 2, 4)


def cell(key=KEY):
    return Cell(
        key=key, rows=np.arange(3, dtype=np.int32), shown=np.array([True, False, False]),
        p=np.full((3, 2), 0.5, np.float32), units=np.arange(2, dtype=np.int32), consensus=np.empty((0, 2), np.float32),
        notes={"seconds": 1.5, "weights": {"prior": 0.1}},
    )


def test_round_trip(tmp_path):
    store = CellStore(tmp_path, fingerprint="x", folds=5)
    assert not store.has(KEY)
    store.save(cell())
    assert store.has(KEY)
    (found,) = store.load()
    assert found.key == KEY and found.notes == cell().notes
    for name in ("rows", "shown", "p", "units", "consensus"):
        assert np.array_equal(getattr(found, name), getattr(cell(), name))
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".npz"]  # nothing is left aside


@pytest.mark.parametrize("other", [{"fingerprint": "y", "folds": 5}, {"fingerprint": "x", "folds": 4}])
def test_cells_of_another_problem_are_refused(tmp_path, other):
    CellStore(tmp_path, fingerprint="x", folds=5)
    with pytest.raises(ModelError, match="other votes or folds"):
        CellStore(tmp_path, **other)


def test_a_damaged_cell_is_named(tmp_path):
    store = CellStore(tmp_path, fingerprint="x", folds=5)
    store.save(cell())
    (tmp_path / KEY.file_name).write_bytes(b"PK broken")
    with pytest.raises(ModelError, match=r"served@no-self-attention~half-visible~s2~f4\.npz is damaged"):
        list(store.load())


def test_a_write_that_fails_leaves_nothing(tmp_path):
    store = CellStore(tmp_path, fingerprint="x", folds=5)
    with pytest.raises(TypeError):
        store.save(Cell(**{name: getattr(cell(), name) for name in ("key", "rows", "shown", "p", "units", "consensus")},
                        notes={"seconds": object()}))
    assert not list(tmp_path.glob("*npz*"))

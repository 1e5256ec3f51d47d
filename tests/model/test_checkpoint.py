import json

import numpy as np
import pytest

from model import checkpoint
from model.errors import CheckpointError

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False])}


@pytest.fixture
def folder(tmp_path):
    checkpoint.save(tmp_path / "r1", ARRAYS, {"note": "ü"})
    return tmp_path / "r1"


def test_round_trip(folder):
    arrays, meta = checkpoint.load(folder)
    assert meta == {"note": "ü"}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["r1"]  # nothing is left aside


def test_an_existing_checkpoint_is_never_overwritten(folder):
    before = (folder / checkpoint.ARRAYS).read_bytes()
    with pytest.raises(CheckpointError):
        checkpoint.save(folder, {"a": np.zeros(1)}, {})
    assert (folder / checkpoint.ARRAYS).read_bytes() == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["r1"]


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "r2").mkdir()
    checkpoint.save(tmp_path / "r2", ARRAYS, {})
    assert checkpoint.load(tmp_path / "r2")[0].keys() == ARRAYS.keys()


def _flip(path):
    blob = bytearray(path.read_bytes())
    blob[-1] ^= 1
    path.write_bytes(bytes(blob))


def _format(path):
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 99}))


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (checkpoint.ARRAYS, _flip),
        (checkpoint.ARRAYS, lambda path: path.write_bytes(path.read_bytes()[:-3])),
        (checkpoint.ARRAYS, lambda path: path.unlink()),
        (checkpoint.MANIFEST, lambda path: path.unlink()),
        (checkpoint.MANIFEST, lambda path: path.write_bytes(b"{")),
        (checkpoint.MANIFEST, lambda path: path.write_bytes(b"[]")),
        (checkpoint.MANIFEST, lambda path: path.write_bytes(b"\xff")),
        (checkpoint.MANIFEST, _format),
    ],
)
def test_damage_is_detected(folder, file, damage):
    damage(folder / file)
    with pytest.raises(CheckpointError):
        checkpoint.load(folder)


def test_a_missing_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="r9"):
        checkpoint.load(tmp_path / "r9")

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
        (checkpoint.MANIFEST, lambda path: path.write_bytes(b'{"a":' * 5000 + b"1" + b"}" * 5000)),
        (checkpoint.MANIFEST, _format),
    ],
)
def test_damage_is_detected(folder, file, damage):
    damage(folder / file)
    with pytest.raises(CheckpointError):
        checkpoint.load(folder)


def test_no_flipped_bit_of_a_manifest_changes_what_is_read(tmp_path):
    meta = {"classes": ["polite", "rude", "ü"], "weights": {"prior": 0.25, "pooled": 0.75}, "width": 64}
    checkpoint.save(tmp_path / "r1", ARRAYS, meta)
    path = tmp_path / "r1" / checkpoint.MANIFEST
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            try:
                found = checkpoint.load(tmp_path / "r1")[1]
            except CheckpointError:
                continue
            assert found == meta, (at, bit)  # white space may be another


def test_numbers_as_keys_come_back_as_text(tmp_path):
    checkpoint.save(tmp_path / "r1", ARRAYS, {"weights": {2: 0.5, 10: float("inf")}})
    assert checkpoint.load(tmp_path / "r1")[1] == {"weights": {"2": 0.5, "10": float("inf")}}


def test_a_manifest_of_before_they_had_a_sum_of_themselves_is_read(folder):
    path = folder / checkpoint.MANIFEST
    old = json.loads(path.read_text())
    del old[checkpoint.SUM]
    path.write_text(json.dumps(old))
    assert checkpoint.load(folder)[1] == {"note": "ü"}


def test_a_missing_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="r9"):
        checkpoint.load(tmp_path / "r9")

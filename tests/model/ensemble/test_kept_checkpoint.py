"""Checkpoints of installations that are running open, and answer as they did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from model import checkpoint
from model.ensemble.ladder import Ladder
from tests.model.ensemble.kept_checkpoint import answers, simulated, spaces

KEPT = Path(__file__).parents[2] / "fixtures" / "checkpoint"
# One forward in single precision, by other kernels on other processors: measured 3e-8 between those for AVX512,
# for AVX2 and the plainest ones.
WITHIN = 1e-5


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    return Ladder.load(KEPT / "r1")


def test_it_answers_as_it_did(ladder: Ladder) -> None:
    told = json.loads((KEPT / "answers.json").read_text())
    found = answers(ladder, simulated())
    assert found.keys() == told.keys() == {f"{name}, {way}" for name in spaces() for way in ("content", "votes")}
    for name, parts in told.items():
        assert found[name].keys() == parts.keys(), name
        for part, numbers in parts.items():
            np.testing.assert_allclose(found[name][part], numbers, rtol=0.0, atol=WITHIN, err_msg=f"{name}, {part}")


def test_it_is_written_as_it_was(ladder: Ladder, tmp_path: Path) -> None:
    """Every part under its name and to the last bit, so that an earlier release reads it too."""
    ladder.save(tmp_path / "again")
    (old, said), (new, says) = (checkpoint.load(folder) for folder in (KEPT / "r1", tmp_path / "again"))
    assert new.keys() == old.keys() and says == said
    assert [name for name in old if new[name].dtype != old[name].dtype or (new[name] != old[name]).any()] == []

"""Who counts as served worse in `benchmarks.floor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.floor import ELSEWHERE, FLOOR, SETTINGS, WAYS, markdown, summary


def _parts(loss: dict[str, float], *, votes: int = 30) -> list[dict[str, Any]]:
    """One project of one annotator in three folds, with constant losses and a little noise."""
    rng = np.random.default_rng(1)
    made = []
    for fold in range(3):
        noise = 0.01 * rng.random(votes)
        part = {"annotator": ["ann"] * votes, "task": (np.arange(votes) + fold * votes).tolist(),
                "loss": {way: (loss[way] + (at + 1) * noise).tolist() for at, way in enumerate(WAYS)},
                "right": {way: [1] * votes for way in WAYS}}
        made.append({"project": "one", "fold": fold, "settings": dict.fromkeys(SETTINGS, part)})
    return made


def test_worse_is_measured_against_the_better_of_the_two():
    losses = {"before": 0.9, "after": 0.6, FLOOR[0]: 0.7, FLOOR[1]: 0.8}
    found = summary(_parts(losses))["unseen"]["public sets"]
    assert [found[f"served worse {way}"][0] for way in (*WAYS, ELSEWHERE)] == [1.0, 0.0, 0.0, 1.0, 0.0]


def test_picked_elsewhere_follows_the_other_folds():
    parts = _parts({"before": 0.9, "after": 0.6, FLOOR[0]: 0.5, FLOOR[1]: 0.8})
    assert summary(parts)["unseen"]["one"][f"served worse {ELSEWHERE}"][0] == 1.0
    assert "picked elsewhere" in markdown(summary(parts))

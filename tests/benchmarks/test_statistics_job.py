"""The benchmark of the statistics job computes what the job does, consensus included."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from benchmarks.statistics_job import measure


def test_a_small_project_is_measured(tmp_path: Path) -> None:
    found = measure(tmp_path, SimpleNamespace(tasks=30, annotators=5, votes=90), (0.6, 0.95))
    assert found["compute_s"] > 0.0 and found["after_20_votes_s"] > found["unchanged_s"] >= 0.0

"""The cost of a newcomer is measured on what adapting really asks of a version."""

from __future__ import annotations

import re

import pytest

from benchmarks import newcomers_cost


def test_it_measures_learning_and_answering(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newcomers_cost, "REPEATS", 1)
    newcomers_cost.main(["--votes", "6", "--annotators", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(re.search(r": [0-9.]+ after a new vote, [0-9.]+ for each task answered$", line) for line in lines)

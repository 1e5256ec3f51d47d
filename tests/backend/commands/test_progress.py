"""How far a command is, where nobody looks at a terminal."""

from __future__ import annotations

import pytest

from backend.commands.progress import SAY_EVERY_S, now_and_then, progress_bar


def test_a_line_now_and_then() -> None:
    now, told = [100.0], []
    update = now_and_then("evaluating", told.append, clock=lambda: now[0])
    for _ in range(5):
        now[0] += SAY_EVERY_S / 2
        update((now[0] - 100) / 100, f"fold {now[0]:.0f}")
    assert told == ["evaluating fold 130: 30% after 30 s", "evaluating fold 160: 60% after 60 s"]


def test_what_is_quick_says_nothing_outside_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar() as progress:
        progress(0.5, "half")
    assert capsys.readouterr() == ("", "")

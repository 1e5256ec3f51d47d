"""The table of findings in docs/reliability.md is current, and names tests that there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.neighbours import table


def test_the_table_is_current_and_names_tests_that_there_are() -> None:
    findings = table.read()
    assert table.mistakes(findings) == []
    document = (table.ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert document == table.renewed(document, findings), (
        "run `python -m tests.neighbours --write docs/reliability.md`"
    )


@pytest.mark.parametrize("change", [
    {"tests": ("tests/project/test_neighbours.py::test_that_is_nowhere",)},
    {"tests": ()},
    {"status": '"A sentence that' + ' nothing looks for."'},
])
def test_mistakes_in_the_table_are_found(change: dict[str, object]) -> None:
    mistaken = replace(table.read()[0], **change)  # type: ignore[arg-type]
    assert len(table.mistakes([mistaken])) == 1

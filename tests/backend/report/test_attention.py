"""Who deserves a look: nobody for a handful of tasks, and nobody for being one of many."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backend.report.attention import LOW, NOTHING, UNKNOWN, by_concern
from backend.report.columns import Judged, judged
from backend.report.words import percent
from backend.services.statistics.documents import Figure
from tests.backend.web.site_documents import Writer


def crowd(agreement: list[float], tasks: list[int]) -> list[Judged]:
    """Annotators who agree with the rest in these shares of so many common tasks, and have no fault and no habit."""
    writer = Writer(annotators=len(agreement))
    rows = judged(writer.annotators(), writer.control)
    return [
        replace(row, figures=replace(
            row.figures, accuracy=Figure(value=share), common_tasks=common, fault="", habits=(), drift_p=None))
        for row, share, common in zip(rows, agreement, tasks, strict=True) if row.figures is not None
    ]


def levels(rows: list[Judged]) -> dict[str, int]:
    return {each.item.row.annotator: each.level for each in by_concern(rows)}


def test_a_handful_of_tasks_say_nothing() -> None:
    rows = crowd([0.3, 0.87, 0.88, 0.9], [6, 100, 100, 100])
    found = by_concern(rows)
    (first,) = [each for each in found if each.level != NOTHING]
    assert first.level == UNKNOWN and first.words == "6 of 20 common tasks yet"
    few_others = [replace(rows[1], figures=replace(rows[1].figures, common_people=1)), *rows[2:]]
    assert "too few others on their tasks yet" in {each.words for each in by_concern(few_others)}


@pytest.mark.parametrize(("people", "level"), [(4, LOW), (400, NOTHING)])
def test_of_many_annotators_the_lowest_is_no_news(people: int, level: int) -> None:
    rows = crowd([0.72, *[0.87] * (people - 1)], [60] * people)
    assert next(iter(levels(rows).values())) == level


def test_much_lower_than_most_on_many_tasks_deserves_a_look() -> None:
    rows = crowd([0.5, *[0.87] * 60], [90] * 61)
    first = by_concern(rows)[0]
    assert first.level == LOW and first.words == f"agrees less than most, whose median is {percent(0.87)}"

"""The lists of tasks on one page: hardest, most divided, all, and those on which two annotators differ; and filters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from backend.errors import ClientError
from backend.records import Difference
from backend.report.asked import Asked, Shown, choice
from backend.report.names import Names
from backend.report.table import Column
from backend.report.task_columns import DIVIDED, TASKS, labelled
from backend.report.texts import Texts
from backend.services.statistics.documents import ConsensusColumns, TaskLists, TaskRow

LISTS = ("hardest", "divided", "all", "differ")
ON_PAGE = ("task", "votes", "label", "confidence", "ambiguity", "cause")
PLAIN = ("task", "votes", "label", "confidence")  # what is known of every task
R = TypeVar("R")
Differing = Callable[[tuple[str, str], int, int], tuple[int, list[Difference]]]  # pair, offset, limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two annotators, and the tasks on which they differ."""

    one: str
    other: str
    rows: Sequence[Difference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One list as it is shown; `pair` where it is that of two annotators."""

    which: str
    shown: Shown[Any]
    columns: Sequence[Column[Any]]
    tasks: Sequence[int]  # whose texts are shown
    labels: Sequence[str]  # that can be asked for
    causes: Sequence[str]
    pair: Pair | None = None


def listed(
    lists: TaskLists | None, every: ConsensusColumns | None, differing: Differing | None, query: Mapping[str, str],
    asked: Asked, names: Names, texts: Texts,
) -> Listed:
    """What the query string asks for. Raises ClientError for what does not exist."""
    which = choice(query, "list", LISTS, _first(lists))
    if which == "differ":
        return _differ(differing, query, asked, names)
    if which == "all":
        return _filtered(which, _every(every), TASKS, PLAIN, lambda row: row, query, asked, names, texts)
    if which == "divided":
        return _filtered(which, lists.divided if lists else (), DIVIDED, ON_PAGE, lambda item: item.row, query, asked,
                         names, texts)
    return _filtered(which, lists.hardest if lists else (), TASKS, ON_PAGE, lambda row: row, query, asked, names, texts)


def _first(lists: TaskLists | None) -> str:
    """The list that is shown where none is asked for: the hardest, unless it is empty and there are divided ones."""
    return "divided" if lists and lists.divided and not lists.hardest else "hardest"


def matching(rows: Sequence[R], task: Callable[[R], int], words: str, texts: Texts) -> list[R]:
    """The rows of the task with this number, or of those whose shown text contains these words."""
    wanted = words.strip().casefold()
    if not wanted:
        return list(rows)
    if wanted.isascii() and wanted.isdigit() and (exact := [row for row in rows if task(row) == int(wanted)]):
        return exact
    shown = texts(list(dict.fromkeys(task(row) for row in rows)))
    return [row for row in rows if wanted in shown.get(task(row), "").casefold()]


def _filtered(
    which: str, rows: Sequence[R], columns: Sequence[Column[R]], chosen: Sequence[str],
    row_of: Callable[[R], TaskRow], query: Mapping[str, str], asked: Asked, names: Names, texts: Texts,
) -> Listed:
    labels = sorted({label for each in rows if (label := row_of(each).label)})
    causes = sorted({cause for each in rows if (cause := row_of(each).cause)})
    label, cause = choice(query, "label", labels), choice(query, "cause", causes)
    found = [each for each in rows if (not label or row_of(each).label == label)
             and (not cause or row_of(each).cause == cause)]
    found = matching(found, lambda each: row_of(each).task, query.get("q", ""), texts)
    shown = asked.of_rows(found, columns, names)
    by_name = {column.name: column for column in columns}
    return Listed(which=which, shown=shown, columns=[by_name[name] for name in chosen], labels=labels, causes=causes,
                  tasks=[row_of(each).task for each in shown.rows])


def _every(every: ConsensusColumns | None) -> list[TaskRow]:
    return [
        TaskRow(task=int(each.unit.partition("/")[0]), unit=each.unit, votes=each.votes, label=each.label,
                confidence=each.confidence, entropy=None, surprise=None, ambiguity=None, cause="",
                differing=())
        for each in (labelled(every) if every is not None else ())
    ]


def _differ(differing: Differing | None, query: Mapping[str, str], asked: Asked, names: Names) -> Listed:
    pair = tuple(names.find(query.get(side, "")) for side in ("one", "other"))
    if differing is None or pair[0] is None or pair[1] is None:
        raise ClientError("one and other take two annotators of this project.")
    total, rows = differing((pair[0], pair[1]), asked.offset, asked.limit)
    shown = Shown(rows=rows, total=total, offset=asked.offset, limit=asked.limit, sort="", descending=False)
    return Listed(which="differ", shown=shown, columns=(), tasks=[each.task for each in rows], labels=(), causes=(),
                  pair=Pair(one=pair[0], other=pair[1], rows=rows))

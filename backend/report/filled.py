"""The filled matrix as records and as text, piece by piece: long (a row a label) or wide (a row a task).

Every predicted label says that it is one, and by which version; nothing here can be taken for a vote.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from backend.report.names import Names
from backend.report.table import Cell, safe
from backend.services.gaps.fill import PREDICTED, FilledTask
from backend.services.statistics.documents import ALONE

LONG = ("task", "control", "annotator", "name", "label", "probability", "source", "version")
ABOUT = (
    "Rows whose source is \"predicted\" were not given by an annotator: Polyvox predicts what they would say, with the "
    "probability beside. Rows whose source is \"given\" are labels of annotators."
)
_CELLS = 100_000  # in one piece of text, so that it is small however many annotators there are


def long_records(
    tasks: Iterable[FilledTask], names: Names, *, control: str, version: str | None
) -> Iterator[dict[str, Cell]]:
    """One record for each label, given or predicted."""
    for task in tasks:
        for cell in task.cells:
            yield {
                "task": task.task, "control": control, "annotator": names.slug(cell.annotator),
                "name": names.name(cell.annotator), "label": cell.label, "probability": _rounded(cell.probability),
                "source": cell.source, "version": (version or ALONE) if cell.source == PREDICTED else None,
            }


def wide_columns(annotators: Sequence[str], names: Names) -> list[str]:
    """Names of the columns of `wide_records`."""
    heads = _heads(annotators, names)
    each = [f"{heads[who]} {part}" for who in annotators for part in ("label", "source", "probability")]
    return ["task", "consensus", "consensus probability", *each, "version"]


def wide_records(
    tasks: Iterable[FilledTask], annotators: Sequence[str], names: Names, *, version: str | None
) -> Iterator[dict[str, Cell]]:
    """One record for each task: the predicted consensus of the panel, and of each annotator label and source."""
    empty, heads = dict.fromkeys(wide_columns(annotators, names)), _heads(annotators, names)
    for task in tasks:
        row: dict[str, Cell] = {
            **empty, "task": task.task, "consensus": task.consensus, "version": version or ALONE,
            "consensus probability": _rounded(task.confidence),
        }
        for cell in task.cells:
            who = heads[cell.annotator]
            row |= {f"{who} label": cell.label, f"{who} source": cell.source,
                    f"{who} probability": _rounded(cell.probability)}
        yield row


def _heads(annotators: Sequence[str], names: Names) -> dict[str, str]:
    """What each annotator's columns are called: the name, and the id behind it where several are called so."""
    times = Counter(names.name(who) for who in annotators)
    return {who: name if times[name] == 1 and name != "consensus" else f"{name} ({names.slug(who)})"
            for who in annotators for name in (names.name(who),)}


def delimited(columns: Sequence[str], rows: Iterable[Mapping[str, Cell]], delimiter: str = ",") -> Iterator[str]:
    """CSV or TSV text, in pieces. Text that a spreadsheet would calculate gets an apostrophe in front."""
    rows, size = iter(rows), _size(columns)
    part: list[Sequence[Cell]] = [columns]
    while part:
        file = io.StringIO()
        csv.writer(file, lineterminator="\r\n", delimiter=delimiter).writerows([safe(x) for x in row] for row in part)
        yield file.getvalue()
        part = [[row[name] for name in columns] for row in islice(rows, size)]


def as_json(about: Mapping[str, Cell], columns: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """A JSON object with `about` and the rows, in pieces. Its last member, `complete`, is missing in what broke off."""
    yield json.dumps({**about, "about": ABOUT})[:-1] + ', "rows": ['
    rows, first, size = iter(rows), True, _size(columns)
    while part := list(islice(rows, size)):
        yield ("" if first else ",\n") + ",\n".join(json.dumps(row) for row in part)
        first = False
    yield '], "complete": true}\n'


def _size(columns: Sequence[str]) -> int:
    """Rows of one piece."""
    return max(1, _CELLS // len(columns))


def _rounded(probability: float | None) -> float | None:
    return None if probability is None else round(probability, 4)

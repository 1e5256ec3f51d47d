"""CSV, TSV and Parquet tables with one vote a row: columns task, annotator, label, and what else is known.

Header names are recognised whatever their case; see `ROLES`. A row with a task alone is a task without votes, an empty
label is a missing one. `kind` says what a label is where it is no class (then it is JSON); `gold` is the task's true
class.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from backend.formats import columns
from backend.formats.columns import Column
from backend.formats.dataset import DEFAULT_CONTROL, Dataset, ReadOptions
from backend.formats.errors import FormatError, at_line
from backend.formats.newest import in_order, question_of
from backend.formats.scalars import LARGEST_WEIGHT, as_seconds
from backend.formats.unread import Unread
from model.data.spaces import Value, ValueKind
from model.data.votes import Votes
from model.errors import ModelError

ROLES: dict[str, tuple[str, ...]] = {  # the first name that a file has is taken
    "task": ("task", "item", "unit", "task_id", "item_id", "unit_id", "question"),
    "annotator": ("annotator", "worker", "annotator_id", "worker_id", "rater", "rater_id", "performer", "user"),
    "label": ("label", "answer", "response", "vote", "class"),
    "time": ("time", "timestamp", "updated_at", "created_at"),
    "weight": ("weight",),
    "lead_time": ("lead_time", "lead_time_s", "seconds"),
    "control": ("control",),
    "kind": ("kind",),
    "gold": ("gold", "true_label", "ground_truth"),
    "id": ("annotation_id",),  # settles which of an annotator's votes is newer where times do not
}
_ID = re.compile(r"[0-9]{1,18}")
REQUIRED = ("task", "annotator", "label")
Place = Callable[[int, str], FormatError]  # (row, what is wrong) -> the error that names the row
Kind = TypeVar("Kind", bound=np.generic)


def roles_in(names: list[str]) -> dict[str, str]:
    """role -> the column of the file that has it."""
    lower = {name.strip().lower(): name for name in reversed(names)}
    found = {}
    for role, known in ROLES.items():
        name = next((lower[each] for each in known if each in lower), None)
        if name is not None:
            found[role] = name
    return found


def read_delimited(path: Path, options: ReadOptions) -> Dataset:
    """A CSV, TSV or semicolon-separated file."""
    delimiter = columns.delimiter_of(path)
    roles = _required(path, columns.header(path, delimiter))
    read = columns.delimited(path, delimiter, list(dict.fromkeys(roles.values())), options.progress)

    def place(row: int, what: str) -> FormatError:
        return at_line(path, columns.line_of_row(path, delimiter, row), what)

    return assemble({role: read[name] for role, name in roles.items()}, path.stem, place, roles)


def read_parquet(path: Path, options: ReadOptions) -> Dataset:
    """A Parquet file."""
    roles = _required(path, columns.parquet_names(path))
    read = columns.parquet(path, list(dict.fromkeys(roles.values())), options.progress,
                           strict=[roles[role] for role in ("weight",) if role in roles])

    def place(row: int, what: str) -> FormatError:
        return FormatError(f"{path.name}, row {row + 1}: {what}.")

    return assemble({role: read[name] for role, name in roles.items()}, path.stem, place, roles)


def assemble(read: Mapping[str, Column], name: str, place: Place, called: Mapping[str, str]) -> Dataset:
    """Columns by role -> a data set; `place(row, what)` makes the error of a row, `called` says how the columns are
    named in the file."""
    task, annotator, label = (read[role] for role in REQUIRED)
    _check_ids(task, annotator, label, place)
    value, values = _values(label, read.get("kind"), place)
    control = read.get("control")
    if control is not None and len(control.texts) > 1:
        vague = (control.codes < 0) & ((label.codes >= 0) | (read["gold"].codes >= 0 if "gold" in read else False))
        if vague.any():
            raise place(int(np.argmax(vague)), "it does not say for which control")
    kept = (value >= 0) & (annotator.codes >= 0)
    every = bool(kept.all())

    def rows(column: NDArray[Kind]) -> NDArray[Kind]:
        return column if every else column[kept]

    facts = {
        role: rows(_numbers(read[role], role, place, called[role])) for role in ("time", "weight", "lead_time")
        if role in read
    }
    unread = _unread(annotator, label)
    controls = control.texts if control is not None and control.texts else (DEFAULT_CONTROL,)
    unit, who = rows(task.codes), rows(annotator.codes)
    what = rows(np.maximum(control.codes, 0)) if control is not None and len(controls) > 1 else None
    time = facts.get("time", np.zeros(len(unit)))
    number = _ids(rows(read["id"].codes), read["id"].texts) if "id" in read else None
    time = in_order(
        question_of(unit, who, np.zeros(1, np.int32) if what is None else what, len(annotator.texts), len(controls)),
        np.nan_to_num(time), ~np.isnan(time), np.arange(len(unit)) if number is None else number,
    )
    votes = Votes.from_columns(
        units=task.texts, annotators=annotator.texts, controls=controls, values=values, unit=unit, annotator=who,
        value=rows(value), control=what, time=time if time.any() else None,
        weight=np.nan_to_num(facts["weight"], nan=1.0) if "weight" in facts else None,
    )
    gold = _gold(task, control, controls, read["gold"], place) if "gold" in read else {}
    lead_time = facts.get("lead_time")
    return Dataset(votes=votes, name=name, gold=gold, lead_time_s=lead_time, unread=unread)


def _unread(annotator: Column, label: Column) -> Unread:
    """The rows that somebody stands in, and those of them without a vote."""
    somebody = annotator.codes >= 0
    found = Unread(
        annotations=int(somebody.sum()), noun="row with an annotator", nouns="rows with an annotator")
    if empty := int((somebody & (label.codes < 0)).sum()):
        found.because("without a label", empty)
    return found


def _ids(codes: NDArray[np.int32], texts: Sequence[str]) -> NDArray[np.int64] | None:
    """(N,) ids of annotations; None unless all are whole numbers."""
    if not len(codes) or (codes < 0).any() or not all(_ID.fullmatch(text) for text in texts):
        return None
    return np.array([int(text) for text in texts], dtype=np.int64)[codes]


def _required(path: Path, names: list[str]) -> dict[str, str]:
    roles = roles_in(names)
    missing = [role for role in REQUIRED if role not in roles]
    if missing:
        wanted = " and no column for the ".join(f"{role} ({', '.join(ROLES[role][:3])} ...)" for role in missing)
        there = ", ".join(name.strip() or '""' for name in names)
        raise FormatError(f"{path.name} has no column for the {wanted}; its columns are {there}.")
    return roles


def _check_ids(task: Column, annotator: Column, label: Column, place: Place) -> None:
    if (task.codes < 0).any():
        raise place(int(np.argmax(task.codes < 0)), "it has no task")
    lonely = (annotator.codes < 0) & (label.codes >= 0)
    if lonely.any():
        raise place(int(np.argmax(lonely)), "it has a label but no annotator")


def _values(label: Column, kind: Column | None, place: Place) -> tuple[NDArray[np.int32], tuple[Value, ...]]:
    """(N,) codes of the typed values, -1 where the label is missing."""
    if kind is None:
        return label.codes, tuple(Value.of_class(text) for text in label.texts)
    n_kinds = len(kind.texts) + 1
    pair = np.where(label.codes >= 0, label.codes.astype(np.int64) * n_kinds + kind.codes + 1, -1)
    distinct, first, codes = np.unique(pair, return_index=True, return_inverse=True)
    values: list[Value] = []
    for number, row in zip(distinct, first, strict=True):
        if number < 0:
            continue
        text, which = label.texts[number // n_kinds], int(number % n_kinds)
        name = kind.texts[which - 1] if which else ValueKind.CLASS.value
        try:
            value = Value.of_class(text) if name == ValueKind.CLASS else Value.from_json(name, text)
        except ModelError as error:
            raise place(int(row), "its label is not what its kind says") from error
        values.append(value)
    table = list(dict.fromkeys(values))
    position = {each: code for code, each in enumerate(table)}
    merged = np.array([position[each] for each in values], dtype=np.int32)
    shift = int(len(distinct) > 0 and distinct[0] < 0)
    return np.where(codes >= shift, np.append(merged, -1)[codes - shift], -1).astype(np.int32), tuple(table)


def _numbers(column: Column, role: str, place: Place, called: str) -> NDArray[np.float64]:
    """(N,) numbers of a role, NaN where the cell is empty; `called` is the column, for what is said of it."""
    if role == "time":
        parsed = [as_seconds(text) for text in column.texts]
        bad = np.append([each is None for each in parsed], False)[column.codes] if parsed else np.zeros(0, np.bool_)
        if bad.any():
            raise place(int(np.argmax(bad)), f"its {called} is no time in seconds or ISO 8601")
        return np.array([*(np.nan if each is None else each for each in parsed), np.nan])[column.codes]
    found, first = columns.numbers(column, as_seconds)
    if first is not None:
        raise place(first, f"its {called} is no number")
    with np.errstate(invalid="ignore"):
        wrong = (found < 0) | (found > LARGEST_WEIGHT) | ((column.codes >= 0) & np.isnan(found))
    if role != "weight":
        wrong &= ~np.isnan(found)  # a lead time may be unknown
    if wrong.any():
        raise place(int(np.argmax(wrong)), f"its {called} must be finite and not negative")
    return found


def _gold(
    task: Column, control: Column | None, controls: tuple[str, ...], gold: Column, place: Place
) -> dict[str, dict[str, str]]:
    """control -> unit -> class. Raises for a unit with two different gold labels."""
    found: dict[str, dict[str, str]] = {}
    for position, name in enumerate(controls):
        mine = gold.codes >= 0
        if control is not None and len(controls) > 1:
            mine &= control.codes == position
        rows = np.flatnonzero(mine)
        unit, label = task.codes[rows], gold.codes[rows]
        last = np.full(len(task.texts), -1, dtype=np.int32)
        last[unit] = label
        differs = last[unit] != label
        if differs.any():
            raise place(int(rows[np.argmax(differs)]), "its task has two different gold labels")
        if len(rows):
            found[name] = {task.texts[u]: gold.texts[last[u]] for u in np.flatnonzero(last >= 0)}
    return found

"""Reading votes: whole projects column by column, single tasks as records, and the figures that triggers need.

Shape legend: N current votes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Row, and_, bindparam, func, select

from backend import records
from backend.store.engine import Database, chunks, from_us, id_of, optional_time, project_id
from backend.store.schema import annotators, arm_log, projects, votes
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance, Votes

_REMEMBERED = 100_000  # pairs of the arm that are known to be logged
_ROWS = 20_000  # votes that are held as Python objects at a time while columns are built


class SqlVoteStore:
    """`ports.VoteStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._counted: dict[str, records.VoteCounts] = {}  # by project; true as long as `changes` is the same
        self._voters: dict[str, tuple[int, tuple[str, ...]]] = {}  # the same: (changes, annotators)
        self._withheld: set[tuple[str, int, str]] = set()  # some of what is in the log of the arm, which only grows

    def current(self, project: str) -> Votes:
        """See `ports.VoteStore`. Time is `updated_at` in seconds, weight 1; `scored` is false for a vote that a
        pre-annotation of ours may have anchored: it could be seen and the pair is not in the control arm."""
        columns = votes.c
        statement = select(
            columns.unit, columns.annotator, columns.control, columns.kind, columns.value,
            columns.updated_at, columns.provenance, columns.shown, columns.control_arm,
        ).where(_current(project))
        tables = VoteTables()
        with self._db.read() as connection:
            result = connection.execution_options(yield_per=_ROWS).execute(statement)
            for rows in result.partitions():
                tables.add(rows)
        return tables.votes()

    def of_tasks(self, project: str, task_ids: Sequence[int]) -> list[records.StoredVote]:
        """See `ports.VoteStore`."""
        found: list[records.StoredVote] = []
        with self._db.read() as connection:
            for ids in chunks(task_ids):
                rows = connection.execute(_OF_TASKS, {"project": project, "tasks": list(ids)})
                found.extend(_stored_vote(row) for row in rows)
        return found

    def differing(
        self, project: str, control: str, pair: tuple[str, str], *, offset: int, limit: int
    ) -> tuple[int, list[records.Difference]]:
        """See `ports.VoteStore`."""
        sides = [
            select(votes.c.unit, votes.c.task_id, votes.c.kind, votes.c.value)
            .where(_current(project), votes.c.control == control, votes.c.annotator == who).subquery()
            for who in pair
        ]  # fmt: skip
        one, other = (side.c for side in sides)
        both = sides[0].join(sides[1], one.unit == other.unit)
        differ = one.value != other.value
        rows = select(one.unit, one.task_id, one.kind, one.value, other.value.label("second"))
        with self._db.read() as connection:
            total = connection.execute(select(func.count()).select_from(both).where(differ)).scalar_one()
            found = connection.execute(
                rows.select_from(both).where(differ).order_by(one.task_id, one.unit).offset(offset).limit(limit)
            ).all()
        return total, [
            records.Difference(task=row.task_id, unit=row.unit, first=Value.from_json(row.kind, row.value),
                               second=Value.from_json(row.kind, row.second))
            for row in found
        ]  # fmt: skip

    def of_annotators(self, project: str, names: Sequence[str]) -> list[records.StoredVote]:
        """See `ports.VoteStore`."""
        found: list[records.StoredVote] = []
        columns = votes.c
        with self._db.read() as connection:
            for some in chunks(names):
                statement = select(votes).where(_current(project), columns.annotator.in_(some))
                ordered = statement.order_by(columns.updated_at, columns.unit, columns.annotator, columns.control)
                found.extend(_stored_vote(row) for row in connection.execute(ordered))
        return found

    def counts(self, project: str) -> records.VoteCounts:
        """See `ports.VoteStore`. Counted anew only after votes changed; asked once a second, it reads one row."""
        statement = select(projects.c.changes, projects.c.last_change).where(projects.c.key == project)
        current = _current(project)
        with self._db.read() as connection:
            row = connection.execute(statement).first()
            if row is None:
                return records.VoteCounts(
                    total=0, tasks_with_votes=0, annotators=0, classes=0, last_change=None, changes=0
                )
            counted = self._counted.get(project)
            if counted is not None and counted.changes == row.changes:
                return counted
            answers = select(votes.c.control, votes.c.kind, votes.c.value).where(current).distinct().subquery()
            each = (answers.c.control, answers.c.kind)
            total, with_votes, voters = connection.execute(
                select(
                    func.count(), func.count(votes.c.task_id.distinct()), func.count(votes.c.annotator.distinct())
                ).where(current)
            ).one()
            kinds = connection.execute(select(*each, func.count().label("answers")).group_by(*each)).all()
        counted = records.VoteCounts(
            total=total,
            tasks_with_votes=with_votes,
            annotators=voters,
            classes=_classes(kinds),
            last_change=optional_time(row.last_change),
            changes=row.changes,
        )
        if counted.total:  # anybody may invent projects, which have none
            self._counted[project] = counted
        return counted

    def activity(self, project: str) -> list[records.AnnotatorActivity]:
        """Most votes first; annotators without a current vote are not listed."""
        named = (annotators.c.project_id == votes.c.project_id) & (annotators.c.annotator == votes.c.annotator)
        number = func.count()
        statement = (
            select(votes.c.annotator, func.max(annotators.c.name), number, func.max(votes.c.updated_at))
            .select_from(votes.outerjoin(annotators, named))
            .where(_current(project))
            .group_by(votes.c.annotator)
            .order_by(number.desc(), votes.c.annotator)
        )
        with self._db.read() as connection:
            return [
                records.AnnotatorActivity(
                    annotator=annotator, name=name or annotator, votes=count, last_vote=from_us(last)
                )
                for annotator, name, count, last in connection.execute(statement)
            ]

    def voters(self, project: str) -> tuple[str, ...]:
        """See `ports.VoteStore`. Counted anew only after votes were added or removed; else it reads one row."""
        with self._db.read() as connection:
            changes = connection.execute(_CHANGES, {"project": project}).scalar()
            known = self._voters.get(project)
            if known is not None and known[0] == changes:
                return known[1]
            found = tuple(connection.execute(_VOTERS, {"project": project}).scalars())
        if changes is not None and found:
            self._voters[project] = (changes, found)
        return found

    def set_names(self, project: str, names: Mapping[str, str]) -> None:
        """Raises NotFound. Writes only names that are new or differ."""
        ours = annotators.c.project_id == id_of(project)
        with self._db.read() as connection:
            rows = connection.execute(select(annotators.c.annotator, annotators.c.name).where(ours)).all()
        stored = {annotator: name for annotator, name in rows}
        fresh = {annotator: name for annotator, name in names.items() if stored.get(annotator) != name}
        if not fresh:
            return
        with self._db.write() as connection:
            row_id = project_id(connection, project)
            named = [{"project_id": row_id, "annotator": key, "name": name} for key, name in fresh.items()]
            self._db.upsert(connection, annotators, named)

    def log_arm(self, project: str, pairs: Collection[tuple[int, str]], *, version: str) -> None:
        """Raises NotFound. Asked on every answered prediction: no write when nothing is new."""
        fresh = {(task, who) for task, who in pairs if (project, task, who) not in self._withheld}
        wanted = sorted(fresh - self._logged(project, {task for task, _ in fresh}))
        if wanted:
            self._log(project, wanted, version)
        if len(self._withheld) > _REMEMBERED:
            self._withheld.clear()
        self._withheld |= {(project, task, who) for task, who in fresh}

    def _log(self, project: str, wanted: Sequence[tuple[int, str]], version: str) -> None:
        with self._db.write() as connection:
            row_id, now = project_id(connection, project), self._db.now_us()
            rows = [
                {"project_id": row_id, "task_id": task, "annotator": annotator, "version": version, "logged_at": now}
                for task, annotator in wanted
            ]
            connection.execute(self._db.insert(arm_log).on_conflict_do_nothing(), rows)

    def _logged(self, project: str, task_ids: Collection[int]) -> set[tuple[int, str]]:
        found: set[tuple[int, str]] = set()
        columns = arm_log.c
        if not task_ids:
            return found
        with self._db.read() as connection:
            for ids in chunks(sorted(task_ids)):
                statement = select(columns.task_id, columns.annotator)
                rows = connection.execute(
                    statement.where(columns.project_id == id_of(project), columns.task_id.in_(ids))
                )
                found.update((task, annotator) for task, annotator in rows)
        return found


def _current(project: Any) -> ColumnElement[bool]:
    """Which rows are current votes of a project. That they are live follows from `is_current`; it is named so that the
    index of live rows is used, and neither history nor other projects are read."""
    return and_(votes.c.project_id == id_of(project), votes.c.ended_at.is_(None), votes.c.is_current)


# Statements of every request, built once.
_MINE = _current(bindparam("project"))
_OF_TASKS = (
    select(votes).where(_MINE, votes.c.task_id.in_(bindparam("tasks", expanding=True)))
    .order_by(votes.c.task_id, votes.c.unit, votes.c.annotator, votes.c.control)
)  # fmt: skip
_CHANGES = select(projects.c.changes).where(projects.c.key == bindparam("project"))
_VOTERS = select(votes.c.annotator).where(_MINE).group_by(votes.c.annotator).order_by(
    func.count().desc(), votes.c.annotator)


class _Ids(dict[Any, int]):
    """Numbers things in the order in which they come up; a lookup of a known thing runs in C."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number

    def column(self, items: Sequence[Any]) -> NDArray[np.int32]:
        return np.fromiter(map(self.__getitem__, items), np.int32, len(items))


class VoteTables:
    """Columns of `Votes` under construction."""

    def __init__(self) -> None:
        self._ids = (_Ids(), _Ids(), _Ids(), _Ids())  # unit, annotator, control, (kind, value)
        self._parts: list[tuple[NDArray[Any], ...]] = []

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        unit, annotator, control, kind, value, updated_at, provenance, shown, control_arm = zip(*rows, strict=True)
        keys = (unit, annotator, control, list(zip(kind, value, strict=True)))
        ids = [table.column(items) for table, items in zip(self._ids, keys, strict=True)]
        seconds = np.array(updated_at, np.int64) / 1e6
        scored = ~np.array(shown, np.bool_) | np.array(control_arm, np.bool_)
        self._parts.append((*ids, seconds, np.array(provenance, np.int8), scored))

    def votes(self) -> Votes:
        if not self._parts:
            return Votes.from_votes([])
        unit, annotator, control, value, time, provenance, scored = (
            np.concatenate(parts) for parts in zip(*self._parts, strict=True)
        )
        units, annotator_ids, controls, pairs = (list(table) for table in self._ids)
        values = [Value.from_json(kind, text) for kind, text in pairs]
        unit_order, annotator_order, control_order = (_order(names) for names in (units, annotator_ids, controls))
        value_order = _order([(item.kind, item.to_json()) for item in values])
        return Votes(
            units=tuple(units[i] for i in unit_order),
            annotators=tuple(annotator_ids[i] for i in annotator_order),
            controls=tuple(controls[i] for i in control_order),
            values=tuple(values[i] for i in value_order),
            unit=_places(unit_order)[unit],  # (N,)
            annotator=_places(annotator_order)[annotator],  # (N,)
            control=_places(control_order)[control],  # (N,)
            value=_places(value_order)[value],  # (N,)
            time=time,
            weight=np.ones(len(time), np.float32),
            provenance=provenance,
            scored=scored,
        )


def _order(items: Sequence[Any]) -> list[int]:
    """Positions of the items in sorted order, so that id tables do not depend on the order of rows."""
    return sorted(range(len(items)), key=items.__getitem__)


def _places(order: Sequence[int]) -> NDArray[np.int32]:
    """Inverse of a permutation: where each item went."""
    places = np.empty(len(order), np.int32)
    places[np.array(order, np.int64)] = np.arange(len(order), dtype=np.int32)
    return places


def _stored_vote(row: Row[Any]) -> records.StoredVote:
    return records.StoredVote(
        unit=row.unit,
        task_id=row.task_id,
        annotation_id=row.annotation_id,
        annotator=row.annotator,
        control=row.control,
        value=Value.from_json(row.kind, row.value),
        updated_at=from_us(row.updated_at),
        lead_time_s=row.lead_time_s,
        provenance=Provenance(row.provenance),
        shown=row.shown,
        control_arm=row.control_arm,
    )


def _classes(kinds: Sequence[Row[Any]]) -> int:
    """`VoteCounts.classes` from (control, kind, answers)."""
    by_control: dict[str, int] = {}
    for row in kinds:
        if row.kind not in (ValueKind.TEXT.value, ValueKind.RANKING.value):
            by_control[row.control] = by_control.get(row.control, 0) + row.answers
    ranked = any(row.kind == ValueKind.RANKING.value for row in kinds)
    return max(by_control.values(), default=2 if ranked else 0)

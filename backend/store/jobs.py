"""The queue: one row per job, claimed atomically under a lease.

A claim is one transaction. On SQLite writers take turns; on PostgreSQL the row is locked and rows that others hold are
skipped. That at most one job of a (project, kind) runs is kept by the unique `slot`, not by reading first.
`attempts` counts claims: a job whose process died is queued again when its lease ran out, until it was tried
`job_attempts` times. A job that failed on purpose with a time for the next try is queued again without that limit, and
a claim that was given back does not count.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, case, delete, exists, func, select, union_all, update
from sqlalchemy.exc import IntegrityError

from backend import records
from backend.instants import Drift
from backend.records import JobKind, JobState
from backend.store.engine import Database, chunks, from_us, optional_time, to_us
from backend.store.schema import jobs

_COLLISIONS = 5  # how often a claim that lost a race looks again before it leaves the work to the winners

_SILENT = "The job process stopped answering."
_ENDED = (JobState.DONE.value, JobState.FAILED.value)

# Whose turn it is. What is read again in pieces waits for everything else that may run in its lane.
_TURN = (case((jobs.c.kind == JobKind.REREAD.value, 1), else_=0), jobs.c.not_before, jobs.c.created_at, jobs.c.id)


class SqlJobStore:
    """`ports.JobStore` on a database."""

    def __init__(self, database: Database, *, job_attempts: int) -> None:
        self._db = database
        self._attempts = job_attempts
        self._drift = Drift(database.clock, seconds=database.seconds)
        self._trusted_from = float("-inf")  # on the monotonic clock: when leases say again whose process is gone

    def enqueue(
        self,
        kind: JobKind,
        project: str,
        *,
        payload: Mapping[str, Any] | None = None,
        not_before: datetime | None = None,
        replace: bool = True,
    ) -> records.Job:
        """See `ports.JobStore`. A `payload` of None leaves that of a waiting job as it is."""
        now = self._db.now_us()
        due = now if not_before is None else to_us(not_before)
        slot = f"queued:{kind}:{project}" if replace else None
        statement = self._db.insert(jobs).values(_new_row(kind, project, payload or {}, slot, now, due))
        new = statement.excluded
        changes: dict[str, Any] = {
            "not_before": case((new.not_before < jobs.c.not_before, new.not_before), else_=jobs.c.not_before)
        }
        if payload is not None:
            changes["payload"] = new.payload
        statement = statement.on_conflict_do_update(index_elements=["slot"], set_=changes)
        with self._db.write() as connection:
            return _job(connection.execute(statement.returning(*jobs.c)).one())

    def claim(
        self, owner: str, *, lease_s: float, kinds: Sequence[JobKind] | None = None, job_id: str | None = None
    ) -> records.Job | None:
        """See `ports.JobStore`. Every lane asks twice a second, so the turn to write is taken only where there is
        something to do: a process that is nice may hold it for long, and webhooks wait."""
        for _ in range(_COLLISIONS):
            leases_hold = self._leases_hold(lease_s)
            if not self._anything(kinds, job_id):
                return None
            try:
                with self._db.write() as connection:
                    now = self._db.now_us()
                    if leases_hold:
                        self._take_back(connection, _silent(now), now, error=_SILENT)
                    return self._take(connection, owner, now, round(lease_s * 1_000_000), kinds, job_id)
            except IntegrityError:
                continue  # somebody else began a job of the same kind and project in the same moment
        return None

    def _anything(self, kinds: Sequence[JobKind] | None, job_id: str | None) -> bool:
        """Whether a claim may find a job, or one whose process is gone."""
        now = self._db.now_us()
        found = select(jobs.c.id).where(_open(now, kinds, job_id) | _silent(now)).limit(1)
        with self._db.read() as connection:
            return connection.execute(found).first() is not None

    def _leases_hold(self, lease_s: float) -> bool:
        """False for the length of a lease after the clock was set forward: all leases look as if they were over, and
        processes that live will have renewed theirs by then."""
        if self._drift.look() > 0.0:
            self._trusted_from = self._db.seconds() + lease_s
        return self._db.seconds() >= self._trusted_from

    def heartbeat(self, job_id: str, owner: str, *, progress: float, note: str, lease_s: float) -> bool:
        """See `ports.JobStore`."""
        now = self._db.now_us()
        lease_until = now + round(lease_s * 1_000_000)
        values = {"progress": progress, "note": note, "lease_until": lease_until}
        return self._change(job_id, owner, values, synced=False)

    def finish(self, job_id: str, owner: str, *, figures: Mapping[str, Any]) -> None:
        """Does nothing when the job is not ours any more: whoever has it now will report."""
        values = {"state": JobState.DONE.value, "progress": 1.0, "error": "", "figures": json.dumps(dict(figures))}
        self._change(job_id, owner, values | {"slot": None, "finished_at": self._db.now_us(), "lease_until": None})

    def fail(self, job_id: str, owner: str, *, error: str, retry_at: datetime | None) -> None:
        """Record a failure. With `retry_at` the job waits for its next try, unless another like it waits already."""
        ended = {"error": error, "lease_until": None}
        failed = ended | {"state": JobState.FAILED.value, "slot": None, "finished_at": self._db.now_us()}
        if retry_at is None:
            self._change(job_id, owner, failed)
            return
        again = ended | {"state": JobState.QUEUED.value, "not_before": to_us(retry_at), "progress": 0.0}
        try:
            self._change(job_id, owner, again, requeue=True)
        except IntegrityError:
            self._change(job_id, owner, failed)

    def give_back(self, job_id: str, owner: str, *, error: str) -> None:
        """See `ports.JobStore`. Where another like it waits already, both wait: each may have been asked for more."""
        back = {"state": JobState.QUEUED.value, "attempts": jobs.c.attempts - 1, "error": error, "lease_until": None,
                "progress": 0.0, "interrupted_at": self._db.now_us()}
        try:
            self._change(job_id, owner, back, requeue=True)
        except IntegrityError:
            self._change(job_id, owner, back | {"slot": None})

    def get(self, job_id: str) -> records.Job | None:
        """See `ports.JobStore`."""
        with self._db.read() as connection:
            row = self._row(connection, job_id)
        return None if row is None else _job(row)

    def recent(
        self, project: str | None = None, *, kind: JobKind | None = None, limit: int = 20
    ) -> list[records.Job]:
        """See `ports.JobStore`."""
        statement = select(jobs).order_by(jobs.c.created_at.desc(), jobs.c.id).limit(limit)
        if project is not None:
            statement = statement.where(jobs.c.project == project)
        if kind is not None:
            statement = statement.where(jobs.c.kind == kind.value)
        with self._db.read() as connection:
            return [_job(row) for row in connection.execute(statement)]

    def last_ended(self, project: str) -> list[records.Job]:
        """See `ports.JobStore`. One walk along the index for each kind, which ends at the first that has ended."""
        newest = [
            select(jobs).where(jobs.c.project == project, jobs.c.kind == kind.value, jobs.c.state.in_(_ENDED))
            .order_by(jobs.c.created_at.desc(), jobs.c.id).limit(1).subquery().select()
            for kind in JobKind
        ]
        with self._db.read() as connection:
            return [_job(row) for row in connection.execute(union_all(*newest))]

    def interrupted(self, project: str, *, since: datetime) -> list[records.Job]:
        """See `ports.JobStore`. By an index of these jobs alone, of which there are few."""
        lately = jobs.c.finished_at.is_(None) | (jobs.c.finished_at >= to_us(since))
        statement = (
            select(jobs).where(jobs.c.project == project, jobs.c.interrupted_at.is_not(None), lately)
            .order_by(jobs.c.interrupted_at.desc(), jobs.c.id)
        )
        with self._db.read() as connection:
            return [_job(row) for row in connection.execute(statement)]

    def prune(self, before: datetime, *, limit: int = 1000) -> int:
        """See `ports.JobStore`. The index on states finds them, since a job never ends before it is due."""
        cut, newer = to_us(before), jobs.alias("newer")
        later = exists().where(
            newer.c.project == jobs.c.project, newer.c.kind == jobs.c.kind, newer.c.created_at > jobs.c.created_at,
            newer.c.state == jobs.c.state,
        )
        old = (
            select(jobs.c.id)
            .where(jobs.c.state.in_(_ENDED), jobs.c.not_before < cut, jobs.c.finished_at < cut, later)
            .limit(limit)
        )
        with self._db.read() as connection:
            ids = list(connection.execute(old).scalars())
        if not ids:
            return 0  # asked now and then for ever: no write when nothing is old
        with self._db.write() as connection:
            return sum(connection.execute(delete(jobs).where(jobs.c.id.in_(some))).rowcount for some in chunks(ids))

    def counts(self, states: Sequence[JobState]) -> dict[tuple[JobKind, JobState], int]:
        """See `ports.JobStore`. By the index on states, so that its cost does not grow with the history."""
        wanted = jobs.c.state.in_([state.value for state in states])
        statement = select(jobs.c.kind, jobs.c.state, func.count()).where(wanted).group_by(jobs.c.kind, jobs.c.state)
        with self._db.read() as connection:
            rows = connection.execute(statement).all()
        return {(JobKind(kind), JobState(state)): count for kind, state, count in rows}

    def pending(self, project: str, kind: JobKind) -> records.Job | None:
        """The running job where there is one, else the one that waits."""
        active = [JobState.RUNNING.value, JobState.QUEUED.value]
        statement = (
            select(jobs)
            .where(jobs.c.project == project, jobs.c.kind == kind.value, jobs.c.state.in_(active))
            .order_by(jobs.c.state.desc(), jobs.c.not_before)  # "running" > "queued"
            .limit(1)
        )
        with self._db.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else _job(row)

    def due(self, kinds: Sequence[JobKind], *, limit: int) -> list[str]:
        """See `ports.JobStore`."""
        now, other = self._db.now_us(), jobs.alias("other")
        runs = (other.c.state == JobState.RUNNING.value) & (other.c.lease_until >= now)
        same_runs = exists().where(other.c.project == jobs.c.project, other.c.kind == jobs.c.kind, runs)
        waits = (jobs.c.state == JobState.QUEUED.value) & (jobs.c.not_before <= now) & ~same_runs
        statement = (
            select(jobs.c.id)
            .where(jobs.c.kind.in_([kind.value for kind in kinds]), waits | _silent(now))
            .order_by(*_TURN)
            .limit(limit)
        )
        with self._db.read() as connection:
            return list(connection.execute(statement).scalars())

    def release(self, process: str, *, error: str) -> int:
        """See `ports.JobStore`."""
        now = self._db.now_us()
        owned = jobs.c.lease_owner.startswith(f"{process}:", autoescape=True)
        theirs = (jobs.c.state == JobState.RUNNING.value) & owned
        with self._db.write() as connection:
            return self._take_back(connection, theirs, now, error=error)

    def _take_back(self, connection: Connection, lost: ColumnElement[bool], now: int, *, error: str) -> int:
        """Queue running jobs again whose process is gone; those that used up their attempts fail. Returns how many."""
        used_up = f"{error} Tried {self._attempts} times."
        since = case((jobs.c.lease_until < now, jobs.c.lease_until), else_=now)  # it may be noticed a day later
        failed = connection.execute(
            update(jobs)
            .where(lost, jobs.c.attempts >= self._attempts)
            .values(state=JobState.FAILED.value, slot=None, error=used_up, finished_at=now, lease_until=None,
                    interrupted_at=since)
        )
        again = connection.execute(
            update(jobs)
            .where(lost)
            .values(state=JobState.QUEUED.value, slot=None, error=error, lease_until=None, interrupted_at=since)
        )
        return failed.rowcount + again.rowcount

    def _take(
        self, connection: Connection, owner: str, now: int, lease_us: int, kinds: Sequence[JobKind] | None,
        job_id: str | None,
    ) -> records.Job | None:
        due = select(jobs).where(_open(now, kinds, job_id)).order_by(*_TURN).limit(1)
        row = connection.execute(due.with_for_update(skip_locked=True)).first()
        if row is None:
            return None
        connection.execute(
            update(jobs)
            .where(jobs.c.id == row.id)
            .values(
                state=JobState.RUNNING.value,
                slot=f"running:{row.kind}:{row.project}",
                attempts=row.attempts + 1,
                started_at=now,
                lease_until=now + lease_us,
                lease_owner=owner,
                progress=0.0,
                note="",
            )
        )
        taken = self._row(connection, row.id)
        assert taken is not None
        return _job(taken)

    def _change(
        self, job_id: str, owner: str, values: dict[str, Any], *, requeue: bool = False, synced: bool = True
    ) -> bool:
        """Change a running job of ours; False when it is not."""
        ours = (jobs.c.id == job_id) & (jobs.c.lease_owner == owner) & (jobs.c.state == JobState.RUNNING.value)
        changes: dict[str, Any] = dict(values)
        if requeue:
            changes["slot"] = "queued:" + jobs.c.kind + ":" + jobs.c.project
        with self._db.write(synced=synced) as connection:
            return connection.execute(update(jobs).where(ours).values(changes)).rowcount == 1

    @staticmethod
    def _row(connection: Connection, job_id: str) -> Row[Any] | None:
        return connection.execute(select(jobs).where(jobs.c.id == job_id)).first()


def _open(now: int, kinds: Sequence[JobKind] | None, job_id: str | None) -> ColumnElement[bool]:
    """Jobs that are due, and of whose kind and project none runs; of these kinds, or this one."""
    other = jobs.alias("other")
    same_runs = exists().where(
        other.c.project == jobs.c.project, other.c.kind == jobs.c.kind, other.c.state == JobState.RUNNING.value
    )
    found = (jobs.c.state == JobState.QUEUED.value) & (jobs.c.not_before <= now) & ~same_runs
    if kinds is not None:
        found &= jobs.c.kind.in_([kind.value for kind in kinds])
    return found if job_id is None else found & (jobs.c.id == job_id)


def _silent(now: int) -> ColumnElement[bool]:
    """Running jobs whose process went silent."""
    return (jobs.c.state == JobState.RUNNING.value) & (jobs.c.lease_until < now)


def _new_row(
    kind: JobKind, project: str, payload: Mapping[str, Any], slot: str | None, now: int, due: int
) -> dict[str, Any]:
    return {
        "id": str(uuid.uuid4()),
        "kind": kind.value,
        "project": project,
        "payload": json.dumps(dict(payload)),
        "state": JobState.QUEUED.value,
        "slot": slot,
        "progress": 0.0,
        "note": "",
        "error": "",
        "figures": "{}",
        "attempts": 0,
        "created_at": now,
        "not_before": due,
        "lease_owner": "",
    }


def _job(row: Row[Any]) -> records.Job:
    return records.Job(
        id=row.id,
        kind=JobKind(row.kind),
        project=row.project,
        payload=json.loads(row.payload),
        state=JobState(row.state),
        progress=row.progress,
        note=row.note,
        error=row.error,
        figures=json.loads(row.figures),
        attempts=row.attempts,
        created_at=from_us(row.created_at),
        not_before=from_us(row.not_before),
        started_at=optional_time(row.started_at),
        finished_at=optional_time(row.finished_at),
        lease_until=optional_time(row.lease_until),
        lease_owner=row.lease_owner,
        interrupted_at=optional_time(row.interrupted_at),
    )

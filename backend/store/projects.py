"""Projects, their overrides of settings, and how far the reconciler has read each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update

from backend import records
from backend.errors import ClientError
from backend.store import marks
from backend.store.engine import Database, id_of, optional_time, optional_us, project_id
from backend.store.schema import as_stored, findings, projects
from backend.store.unread import UNREAD, make_room

KEY = re.compile(r"(\d{1,18})\.(\d{1,18})")
_BY_KEY = select(projects).where(projects.c.key == bindparam("key"))
_LOCKED = _BY_KEY.with_for_update(key_share=True)


class SqlProjectStore:
    """`ports.ProjectStore` on a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def ensure(
        self, key: str, *, title: str = "", label_config: str = "", matters: Callable[[str, str], bool] | None = None,
    ) -> records.Project:
        """See `ports.ProjectStore`. Raises ClientError when `key` is not "<project id>.<created epoch>"."""
        wanted = {"title": as_stored(title), "label_config": as_stored(label_config)}
        found = self.get(key)
        if found is not None and not _differences(found, wanted):
            return found  # the usual case, on every request: no write
        new = _new(key) | wanted
        with self._db.write() as connection:
            row = self._row(connection, key, lock=True)
            if row is None:
                self._insert(connection, new)
            else:
                changes = _differences(_project(row), wanted)
                if changes:
                    connection.execute(update(projects).where(projects.c.key == key).values(changes))
                after = changes.get("label_config", row.label_config)
                if matters is not None and after != row.label_config and matters(row.label_config, after):
                    marks.mark(self._db, connection, row.id, [records.EVERY_TASK])
            stored = self._row(connection, key)
        assert stored is not None
        return _project(stored)

    def introduce(self, key: str, *, unread: int) -> records.Project:
        """See `ports.ProjectStore`. Raises ClientError as `ensure` does."""
        found = self.get(key)
        if found is not None:
            return found
        new = _new(key) | {"title": "", "label_config": ""}
        with self._db.write() as connection:
            make_room(connection, unread)
            self._insert(connection, new)
            stored = self._row(connection, key)
        assert stored is not None
        return _project(stored)

    def _insert(self, connection: Connection, new: Mapping[str, Any]) -> None:
        statement = self._db.insert(projects).values(new)
        connection.execute(statement.on_conflict_do_nothing(index_elements=["key"]))

    def get(self, key: str) -> records.Project | None:
        """See `ports.ProjectStore`."""
        with self._db.read() as connection:
            row = self._row(connection, key)
        return None if row is None else _project(row)

    def by_label_studio_id(self, label_studio_id: int) -> records.Project | None:
        """See `ports.ProjectStore`."""
        statement = (
            select(projects)
            .where(projects.c.label_studio_id == label_studio_id)
            .order_by(UNREAD, projects.c.created_epoch.desc(), projects.c.id.desc())
            .limit(1)
        )
        with self._db.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else _project(row)

    def all(self) -> list[records.Project]:
        """Oldest first."""
        with self._db.read() as connection:
            return [_project(row) for row in connection.execute(select(projects).order_by(projects.c.id))]

    def update_settings(self, key: str, changes: Mapping[str, Any]) -> None:
        """Merge overrides; a value of None takes an override back. Raises NotFound."""
        with self._db.write() as connection:
            row_id = project_id(connection, key, lock=True)
            text = connection.execute(select(projects.c.settings).where(projects.c.id == row_id)).scalar_one()
            merged = {name: value for name, value in (json.loads(text) | dict(changes)).items() if value is not None}
            connection.execute(update(projects).where(projects.c.id == row_id).values(settings=json.dumps(merged)))

    def sync_state(self, key: str) -> records.SyncState:
        """The state of an unknown project is the one before the first read."""
        with self._db.read() as connection:
            row = self._row(connection, key)
        if row is None:
            return records.SyncState()
        return records.SyncState(
            cursor_time=optional_time(row.cursor_time),
            cursor_id=row.cursor_id,
            last_sweep=optional_time(row.last_sweep),
            sweep_wanted=optional_time(row.sweep_wanted),
            last_reread=optional_time(row.last_reread),
            reread_begun=optional_time(row.reread_begun),
            reread_after=row.reread_after,
            reread_wanted=optional_time(row.reread_wanted),
            last_success=optional_time(row.last_success),
            last_error=row.last_error,
            failures=row.failures,
        )

    def set_sync_state(self, key: str, state: records.SyncState) -> None:
        """Raises NotFound."""
        values = {
            "cursor_time": optional_us(state.cursor_time),
            "cursor_id": state.cursor_id,
            "last_sweep": optional_us(state.last_sweep),
            "last_success": optional_us(state.last_success),
            "last_error": state.last_error,
            "failures": state.failures,
        }
        self._change(key, values)

    def want_sweep(self, key: str) -> None:
        """See `ports.ProjectStore`. Raises NotFound."""
        self._change(key, {"sweep_wanted": self._db.now_us()})

    def set_reread(self, key: str, *, last: datetime | None, begun: datetime | None = None, after: int = 0) -> None:
        """See `ports.ProjectStore`. Raises NotFound."""
        values = {"last_reread": optional_us(last), "reread_begun": optional_us(begun), "reread_after": after}
        self._change(key, values)

    def want_reread(self) -> None:
        """See `ports.ProjectStore`."""
        with self._db.write() as connection:
            connection.execute(update(projects).values(reread_wanted=self._db.now_us()))

    def _change(self, key: str, values: Mapping[str, Any]) -> None:
        with self._db.write(synced=False) as connection:
            row_id = project_id(connection, key)
            connection.execute(update(projects).where(projects.c.id == row_id).values(values))

    def findings(self, key: str) -> list[str]:
        """See `ports.ProjectStore`."""
        statement = select(findings.c.sentences).where(findings.c.project_id == id_of(key))
        with self._db.read() as connection:
            rows = connection.execute(statement.order_by(findings.c.check_name)).scalars()
            return [sentence for row in rows for sentence in json.loads(row)]

    def set_findings(self, key: str, check: str, sentences: Sequence[str]) -> None:
        """Raises NotFound."""
        with self._db.write() as connection:
            row = {
                "project_id": project_id(connection, key), "check_name": check,
                "sentences": json.dumps(list(sentences)), "found_at": self._db.now_us(),
            }  # fmt: skip
            self._db.upsert(connection, findings, [row])

    @staticmethod
    def _row(connection: Connection, key: str, *, lock: bool = False) -> Row[Any] | None:
        return connection.execute(_LOCKED if lock else _BY_KEY, {"key": key}).first()


_NEW: dict[str, Any] = {
    "settings": "{}", "changes": 0, "cursor_id": 0, "last_error": "", "failures": 0,
}


def _new(key: str) -> dict[str, Any]:
    match = KEY.fullmatch(key)
    if match is None:
        raise ClientError("A project is named by its id and the time it was created, like 12.1764288000.")
    return _NEW | {"key": key, "label_studio_id": int(match[1]), "created_epoch": int(match[2])}


def _differences(project: records.Project, wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if value and value != getattr(project, name)}


def _project(row: Row[Any]) -> records.Project:
    return records.Project(
        key=row.key,
        label_studio_id=row.label_studio_id,
        title=row.title,
        label_config=row.label_config,
        version=row.version,
        settings=json.loads(row.settings),
    )

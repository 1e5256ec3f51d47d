"""The tables. One declaration for SQLite and PostgreSQL; `migrations/` creates exactly these (a test compares them).

Invariants
- Times are integer microseconds since the epoch, UTC; JSON is ASCII text, so that no NUL or lone surrogate from a
  client can make a write fail.
- A row of `votes` is one *revision*. `ended_at` is null while Label Studio still has it (the row is live); of the live
  rows of one (unit, annotator, control) exactly one has `is_current`. Ended rows are the history and are never deleted.
- `projects.changes` counts stored, changed and removed votes for ever.
- `jobs.slot` is unique where it is set: "queued:<kind>:<project>" lets at most one replaceable job wait and
  "running:<kind>:<project>" lets at most one job run, on both databases and without table locks.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator

HEAD = "0011"  # the newest migration; a database that is already there is opened without loading Alembic


class SafeText(TypeDecorator[str]):
    """Text in which NUL and lone surrogates, which no database stores, become U+FFFD on the way in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect | None) -> str | None:
        """A value on its way into the database."""
        if value is None:
            return None
        text_value = str(value)
        if not text_value.isascii():
            text_value = text_value.encode("utf-8", "replace").decode("utf-8")
        return text_value.replace("\x00", "\ufffd") if "\x00" in text_value else text_value


_SAFE = SafeText()


def as_stored(value: str) -> str:
    """A text as the database will give it back, so that a comparison with what is stored tells the truth."""
    return _SAFE.process_bind_param(value, None) or ""


BigKey = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only for plain INTEGER

_LIVE = text("ended_at IS NULL")
_CUT_OFF = text("interrupted_at IS NOT NULL")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_name)s",
    }
)


def _project(*, primary_key: bool = False) -> Column[int]:
    key = ForeignKey("projects.id")
    return Column("project_id", BigKey, key, nullable=False, primary_key=primary_key, autoincrement=False)


def _task() -> Column[int]:
    return Column("task_id", BigInteger, primary_key=True, autoincrement=False)


projects = Table(
    "projects",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    Column("key", String(64), nullable=False, unique=True),
    Column("label_studio_id", BigInteger, nullable=False, index=True),
    Column("created_epoch", BigInteger, nullable=False),
    Column("title", SafeText, nullable=False),
    Column("label_config", SafeText, nullable=False),
    Column("version", String(64)),
    Column("settings", Text, nullable=False),
    Column("changes", BigInteger, nullable=False),
    Column("last_change", BigInteger),
    Column("cursor_time", BigInteger),
    Column("cursor_id", BigInteger, nullable=False),
    Column("last_sweep", BigInteger),
    Column("sweep_wanted", BigInteger),
    Column("last_reread", BigInteger),
    Column("reread_wanted", BigInteger),
    Column("reread_begun", BigInteger),
    Column("reread_after", BigInteger, nullable=False, server_default="0"),
    Column("last_success", BigInteger),
    Column("last_error", SafeText, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("version_floor", Integer, nullable=False, server_default="0"),
)

tasks = Table(
    "tasks",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("data", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("deleted_at", BigInteger),
)

raw_annotations = Table(
    "annotations",
    metadata,
    _project(primary_key=True),
    Column("annotation_id", BigInteger, primary_key=True, autoincrement=False),
    Column("task_id", BigInteger, nullable=False),
    Column("annotator", SafeText, nullable=False),
    Column("result", Text, nullable=False),
    Column("was_cancelled", Boolean, nullable=False),
    Column("ground_truth", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("lead_time_s", Float),
    Column("imported", Boolean, nullable=False),
    Column("parent_prediction", BigInteger),
    Column("deleted_at", BigInteger),
    Index("ix_annotations_task", "project_id", "task_id"),
)

votes = Table(
    "votes",
    metadata,
    Column("id", BigKey, primary_key=True, autoincrement=True),
    _project(),
    Column("task_id", BigInteger, nullable=False),
    Column("unit", SafeText, nullable=False),
    Column("annotation_id", BigInteger, nullable=False),
    Column("annotator", SafeText, nullable=False),
    Column("control", SafeText, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("value", Text, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("lead_time_s", Float),
    Column("provenance", SmallInteger, nullable=False),
    Column("shown", Boolean, nullable=False),
    Column("control_arm", Boolean, nullable=False),
    Column("is_current", Boolean, nullable=False),
    Column("stored_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Index("ix_votes_live", "project_id", "task_id", sqlite_where=_LIVE, postgresql_where=_LIVE),
    Index("ix_votes_annotator", "project_id", "annotator", sqlite_where=_LIVE, postgresql_where=_LIVE),
)

annotators = Table(
    "annotators",
    metadata,
    _project(primary_key=True),
    Column("annotator", SafeText, primary_key=True),
    Column("name", SafeText, nullable=False),
)

dirty = Table(
    "dirty",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("sequence", BigInteger, nullable=False),
    Index("ix_dirty_sequence", "project_id", "sequence"),
)

arm_log = Table(
    "arm_log",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("annotator", SafeText, primary_key=True),
    Column("version", String(128), nullable=False),
    Column("logged_at", BigInteger, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(36), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("project", String(64), nullable=False),
    Column("payload", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("slot", String(128), unique=True),
    Column("progress", Float, nullable=False),
    Column("note", SafeText, nullable=False),
    Column("error", SafeText, nullable=False),
    Column("figures", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("not_before", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("lease_until", BigInteger),
    Column("lease_owner", String(255), nullable=False),
    Column("interrupted_at", BigInteger),
    Index("ix_jobs_due", "state", "not_before"),
    Index("ix_jobs_project", "project", "created_at"),
    Index("ix_jobs_kind", "project", "kind", "created_at"),
    Index("ix_jobs_interrupted", "project", "interrupted_at", sqlite_where=_CUT_OFF, postgresql_where=_CUT_OFF),
)

versions = Table(
    "versions",
    metadata,
    _project(primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", String(64), nullable=False),
    Column("path", Text, nullable=False),
    Column("verdict", String(16), nullable=False),
    Column("reason", SafeText, nullable=False),
    Column("figures", Text, nullable=False),
    Column("changes", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

deliveries = Table(
    "deliveries",
    metadata,
    _project(primary_key=True),
    Column("started_at", BigInteger, primary_key=True, autoincrement=False),
    Column("version", String(128), nullable=False),
    Column("step", String(16), nullable=False),
    Column("finished_at", BigInteger),
    Column("imported_through", BigInteger, nullable=False),
    Column("figures", Text, nullable=False),
)

own_predictions = Table(
    "own_predictions",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("annotator", SafeText, primary_key=True),
    Column("version", String(128), nullable=False),
    Column("digest", String(128), nullable=False),
)

shown = Table(
    "shown",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("shown_at", BigInteger, nullable=False),
)

findings = Table(
    "findings",
    metadata,
    _project(primary_key=True),
    Column("check_name", String(32), primary_key=True),
    Column("sentences", Text, nullable=False),
    Column("found_at", BigInteger, nullable=False),
)

notices = Table(
    "notices",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("sentence", Text, nullable=False),
    Column("noticed_at", BigInteger, nullable=False),
)

annotator_tokens = Table(
    "annotator_tokens",
    metadata,
    Column("scope", String(64), primary_key=True),  # project key, "" for all projects
    Column("annotator", SafeText, primary_key=True),
    Column("email", SafeText, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("added_at", BigInteger, nullable=False),
    Column("problem", SafeText, nullable=False),
)

drafts = Table(
    "drafts",
    metadata,
    _project(primary_key=True),
    _task(),
    Column("annotator", SafeText, primary_key=True),
    Column("draft_id", BigInteger),
    Column("version", String(64), nullable=False),
    Column("digest", String(128), nullable=False),
    Column("written", String(128), nullable=False),
    Column("pending", String(128), nullable=False),
    Column("updated_at", String(64), nullable=False),
    Column("theirs", Boolean, nullable=False),
)

statistics = Table(
    "statistics",
    metadata,
    _project(primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("part", SafeText, primary_key=True),  # the annotator of a profile, else ""
    Column("version", String(64), nullable=False),
    Column("body", Text, nullable=False),
)

checks = Table(
    "checks",
    metadata,
    _project(primary_key=True),
    Column("unit", SafeText, primary_key=True),
    Column("annotator", SafeText, primary_key=True),
    Column("control", SafeText, primary_key=True),
    Column("value", Text, nullable=False),  # of the vote that was looked at: a changed vote is unchecked again
    Column("verdict", String(16), nullable=False),
    Column("checked_at", BigInteger, nullable=False),
)

instance = Table(
    "instance",
    metadata,
    Column("one", Integer, primary_key=True, autoincrement=False),  # always 1: there is one row
    Column("id", String(32), nullable=False),
    Column("place", Text, nullable=False),  # JSON; [] after a restore
    Column("contested", SafeText, nullable=False),
)

webhook_marks = Table(
    "webhook_marks",
    metadata,
    _project(primary_key=True),
    Column("mark", String(32), nullable=False),
    Column("offered", String(32), nullable=False),
    Column("written_at", BigInteger, nullable=False),
)

"""Brings a database to the newest schema. Safe when several processes open it at once: all steps are one transaction
that others wait for, and whoever comes later finds the work done."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from backend.errors import SettingsError

SCRIPTS = Path(__file__).parent / "migrations"
_LOCK_ID = 7_683_920_115  # any number that others do not use for pg_advisory_xact_lock
_ALEMBIC = threading.Lock()  # Alembic keeps the running migration in module globals


def config() -> Config:
    """Alembic's configuration, made here so that no ini file has to be installed."""
    settings = Config()
    settings.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return settings


def upgrade(connection: Connection) -> None:
    """Run what is missing inside the caller's write transaction."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK_ID})")
    settings = config()
    settings.attributes["connection"] = connection
    with _ALEMBIC:
        _check_is_known(connection, settings)
        command.upgrade(settings, "head")


def _check_is_known(connection: Connection, settings: Config) -> None:
    """Raises SettingsError for a database that a newer Polyvox has changed."""
    known = {each.revision for each in ScriptDirectory.from_config(settings).walk_revisions()}
    there = set(MigrationContext.configure(connection).get_current_heads())
    if there - known:
        raise SettingsError(
            f"The database was written by a newer version of Polyvox (schema {', '.join(sorted(there - known))}). "
            "Update Polyvox, or set POLYVOX_DATA_DIR or DATABASE_URL to another one; nothing was changed."
        )

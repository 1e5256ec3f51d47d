"""Brings a database to the newest schema. Safe when several processes open it at once: all steps are one transaction
that others wait for, and whoever comes later finds the work done."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

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
        command.upgrade(settings, "head")

"""Alembic's entry point. `backend.store.migrate` hands in a connection whose transaction spans all migrations."""

from __future__ import annotations

from alembic import context

from backend.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()

"""The state of Polyvox in SQLite or PostgreSQL: `open_store(url)` gives all that `ports.Store` promises."""

from backend.store.store import SqlStore, open_store

__all__ = ["SqlStore", "open_store"]

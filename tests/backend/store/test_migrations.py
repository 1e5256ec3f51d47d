"""The migrations make exactly the schema that the code declares, once, however many processes open the database."""

import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from backend.errors import SettingsError
from backend.ports import utc_now
from backend.store import open_store
from backend.store.engine import Database, create
from backend.store.migrate import config, upgrade
from backend.store.schema import HEAD, metadata


def test_migrated_database_equals_the_metadata(url: str) -> None:
    store = open_store(url)
    with store.database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        tables = set(inspect(connection).get_table_names())
    assert tables == set(metadata.tables) | {"alembic_version"}
    store.close()


def test_head_is_the_newest_script() -> None:
    assert ScriptDirectory.from_config(config()).get_current_head() == HEAD


def test_partial_index_of_live_votes_was_made(url: str) -> None:
    store = open_store(url)
    with store.database.read() as connection:
        if connection.dialect.name == "sqlite":
            sql = connection.execute(text("SELECT sql FROM sqlite_master WHERE name = 'ix_votes_live'")).scalar()
        else:
            sql = connection.execute(text("SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_votes_live'")).scalar()
    assert "ended_at IS NULL" in str(sql)
    store.close()


def test_projects_of_an_older_database_keep_what_they_have(url: str) -> None:
    database = Database(create(url), utc_now)
    settings = config()
    with database.write() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0003")
        connection.execute(text(
            "INSERT INTO projects (key, label_studio_id, created_epoch, title, label_config, settings, changes,"
            " cursor_id, last_error, failures) VALUES ('7.5', 7, 5, 'old', '<View/>', '{}', 3, 0, '', 0)"
        ))
    database.engine.dispose()
    store = open_store(url)
    assert [project.title for project in store.projects.all()] == ["old"]
    assert store.versions.next_number("7.5") == 1 and store.projects.sync_state("7.5").sweep_wanted is None
    with store.database.write() as connection:
        settings.attributes["connection"] = connection
        command.downgrade(settings, "0003")
    assert "version_floor" not in {column["name"] for column in inspect(store.database.engine).get_columns("projects")}
    store.close()


def test_what_counted_as_read_again_before_rereads_went_in_pieces_does_not_any_more(url: str) -> None:
    database = Database(create(url), utc_now)
    settings = config()
    with database.write() as connection:
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0006")
        connection.execute(text(
            "INSERT INTO projects (key, label_studio_id, created_epoch, title, label_config, settings, changes,"
            " cursor_id, last_error, failures, last_reread, reread_wanted)"
            " VALUES ('7.5', 7, 5, 'old', '<View/>', '{}', 3, 4, '', 0, 1000000, 2000000)"
        ))
    database.engine.dispose()
    store = open_store(url)
    state = store.projects.sync_state("7.5")
    assert (state.last_reread, state.reread_begun, state.reread_after, state.cursor_id) == (None, None, 0, 4)
    assert state.reread_wanted is not None
    store.close()


def test_failed_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    database = Database(create(f"sqlite:///{tmp_path / 'a.sqlite3'}"), utc_now)
    with pytest.raises(RuntimeError, match="power cut"), database.write() as connection:
        upgrade(connection)
        raise RuntimeError("power cut")
    with database.read() as connection:
        assert inspect(connection).get_table_names() == []


def test_a_database_of_a_newer_version_is_refused_in_a_sentence(url: str) -> None:
    store = open_store(url)
    with store.database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()
    with pytest.raises(SettingsError, match=r"written by a newer version of Polyvox \(schema 9999\)"):
        open_store(url)


def test_several_processes_may_open_a_new_database_at_once(url: str) -> None:
    code = (
        "import sys; from backend.store import open_store; s = open_store(sys.argv[1]);"
        "s.projects.ensure('1.5', title='x'); s.close()"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, url], stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0], errors
    store = open_store(url)
    assert [project.key for project in store.projects.all()] == ["1.5"]
    store.close()


def test_sqlite_is_opened_durable(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'deep' / 'folder' / 'a.sqlite3'}")
    with store.database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
    store.close()


@pytest.mark.parametrize("unusable", ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:"])
def test_unusable_url_is_refused_with_a_sentence(unusable: str) -> None:
    with pytest.raises(SettingsError, match="DATABASE_URL"):
        open_store(unusable)

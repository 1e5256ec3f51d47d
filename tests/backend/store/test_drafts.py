"""Annotators' tokens, drafts and findings, and the migration that brings their tables."""

from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import inspect

from backend.errors import NotFound
from backend.ports import utc_now
from backend.records import AnnotatorToken, Draft
from backend.store import SqlStore, open_store
from backend.store.engine import Database, create
from backend.store.migrate import config
from tests.backend.store.samples import KEY, NOON

TOKEN = AnnotatorToken(scope=KEY, annotator="5", email="a@example.com", sealed="gAAA", added_at=NOON)
DRAFT = Draft(task_id=1, annotator="5", draft_id=None, version="r1", digest="d", written="", pending="p")


def test_a_projects_own_token_comes_before_the_one_for_all(store: SqlStore) -> None:
    everywhere = replace(TOKEN, scope="", sealed="all")
    other = replace(TOKEN, scope="", annotator="6", email="b@example.com")
    for token in (TOKEN, everywhere, other, replace(TOKEN, scope="99.1", annotator="7")):
        store.tokens.put(token)
    assert store.tokens.of(KEY) == [TOKEN, other]
    assert store.tokens.of("98.1") == [everywhere, other]
    assert store.tokens.remove(KEY, "5") and not store.tokens.remove(KEY, "5")
    assert store.tokens.of(KEY) == [everywhere, other]
    assert len(store.tokens.all()) == 3


def test_a_token_added_again_takes_the_place_of_the_first_and_its_problem(store: SqlStore) -> None:
    store.tokens.put(TOKEN)
    store.tokens.set_problem(KEY, "5", "refused")
    assert store.tokens.of(KEY)[0].problem == "refused"
    store.tokens.put(replace(TOKEN, sealed="new"))
    assert store.tokens.of(KEY) == [replace(TOKEN, sealed="new")]


def test_drafts_are_kept_by_task_and_annotator(store: SqlStore) -> None:
    store.drafts.put(KEY, DRAFT)
    done = replace(DRAFT, draft_id=40, pending="", written="w", updated_at="2026-11-27T22:21:21.866937Z")
    store.drafts.put(KEY, done)
    other = replace(DRAFT, annotator="6", theirs=True)
    store.drafts.put(KEY, other)
    assert store.drafts.of(KEY) == {(1, "5"): done, (1, "6"): other}
    store.drafts.forget(KEY, [(1, "5"), (2, "5")])
    assert store.drafts.of(KEY) == {(1, "6"): other}
    assert store.drafts.of("9.9") == {}
    with pytest.raises(NotFound):
        store.drafts.put("9.9", DRAFT)


def test_drafts_of_a_task_that_is_gone_are_forgotten(store: SqlStore) -> None:
    store.drafts.put(KEY, DRAFT)
    store.tasks.remove(KEY, [1])
    assert store.drafts.of(KEY) == {}


def test_findings_are_replaced_check_by_check(store: SqlStore) -> None:
    store.projects.set_findings(KEY, "webhooks", ["One.", "Two."])
    store.projects.set_findings(KEY, "aaa", ["Zero."])
    assert store.projects.findings(KEY) == ["Zero.", "One.", "Two."]
    store.projects.set_findings(KEY, "webhooks", [])
    assert store.projects.findings(KEY) == ["Zero."]
    assert store.projects.findings("9.9") == []


def test_a_database_of_the_first_schema_is_taken_along(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'old.sqlite3'}"
    database = Database(create(url), utc_now)
    with database.write() as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0001")
        connection.exec_driver_sql(
            "INSERT INTO projects (key, label_studio_id, created_epoch, title, label_config, settings, changes, "
            "cursor_id, last_error, failures) VALUES ('12.1', 12, 1, 'Old', '<View/>', '{}', 7, 0, '', 0)"
        )
    store = open_store(url)
    assert [(each.key, each.title) for each in store.projects.all()] == [("12.1", "Old")]
    store.drafts.put("12.1", DRAFT)
    assert len(store.drafts.of("12.1")) == 1
    with store.database.write() as connection:
        settings = config()
        settings.attributes["connection"] = connection
        command.downgrade(settings, "0001")
        assert not {"drafts", "annotator_tokens", "findings"} & set(inspect(connection).get_table_names())
    store.close()

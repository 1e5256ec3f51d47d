from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import IntegrityError

from backend.errors import NotFound
from backend.records import Verdict, Version
from backend.store import SqlStore, open_store
from tests.backend.store.samples import KEY, NOON


def version(number: int, verdict: Verdict = Verdict.PUBLISHED, **more: Any) -> Version:
    fields: dict[str, Any] = {
        "project": KEY, "name": f"r{number}", "number": number, "path": f"7/r{number}", "verdict": verdict,
        "reason": "It is better.", "figures": {"votes": 30, "rungs": {"prior": 0.1}}, "changes": 31, "created_at": NOON,
    }
    return Version(**fields | more)


def test_publishing_moves_the_pointer_and_rejecting_does_not(store: SqlStore, url: str) -> None:
    assert store.versions.published(KEY) is None and store.versions.next_number(KEY) == 1
    store.versions.add(version(1))
    store.versions.add(version(2, Verdict.REJECTED))
    assert store.versions.published(KEY) == version(1)
    assert store.versions.next_number(KEY) == 3
    other = open_store(url)  # another process sees it at once
    store.versions.add(version(3))
    project = other.projects.get(KEY)
    assert other.versions.published(KEY) == version(3) and project is not None and project.version == "r3"
    assert [each.number for each in other.versions.recent(KEY, limit=2)] == [3, 2]
    other.close()


def test_numbers_of_an_earlier_life_are_not_given_again(store: SqlStore) -> None:
    store.versions.reserve(KEY, 0)
    assert store.versions.next_number(KEY) == 1
    store.versions.reserve(KEY, 17)
    store.versions.reserve(KEY, 5)
    assert store.versions.next_number(KEY) == 18
    store.versions.add(version(18))
    store.versions.reserve(KEY, 18)
    assert store.versions.next_number(KEY) == 19 and store.versions.next_number("9.9") == 1


def test_reserving_what_is_known_waits_for_no_write_lock(store: SqlStore) -> None:
    store.versions.add(version(3))
    statements: list[str] = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    store.versions.reserve(KEY, 3)
    assert statements and all(statement.startswith(("SELECT", "BEGIN")) for statement in statements)
    assert "BEGIN IMMEDIATE" not in statements


def test_a_number_is_given_once_and_a_refused_version_moves_nothing(store: SqlStore) -> None:
    store.versions.add(version(1))
    with pytest.raises(IntegrityError):
        store.versions.add(version(1, name="other"))
    assert store.versions.published(KEY) == version(1)
    with pytest.raises(NotFound):
        store.versions.add(version(1, project="9.9"))

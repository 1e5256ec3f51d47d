"""Annotators' tokens: whose they are is checked, what is stored is encrypted, nothing tells them."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet, InvalidToken

from backend.errors import ClientError, LabelStudioError, SettingsError
from backend.services.annotator_tokens import KEY_FILE, AnnotatorTokens, make_key_file
from backend.settings import Settings
from backend.store import SqlStore, open_store
from tests.backend.services.desks import Drawer
from tests.backend.services.workshop import NOON

TOKEN = "0123456789abcdef0123456789abcdef01234567-5"
KEY = "7.1764288000"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path / 'polyvox.sqlite3'}")
    yield store
    store.close()


@pytest.fixture
def drawer() -> Drawer:
    return Drawer({TOKEN: "Ann@example.com"})


def tokens(store: SqlStore, drawer: Drawer, folder: Path, **settings: str) -> AnnotatorTokens:
    chosen = Settings(data_dir=folder, **settings)
    return AnnotatorTokens(store=store, settings=chosen, open_desk=drawer.open, clock=lambda: NOON)


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != KEY_FILE)


def test_a_token_is_stored_encrypted_and_can_be_used(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    stored = tokens(store, drawer, tmp_path).add(KEY, " ann@EXAMPLE.com ", TOKEN + "\n")
    assert (stored.annotator, stored.email, stored.added_at) == ("5", "Ann@example.com", NOON)
    (opened,) = tokens(store, drawer, tmp_path).of(KEY)
    assert opened.token == TOKEN and opened.stored == stored
    assert TOKEN.encode() not in everything_written(tmp_path)
    assert TOKEN not in repr(opened) and TOKEN not in repr(stored)


def test_the_key_file_is_its_owners_only(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    service = tokens(store, drawer, tmp_path)
    service.add("", "ann@example.com", TOKEN)
    key = tmp_path / KEY_FILE
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir() if "secret" in path.name} == {KEY_FILE}
    key.chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        service.of(KEY)


def test_the_key_may_come_from_the_environment(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    key = Fernet.generate_key().decode()
    tokens(store, drawer, tmp_path, secret_key=key).add(KEY, "ann@example.com", TOKEN)
    assert not (tmp_path / KEY_FILE).exists()
    assert Fernet(key).decrypt(store.tokens.all()[0].sealed).decode() == TOKEN
    with pytest.raises(SettingsError, match="POLYVOX_SECRET_KEY takes a Fernet key") as refusal:
        Settings(data_dir=tmp_path, secret_key="hunter2")
    assert "hunter2" not in str(refusal.value)


def test_somebody_elses_token_is_refused(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="another account"):
        tokens(store, drawer, tmp_path).add(KEY, "bob@example.com", TOKEN)
    with pytest.raises(LabelStudioError):
        tokens(store, drawer, tmp_path).add(KEY, "ann@example.com", TOKEN[::-1])
    assert store.tokens.all() == [] and not (tmp_path / KEY_FILE).exists()


@pytest.mark.parametrize("nonsense", ["", "  \n", "two words", "a\nb", "x" * 5000, "grün", "a\x00b"])
def test_what_is_no_token_is_not_sent_anywhere(
    store: SqlStore, drawer: Drawer, tmp_path: Path, nonsense: str
) -> None:
    with pytest.raises(ClientError, match="not an access token"):
        tokens(store, drawer, tmp_path).add(KEY, "ann@example.com", nonsense)
    assert drawer.calls == []


@pytest.mark.parametrize("lost", [True, False])
def test_a_changed_key_is_a_problem_that_is_said(
    store: SqlStore, drawer: Drawer, tmp_path: Path, lost: bool
) -> None:
    service = tokens(store, drawer, tmp_path)
    service.add(KEY, "ann@example.com", TOKEN)
    (tmp_path / KEY_FILE).unlink()
    if not lost:
        make_key_file(tmp_path / KEY_FILE, Fernet.generate_key)
    assert service.of(KEY) == []
    assert "cannot be decrypted" in store.tokens.all()[0].problem
    assert lost == (not (tmp_path / KEY_FILE).exists())  # reading makes no key


def test_a_key_file_with_something_else_in_it(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    make_key_file(tmp_path / KEY_FILE, lambda: b"nonsense")
    with pytest.raises(SettingsError, match="does not hold"):
        tokens(store, drawer, tmp_path).add(KEY, "ann@example.com", TOKEN)


def test_the_first_key_stays(tmp_path: Path) -> None:
    make_key_file(tmp_path / "deep" / KEY_FILE, lambda: b"one")
    make_key_file(tmp_path / "deep" / KEY_FILE, lambda: b"two")
    assert (tmp_path / "deep" / KEY_FILE).read_bytes() == b"one\n"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_a_forged_row_is_not_accepted(store: SqlStore, drawer: Drawer, tmp_path: Path) -> None:
    service = tokens(store, drawer, tmp_path)
    stored = service.add(KEY, "ann@example.com", TOKEN)
    with pytest.raises(InvalidToken):
        Fernet(Fernet.generate_key()).decrypt(stored.sealed)
    broken = stored.sealed[:-6] + "AAAAA="
    store.tokens.put(type(stored)(scope=KEY, annotator="5", email="a", sealed=broken, added_at=NOON))
    assert service.of(KEY) == []


def test_nothing_is_logged(
    store: SqlStore, drawer: Drawer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service = tokens(store, drawer, tmp_path)
    service.add(KEY, "ann@example.com", TOKEN)
    service.of(KEY)
    assert TOKEN not in caplog.text

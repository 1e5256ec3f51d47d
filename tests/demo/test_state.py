"""What the demo remembers between runs."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from demo.client import Account
from demo.processes import DemoError
from demo.state import FILE, load


def test_a_fresh_state_has_secrets_of_its_own(tmp_path: Path) -> None:
    one, other = load(tmp_path / "one"), load(tmp_path / "other")
    assert len(one.owner_token) == 40 and int(one.owner_token, 16)
    assert len({one.password, other.password, one.owner_token, other.owner_token, one.webhook_secret}) == 5
    assert len({one.polyvox_password, other.polyvox_password, ""}) == 3
    assert not (tmp_path / "one").exists(), "loading writes nothing"


def test_what_was_saved_comes_back_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    state = load(tmp_path)
    account = Account(id=7, email="simulated.ada@example.com", password="p", token="t", personal_token="r")
    state.annotators, state.project, state.polyvox_port = (account,), 3, 9090
    state.save()
    assert load(tmp_path) == state
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_state_from_before_polyvox_asked_for_a_password_gets_one(tmp_path: Path) -> None:
    load(tmp_path).save()
    path = tmp_path / FILE
    kept = json.loads(path.read_text())
    del kept["polyvox_password"]
    path.write_text(json.dumps(kept))
    user, password = load(tmp_path).polyvox_login or ("", "")
    assert user and len(password) > 8


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"annotators": [{"id": 1}]}', "not json"])
def test_a_damaged_file_is_a_sentence_that_says_how_to_go_on(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(DemoError, match="--fresh"):
        load(tmp_path)

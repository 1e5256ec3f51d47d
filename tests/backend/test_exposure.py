"""Listening where others can reach: refused at the start without a login and a secret, unless a setting says so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backend.errors import ClientError
from backend.exposure import is_local, require_guarded
from backend.queues.children import ROOT
from backend.routes.problems import Workers, of_service
from backend.settings import Settings
from docker.make_env import files
from tests.backend.test_serve import free_port

LOGIN = {"basic_auth_user": "me", "basic_auth_pass": "pass"}
SECRET = {"webhook_secret": "hush"}


@pytest.mark.parametrize("host, local", [
    ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True), ("localhost", True),
    ("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.3", False), ("192.168.1.7", False), ("8.8.8.8", False),
    ("no-such-name.invalid", True),
])
def test_addresses(host: str, local: bool) -> None:
    assert is_local(host) is local


@pytest.mark.parametrize("settings, missing", [
    ({}, "BASIC_AUTH_USER and BASIC_AUTH_PASS and POLYVOX_WEBHOOK_SECRET"), (LOGIN, "without POLYVOX_WEBHOOK_SECRET"),
    (SECRET, "without BASIC_AUTH_USER and BASIC_AUTH_PASS:"), ({**LOGIN, **SECRET}, ""), ({"without_login": True}, ""),
])
def test_a_public_address_wants_both(settings: dict[str, Any], missing: str) -> None:
    chosen = Settings(**settings)
    require_guarded(["127.0.0.1", "localhost"], chosen)
    if not missing:
        require_guarded(["0.0.0.0"], chosen)
        return
    for hosts in (["0.0.0.0"], ["127.0.0.1", "::"]):
        with pytest.raises(ClientError, match=missing) as refused:
            require_guarded(hosts, chosen)
        assert "POLYVOX_WITHOUT_LOGIN=yes" in str(refused.value)


def test_the_status_says_that_there_is_no_login(tmp_path: Path) -> None:
    def said(**settings: Any) -> list[str]:
        found = of_service(Settings(data_dir=tmp_path, **settings), [], None, Workers())  # type: ignore[arg-type]
        return [each for each in found if "no login on a public address" in each]

    assert len(said(without_login=True)) == 1
    assert said() == [] == said(without_login=True, **LOGIN, **SECRET)


def start(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POLYVOX", "BASIC_AUTH"))}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, text=True, timeout=60, capture_output=True,
        env={**kept, "POLYVOX_DATA_DIR": str(folder), "LABEL_STUDIO_URL": "", **env})


@pytest.mark.parametrize("command", [
    ("backend", "serve", "--host", "0.0.0.0", "--port"), ("gunicorn", "_wsgi:app", "--bind"),
], ids=["serve", "gunicorn"])
def test_the_start_is_refused_in_a_sentence(command: tuple[str, ...], tmp_path: Path) -> None:
    port = f"0.0.0.0:{free_port()}" if command[0] == "gunicorn" else str(free_port())
    ended = start(tmp_path / "data", *command, port)
    said = " ".join((ended.stdout + ended.stderr).split())
    assert ended.returncode != 0 and "POLYVOX_WEBHOOK_SECRET" in said and "Traceback" not in said
    assert not (tmp_path / "data").exists()  # nothing was begun


def test_compose_has_both() -> None:
    made = Settings.from_env(files("owner@example.com")["polyvox.env"])
    require_guarded(["0.0.0.0"], made)

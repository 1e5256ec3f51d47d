"""`annotator-token` as a person meets it; Label Studio is a small HTTP server that knows one token."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.cli import main
from backend.records import Draft, JobKind, Verdict, Version
from backend.services.draft_writer import hashed
from backend.store import SqlStore, open_store
from tests.backend.client.server import Answer, Request, Server, serving
from tests.backend.services.workshop import NOON
from tests.backend.small_services import CONFIG

TOKEN = "0123456789abcdef0123456789abcdef01234567"
KEY = "7.1764288000"
RESULT = [{"id": "r1", "origin": "prediction"}]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    store = open_store(f"sqlite:///{tmp_path / 'polyvox.sqlite3'}")
    store.projects.ensure(KEY, label_config=CONFIG)
    yield store
    store.close()


@pytest.fixture
def label_studio() -> Iterator[Server]:
    def answer(request: Request) -> Answer:
        if request.authorization != f"Token {TOKEN}":
            return Answer(status=401, body={})
        if request.path.endswith("/whoami"):
            return Answer(body={"id": 5, "email": "ann@example.com"})
        if request.method == "DELETE":
            return Answer(status=204)
        return Answer(body=[{"id": 40, "user": "ann@example.com", "result": RESULT, "updated_at": "t", "lead_time": 0.0,
                             "was_postponed": False, "annotation": None}])

    with serving(answer) as server:
        yield server


def run(folder: Path, server: Server, *argv: str, **env: str) -> int:
    connection = {"LABEL_STUDIO_URL": server.url, "LABEL_STUDIO_API_KEY": "service", "POLYVOX_MIDDLEWARE": "no"}
    return main(["annotator-token", *argv], {"POLYVOX_DATA_DIR": str(folder), **connection, **env})


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_add_list_and_remove(
    store: SqlStore, label_studio: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store.versions.add(Version(project=KEY, name="r1", number=1, path="x", verdict=Verdict.PUBLISHED, reason="",
                               figures={}, changes=1, created_at=NOON))
    type_in(monkeypatch, TOKEN + "\n")
    assert run(tmp_path, label_studio, "add", "7", "Ann@example.com") == 0
    said = capsys.readouterr()
    assert said.out == "The token of ann@example.com is stored, encrypted, for project 7.\n"
    assert store.jobs.pending(KEY, JobKind.DELIVER) is not None, "its drafts come at once"
    store.drafts.put(KEY, Draft(task_id=3, annotator="5", draft_id=40, version="r1", digest="d",
                                written=hashed(RESULT), updated_at="t"))
    store.drafts.put(KEY, Draft(task_id=4, annotator="5", draft_id=40, version="r1", digest="d", written="other"))

    assert run(tmp_path, label_studio, "list") == 0
    assert "ann@example.com: project 7, since " in (listed := capsys.readouterr().out) and TOKEN not in listed

    assert run(tmp_path, label_studio, "remove", "7", "ann@example.com") == 0
    said = capsys.readouterr()
    assert "1 untouched drafts were taken back, 1 were left" in said.out and "is forgotten" in said.out
    assert label_studio.paths().count("DELETE /api/drafts/40/") == 1
    assert store.tokens.all() == []
    assert run(tmp_path, label_studio, "remove", "7", "ann@example.com") == 1
    assert run(tmp_path, label_studio, "list") == 0
    assert capsys.readouterr().out == "No annotator gave a token.\n"


def test_a_token_from_a_file_for_all_projects(
    store: SqlStore, label_studio: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    assert run(tmp_path, label_studio, "add", "--all", "ann@example.com", "--file", str(tmp_path / "token"),
               POLYVOX_MIDDLEWARE="yes") == 0
    said = capsys.readouterr().out
    assert "for all projects" in said and "Project 7 makes no drafts while POLYVOX_MIDDLEWARE is yes" in said
    assert [each.scope for each in store.tokens.all()] == [""]
    assert store.jobs.pending(KEY, JobKind.DELIVER) is None


@pytest.mark.parametrize("argv, sentence", [
    (["add", "7", "ann@example.com"], "Label Studio refuses the annotator's token (401)"),
    (["add", "ann@example.com"], "Name either a project or --all"),
    (["add", "7", "ann@example.com", "--all"], "Name either a project or --all"),
    (["add", "8", "ann@example.com"], "There is no project 8 here"),
    (["add", "--all", "ann@example.com", "--file", "/nowhere"], "No such file"),
    (["remove", "--all", "bob@example.com"], "There is no token of bob@example.com for all projects"),
])
def test_what_does_not_work_is_a_sentence(
    store: SqlStore, label_studio: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], argv: list[str], sentence: str,
) -> None:
    type_in(monkeypatch, "wrong-token")
    assert run(tmp_path, label_studio, *argv) == 1
    error = capsys.readouterr().err
    assert sentence in error and "Traceback" not in error and "wrong-token" not in error
    assert store.tokens.all() == []


def test_a_token_is_never_an_argument(
    store: SqlStore, label_studio: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(tmp_path, label_studio, "add", "7", "ann@example.com", TOKEN)
    assert left.value.code == 2


def test_a_token_is_forgotten_even_if_label_studio_is_away(
    store: SqlStore, label_studio: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    type_in(monkeypatch, TOKEN)
    assert run(tmp_path, label_studio, "add", "7", "ann@example.com") == 0
    store.drafts.put(KEY, Draft(task_id=3, annotator="5", draft_id=40, version="r1", digest="d", written="w"))
    assert run(tmp_path, label_studio, "remove", "7", "ann@example.com", LABEL_STUDIO_URL="http://127.0.0.1:9") == 0
    assert "Drafts stay in Label Studio: Label Studio cannot be reached" in capsys.readouterr().out
    assert store.tokens.all() == []

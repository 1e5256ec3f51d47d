"""`explain`: a table, and files that need nothing else, over a version that was really trained."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from backend.bootstrap import Services, build_services
from backend.cli import main
from backend.commands import explain as command
from backend.errors import MediaError
from backend.ports import utc_now
from backend.report.explanations.file import as_html, as_picture
from backend.report.links import Links
from backend.report.names import Names
from backend.report.pages import Look
from backend.settings import Settings
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import KEY, fill, snapshot
from tests.backend.services.workshop import HASTY, workshop
from tests.backend.web.explanations import made_up

EVIL = "kindly <script>window.stolen=1</script> \"'& team"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explain")
    shop = workshop(folder, ladder=HASTY)
    fill(shop.store)
    shop.train()
    shop.store.votes.set_names(KEY, {"1": "ann@example.org"})
    shop.store.tasks.take_over(KEY, [snapshot(900, EVIL)])
    shop.close()
    return folder


@pytest.fixture(autouse=True)
def own_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(settings: Settings) -> Services:
        return build_services(settings, encoder=WordHashEncoder())

    monkeypatch.setattr(command, "build_services", build)
    monkeypatch.setenv("COLUMNS", "250")


def run(folder: Path, *argv: str, **env: str) -> int:
    return main(["explain", "7", *argv], {"POLYVOX_DATA_DIR": str(folder), **env})


def test_a_table_of_what_answers_rest_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--task", "1") == 0
    shown = capsys.readouterr().out
    assert "ann@example.org" in shown and "rests on" in shown and "politeness" in shown
    assert run(folder, "--task", "1", "--annotator", "ann@example.org", "--annotator", "3") == 0
    assert len(capsys.readouterr().out.strip().splitlines()) == 3


def test_a_file_that_needs_nothing_else_and_runs_nothing(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.html"
    assert run(folder, "--task", "900", "-o", str(out)) == 0  # a task that nobody has encoded yet
    page = out.read_text(encoding="utf-8")
    assert "What matters" in page and "Where they look" in page and "ann@example.org" in page
    assert "<script" not in page and "&lt;script&gt;" in page and "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    assert re.findall(r' (?:style|on\w+)="', page) == []


def test_data(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "why.json"
    assert run(folder, "--task", "1", "-o", str(out), POLYVOX_MASK_NAMES="yes") == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["task"] == 1 and found["complete"]
    assert [each["annotator"] for each in found["annotators"]] == ["annotator-1", "annotator-2", "annotator-3"]


@pytest.mark.parametrize("argv, words", [
    (["--task", "777"], "no task 777"), (["--task", "1", "--annotator", "nobody"], "no annotator nobody"),
    (["--task", "1", "-o", "why.pdf"], "--out takes a name that ends in .html"),
    (["--task", "1", "-o", "why.png"], "Task 1 has no image 0"),
    (["--task", "1", "-o", "why.png", "--control", "other"], "no control other")])
def test_what_cannot_be_is_a_sentence(
    folder: Path, argv: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(folder, *argv) == 1
    assert words in capsys.readouterr().err and not list(tmp_path.iterdir())


def picture(piece: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (90, 60), "green").save(out, "PNG")
    return out.getvalue()


def gone(piece: int) -> bytes:
    raise MediaError("The host answered 404 for the file.")


@pytest.mark.parametrize("read", [picture, gone])
def test_overlays_side_by_side_even_of_a_lost_picture(read: object) -> None:
    document = made_up(KEY, 1, "a b c d", ["1", "2", "3"])
    names = Names({"1": "Ann", "2": "Bo", "3": "سارا"}, mask=False)
    for way, panels in (("attribution", 3), ("attention", 4)):
        made = as_picture(document, names, control="politeness", way=way, piece=0, picture=read)  # type: ignore[arg-type]
        shown = np.asarray(Image.open(io.BytesIO(made)))
        assert shown.shape[1] == 12 + panels * 332


def test_pictures_are_in_the_file() -> None:
    document = made_up(KEY, 1, "a b c d", ["1", "2"])
    shown = SimpleNamespace(title="Politeness", label_studio_id=7)
    look = Look(project=shown, names=Names({}, mask=False), links=Links(project=7, label_studio=""),  # type: ignore[arg-type]
                texts=lambda tasks: {})
    page = as_html(look, document, picture=picture, at=utc_now())
    inside = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert len(inside) == 2 + 3
    assert {Image.open(io.BytesIO(base64.b64decode(each))).size for each in inside} == {(320, 213)}

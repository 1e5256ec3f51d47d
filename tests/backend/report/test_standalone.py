"""The report file and the blind project, by their commands: self-contained, small, masked when asked."""

from __future__ import annotations

import json
import logging
import re
from html.parser import HTMLParser

import pytest

from backend.cli import main
from backend.store import open_store
from tests.backend.web.site_documents import NUMBER, Writer

MOST_BYTES = 5_000_000


@pytest.fixture
def run(tmp_path):
    """Runs a command over a project in a data folder of its own."""
    def go(writer, *arguments, gaps=True, **env):
        store = open_store(f"sqlite:///{tmp_path / 'polyvox.sqlite3'}")
        if writer is not None:
            writer.write(store, gaps=gaps, documents=env.pop("documents", True))
        store.close()
        settings = {"POLYVOX_DATA_DIR": str(tmp_path), "LABEL_STUDIO_URL": "http://localhost:8080",
                    "LABEL_STUDIO_API_KEY": "k", **env}
        return main([str(each) for each in arguments], settings)

    yield go
    root = logging.getLogger()  # the command's handler writes to a stream that ends with the test
    for handler in [each for each in root.handlers if each.get_name() == "polyvox"]:
        root.removeHandler(handler)


class Outside(HTMLParser):
    """Everything that a file would fetch or run, where its links go, and its ids."""

    def __init__(self):
        super().__init__()
        self.fetched, self.links, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        about = dict(attrs)
        if tag in ("script", "img", "link", "iframe", "form", "object") or "src" in about or "style" in about:
            self.fetched.append((tag, about))
        if tag == "a":
            self.links.append(about["href"])
        if "id" in about:
            self.ids.append(about["id"])


@pytest.mark.parametrize("writer", [Writer(tasks=10_000, annotators=20), Writer(tasks=60, annotators=500),
                                    Writer(evil=True)], ids=["tasks", "annotators", "evil"])
def test_the_report_stands_alone(writer, run, tmp_path):
    out = tmp_path / "report.html"
    assert run(writer, "report", NUMBER, "-o", out) == 0
    page = out.read_text(encoding="utf-8")
    assert len(page.encode()) < MOST_BYTES
    found = Outside()
    found.feed(page)
    assert found.fetched == []
    assert len(found.ids) == len(set(found.ids))
    for link in found.links:
        assert (link.startswith("#") and link[1:] in found.ids) or link.startswith("http://localhost:8080/projects/12/")
    assert "url(" not in page and "@import" not in page
    for part in ("Overview", "Annotators", "Hardest tasks", "Most divided tasks", "Flags", "Gaps"):
        assert part in page


def test_a_masked_report_names_nobody(run, tmp_path):
    out = tmp_path / "report.html"
    assert run(Writer(), "report", NUMBER, "-o", out, "--mask-names") == 0
    page = out.read_text(encoding="utf-8")
    assert "example.org" not in page and "Annotator 1" in page and "Names are masked" in page
    assert not re.search(r'href="#profile-\d', page)


def test_a_blind_project_can_be_imported(run, tmp_path):
    out = tmp_path / "blind.json"
    assert run(Writer(), "export-blind", NUMBER, "-o", out, "--tasks", 6) == 0
    tasks = json.loads(out.read_text(encoding="utf-8"))
    assert len(tasks) == 6 and all(set(task) == {"data", "meta"} for task in tasks)
    assert "example.org" not in out.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments, words", [
    (("report", NUMBER, "-o", "{}/report.txt"), "ends in .html"),
    (("report", 99, "-o", "{}/report.html"), "no project 99"),
    (("export-blind", NUMBER, "-o", "{}/blind.csv"), "ends in .json"),
    (("export-blind", NUMBER, "-o", "{}/blind.json", "--tasks", 0), "at least 1"),
    (("export-blind", NUMBER, "-o", "{}/blind.json", "--control", "x"), "control takes")])
def test_what_cannot_be_written_is_said(arguments, words, run, tmp_path, capsys):
    paths = [str(each).format(tmp_path) for each in arguments]
    assert run(Writer(), *paths) == 1
    assert words in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".html", ".json", ".txt", ".csv", ".part")]


def test_a_project_without_figures_has_no_report(run, tmp_path, capsys):
    assert run(Writer(), "report", NUMBER, "-o", tmp_path / "report.html", documents=False) == 1
    assert "There are no figures of this project yet" in capsys.readouterr().err

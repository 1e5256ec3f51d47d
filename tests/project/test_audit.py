"""The audit of pinned versions, on made-up advisories: what is affected is found, and nothing is passed over."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from scripts.audit import ROOT, affects, main, pins

RANGE = [{"introduced": "0"}, {"fixed": "1.2"}, {"introduced": "2.0"}, {"last_affected": "2.3"}]


def made_up(**about: Any) -> dict[str, Any]:
    package = {"ecosystem": "PyPI", "name": "Some.Package"}
    affected = {"package": package, "ranges": [{"type": "ECOSYSTEM", "events": RANGE}], "versions": ["3.1", "odd"]}
    return {"id": "TEST-1", "modified": "2026-11-01T00:00:00Z", "summary": "Bad.", "affected": [affected], **about}


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text('# Some.\n-r other.txt\nsome_package==1.1; sys_platform == "linux"\nother==9 --hash=sha256:ab\n')
    return file


@pytest.mark.parametrize("version, affected", [
    ("0.1", True), ("1.1.9", True), ("1.2", False), ("1.2rc1", True), ("1.9", False), ("2.0", True), ("2.3", True),
    ("2.3.1", False), ("3.1", True), ("3.1.0", True), ("3.2", False)])
def test_ranges(version: str, affected: bool) -> None:
    assert affects(made_up(), "some-package", Version(version)) is affected
    assert not affects(made_up(), "another", Version(version))
    assert not affects(made_up(withdrawn="2026-11-02T00:00:00Z"), "some-package", Version(version))


@pytest.mark.parametrize("how", ["file", "list", "folder", "archive"])
def test_a_pinned_version_that_is_affected_ends_with_1(
    how: str, requirements: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "advisories"
    folder.mkdir()
    given = folder / "TEST-1.json"
    given.write_text(json.dumps([made_up()] if how == "list" else made_up()))
    if how == "archive":
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            archive.write(given, given.name)
        given = tmp_path / "all.zip"
    assert main([str(folder if how == "folder" else given)], [requirements]) == 1
    said = capsys.readouterr().out
    assert "some-package 1.1 (requirements.txt): TEST-1 Bad." in said
    assert "2 pinned versions, 1 findings; 1 advisories, the newest of 2026-11-01" in said


def test_nothing_affected_ends_with_0(requirements: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    file.write_text(json.dumps(made_up(affected=[])))
    assert main([str(file)], [requirements]) == 0


@pytest.mark.parametrize("content", ["{", "[]", "{}", '[{"id": 1}]', None])
def test_what_cannot_be_compared_ends_with_2(
    content: str | None, requirements: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "one.json"
    if content is not None:
        file.write_text(content)
    assert main([str(file)], [requirements]) == 2
    assert capsys.readouterr().err.strip().endswith(".")


def test_our_own_requirements_can_be_read() -> None:
    found = {name for name, _ in pins(sorted(ROOT.glob("requirements*.txt")))}
    assert {"flask", "torch", "label-studio", "label-studio-ml", "packaging"} <= found


def test_a_pin_that_is_none_is_no_silence(tmp_path: Path) -> None:
    loose = tmp_path / "requirements.txt"
    loose.write_text("flask>=3\n")
    (tmp_path / "one.json").write_text(json.dumps(made_up()))
    assert main([str(tmp_path / "one.json")], [loose]) == 2

"""What the README and the docs say of files, settings and commands is what the project has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md"))]


def test_file_map_and_settings_table_are_current() -> None:
    command = [sys.executable, "scripts/update_readme.py", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, "run `python scripts/update_readme.py`\n" + check.stderr


def test_label_types_are_current() -> None:
    command = [sys.executable, "scripts/update_label_types.py", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, "run `python scripts/update_label_types.py`\n" + check.stderr


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_make_target_that_is_named_exists(document: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z0-9-]+)|`make ([a-z0-9-]+)", (ROOT / document).read_text(), flags=re.MULTILINE))
    assert {one or other for one, other in named} <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_linked_file_exists(document: str) -> None:
    path = ROOT / document
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_readme_names_the_two_commands_and_links_every_page_of_the_docs() -> None:
    assert "make demo" in README and "make test" in README
    assert [page.name for page in (ROOT / "docs").glob("*.md") if f"docs/{page.name}" not in README] == []


def test_label_config_of_the_readme_is_modelled() -> None:
    from backend.labeling import parse_config

    configs = re.findall(r"```xml\n(.*?)```", README, flags=re.DOTALL)
    assert configs
    for xml in configs:
        config = parse_config(xml)
        assert config.controls and not config.unmodelled

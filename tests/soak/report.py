"""What a part found, as JSON in a folder, and the report that joins them.

A part is held when everything that was judged is. Parts may come from different days and machines; each says its own.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ORDER = ("requests", "load", "hostile", "faults", "chaos", "images")
BEGUN_LOAD = os.getloadavg()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One thing that must hold."""

    what: str
    found: str
    wanted: str
    held: bool

    @classmethod
    def of(cls, what: str, found: object, wanted: str, held: bool) -> Judged:
        """`found` as people read it."""
        return cls(what=what, found=f"{found:,}" if isinstance(found, int) else str(found), wanted=wanted, held=held)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a run."""

    name: str
    judged: Sequence[Judged]
    about: str  # what was done, in sentences
    tables: Sequence[str]  # Markdown
    seconds: float
    made: str
    commit: str
    machine: str

    @classmethod
    def made_now(
        cls, name: str, judged: Sequence[Judged], *, about: str, tables: Sequence[str], seconds: float,
    ) -> Part:
        """With the date, the commit and the machine of this moment."""
        first, last = (", ".join(f"{each:.1f}" for each in load) for load in (BEGUN_LOAD, os.getloadavg()))
        machine = (f"{os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()}), load {first} "
                   f"at the start, {last} at the end")
        return cls(name=name, judged=judged, about=about, tables=tables, seconds=round(seconds, 1), machine=machine,
                   made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), commit=_commit())

    @property
    def held(self) -> bool:
        """Whether all of it did."""
        return bool(self.judged) and all(each.held for each in self.judged)

    def write(self, folder: Path) -> None:
        """As FOLDER/NAME.json."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.name}.json").write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> list[Part]:
    """The parts of a folder. Raises OSError and ValueError for one that cannot be read."""
    found = [_part(json.loads(path.read_text(encoding="utf-8"))) for path in folder.glob("*.json")]
    return sorted(found, key=lambda part: (ORDER.index(part.name) if part.name in ORDER else len(ORDER), part.name))


def _part(raw: dict[str, Any]) -> Part:
    return Part(**{**raw, "judged": [Judged(**each) for each in raw["judged"]]})


def markdown(parts: Sequence[Part]) -> str:
    """The whole report."""
    rows = [(part.name, verdict(part.held), f"{sum(each.held for each in part.judged)} of {len(part.judged)}",
             part.made, part.commit, f"{part.seconds / 60:.0f} min") for part in parts]
    missing = [name for name in ORDER if name not in {part.name for part in parts}]
    return "\n\n".join([
        "# Soak",
        "Long runs of bad input and load against real processes: `make soak`, or a part of it by `python -m tests.soak "
        "PART`. What each part does and what must hold: docs/reliability.md.",
        table(("part", "", "judgements held", "made", "commit", "took"), rows),
        *([f"Not run: {', '.join(missing)}."] if missing else []),
        *map(_chapter, parts),
    ]) + "\n"


def _chapter(part: Part) -> str:
    rows = [(each.what, each.found, each.wanted, verdict(each.held)) for each in part.judged]
    return "\n\n".join([
        f"## {part.name}: {verdict(part.held)}", f"{part.about} Made {part.made} at {part.commit} on {part.machine}.",
        table(("", "found", "wanted", ""), rows), *part.tables,
    ])


def verdict(held: bool) -> str:
    """In a word."""
    return "held" if held else "**not held**"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(each) for each in line) + " |" for line in lines)


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    printable = "".join(each if each.isprintable() else "\ufffd" for each in text)
    return printable.replace("|", "\\|").replace("<", "&lt;")


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = " and changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short", "HEAD") or "an unknown commit") + changed

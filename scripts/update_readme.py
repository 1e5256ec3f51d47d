"""Rewrites the generated parts of the docs: the map of packages in README.md, docs/map.md and docs/settings.md.

The map is the first sentence of each module's docstring, so a file explains itself in one place only. A test fails when
one of them is stale. Usage: python scripts/update_readme.py [--check]
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("backend", "model", "labelstudio", "demo", "benchmarks")


def first_sentence(path: Path) -> str:
    """The first sentence of a module's docstring on one line; raises ValueError when there is none."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not docstring:
        raise ValueError(f"{path.relative_to(ROOT)} has no docstring")
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s(?=[A-Z`])", paragraph)[0].rstrip(".")


def folders() -> Iterator[tuple[str, str, list[Path]]]:
    """Every folder with code: its path, what it is, its modules."""
    for package in PACKAGES:
        for folder in sorted({path.parent for path in (ROOT / package).rglob("*.py")}):
            inside = sorted(path for path in folder.glob("*.py") if path.read_text(encoding="utf-8").strip())
            modules = [path for path in inside if path.name != "__init__.py"]
            title = first_sentence(folder / "__init__.py") if folder / "__init__.py" in inside else ""
            if "migrations" not in folder.parts and (modules or title):
                yield folder.relative_to(ROOT).as_posix() + "/", title, modules


def package_map() -> str:
    """Every folder, one line each."""
    return "\n".join(["```", *(f"{folder:<31} {title}".rstrip() for folder, title, _ in folders()), "```"])


def file_map() -> str:
    """Every Python module of the project, one line each, under its folder."""
    lines = []
    for folder, title, modules in folders():
        lines += [f"{folder:<35} {title}".rstrip()]
        lines += [f"    {path.name:<32}{first_sentence(path)}" for path in modules]
    return "\n".join(["```", *lines, "```"])


def settings_table() -> str:
    """The table that `backend.settings` makes of itself."""
    sys.path.insert(0, str(ROOT))
    from backend.settings import settings_table as table

    return table()


PARTS = (
    ("README.md", "map", package_map),
    ("docs/map.md", "map", file_map),
    ("docs/settings.md", "settings", settings_table),
)


def rendered(text: str, name: str, make: Callable[[], str]) -> str:
    """The text of a document with one generated part renewed."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{make().strip()}\n{end}{after}"


def main() -> int:
    stale = False
    for document, name, make in PARTS:
        path = ROOT / document
        old = path.read_text(encoding="utf-8")
        new = rendered(old, name, make)
        stale |= old != new
        if "--check" not in sys.argv and old != new:
            path.write_text(new, encoding="utf-8")
    return int(stale and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())

"""Rewrites the generated parts of README.md: the file map and the settings table. A test fails when they are stale.

The map is the first sentence of each module's docstring, so a file explains itself in one place only.
Usage: python scripts/update_readme.py [--check]
"""

from __future__ import annotations

import ast
import re
import sys
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


def file_map() -> str:
    """Every Python module of the project, one line each, as an indented tree."""
    lines = ["```"]
    for package in PACKAGES:
        for folder in sorted({path.parent for path in (ROOT / package).rglob("*.py")}):
            inside = sorted(path for path in folder.glob("*.py") if path.read_text(encoding="utf-8").strip())
            modules = [path for path in inside if path.name != "__init__.py"]
            title = first_sentence(folder / "__init__.py") if folder / "__init__.py" in inside else ""
            if "migrations" in folder.parts or not (modules or title):
                continue
            lines.append(f"{folder.relative_to(ROOT).as_posix() + '/':<36}{title}".rstrip())
            lines += [f"    {path.name:<32}{first_sentence(path)}" for path in modules]
    return "\n".join([*lines, "```"])


def settings_table() -> str:
    """The table that `backend.settings` makes of itself."""
    sys.path.insert(0, str(ROOT))
    from backend.settings import settings_table as table

    return table()


def rendered(readme: str) -> str:
    """README text with both generated parts renewed."""
    for name, make in (("map", file_map), ("settings", settings_table)):
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        before, rest = readme.split(begin)
        after = rest.split(end)[1]
        readme = f"{before}{begin}\n{make().strip()}\n{end}{after}"
    return readme


def main() -> int:
    path = ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = rendered(old)
    if "--check" in sys.argv:
        return int(old != new)
    path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

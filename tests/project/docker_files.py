"""Reads Dockerfiles and .dockerignore as far as the tests need it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Stage:
    """One FROM and what follows it: (instruction, its text)."""

    base: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [text for name, text in self.lines if name == instruction]

    def last(self, instruction: str) -> str:
        return self.all(instruction)[-1]

    def env(self) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S+)", " ".join(self.all("ENV"))))

    def copied(self) -> list[tuple[str, str]]:
        """(source, destination) of what comes out of the repository."""
        pairs = []
        for text in self.all("COPY"):
            if not text.startswith("--from"):
                *sources, target = text.split()
                pairs += [(source, target) for source in sources]
        return pairs


def stages(path: Path) -> list[Stage]:
    text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    found: list[Stage] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            found.append(Stage(rest.split()[0]))
        elif found:
            found[-1].lines.append((name, rest.strip()))
    return found


def words(text: str) -> list[str]:
    """The words of ENTRYPOINT, CMD or a health check in its exec form."""
    listed = json.loads(text[text.index("[") :])
    assert all(isinstance(word, str) for word in listed)
    return list(listed)


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a file out of the build; the last rule that fits holds."""
    out = False
    for rule in (ROOT / ".dockerignore").read_text().splitlines():
        if not rule or rule.startswith("#"):
            continue
        keep, pattern = rule.startswith("!"), rule.lstrip("!")
        names = [path, *(str(parent) for parent in Path(path).parents if str(parent) != ".")]
        patterns = [pattern, pattern.removeprefix("**/")] if pattern.startswith("**/") else [pattern]
        last = [Path(name).name for name in names] if pattern.startswith("**/") else names
        if any(fnmatch(name, each) for name in last for each in patterns):
            out = not keep
    return out

"""Compares the versions that the requirements files pin with security advisories in the OSV format.

Usage: python -m scripts.audit ADVISORIES... (JSON files, folders of them, or the archive of osv.dev for PyPI).
Ends with 1 when a pinned version is affected, with 2 when nothing could be compared. Nothing is fetched.
The format: https://ossf.github.io/osv-schema/; of its ranges, PyPI has those of the type ECOSYSTEM.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
Advisory = Mapping[str, Any]


class AuditError(Exception):
    """Nothing can be compared; the sentence says what to do."""


def pins(files: Iterable[Path]) -> dict[tuple[str, Version], str]:
    """(package, version) -> the file that pins it. Raises AuditError where a line pins no exact version."""
    found = {}
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            text = re.split(r"\s--|\s#|^#", line)[0].strip()
            if not text or text.startswith("-"):
                continue
            try:
                requirement = Requirement(text)
                (exact,) = [each.version for each in requirement.specifier if each.operator == "=="]
                found[canonicalize_name(requirement.name), Version(exact)] = file.name
            except (InvalidRequirement, InvalidVersion, ValueError) as error:
                raise AuditError(f"{file.name} pins no exact version in the line \"{text}\".") from error
    return found


def advisories(paths: Iterable[Path]) -> Iterator[Advisory]:
    """All advisories below these paths. Raises AuditError for what is none."""
    for path in paths:
        if path.is_dir():
            yield from advisories(sorted(path.glob("*.json")))
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for name in sorted(archive.namelist()):
                    yield from _read(name, archive.read(name))
        else:
            try:
                yield from _read(path.name, path.read_bytes())
            except OSError as error:
                raise AuditError(f"{path} cannot be read ({error.strerror}).") from error


def _read(name: str, raw: bytes) -> Iterator[Advisory]:
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise AuditError(f"{name} is no JSON.") from error
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict) or not isinstance(each.get("id"), str) or "modified" not in each:
            raise AuditError(f"{name} is no advisory in the OSV format: it needs an id and the time it was modified.")
        yield each


def affects(advisory: Advisory, name: str, version: Version) -> bool:
    """Whether an advisory, unless it was withdrawn, names this version of this package."""
    if advisory.get("withdrawn"):
        return False
    for about in advisory.get("affected", []):
        package = about.get("package", {})
        if package.get("ecosystem") != "PyPI" or canonicalize_name(str(package.get("name"))) != name:
            continue
        ranges = [each["events"] for each in about.get("ranges", []) if each.get("type") == "ECOSYSTEM"]
        if any(_version(each) == version for each in about.get("versions", [])):
            return True
        if any(_within(events, version) for events in ranges):
            return True
    return False


def _within(events: Sequence[Mapping[str, str]], version: Version) -> bool:
    """Events in the order of their versions switch a range on and off; a last affected version is inside."""
    inside = False
    for event in sorted(events, key=lambda each: _version(next(iter(each.values()))) or Version("0")):
        (kind, text), = event.items()
        at = _version(text) or Version("0")
        if kind == "introduced" and version >= at:
            inside = True
        if (kind == "fixed" and version >= at) or (kind == "last_affected" and version > at):
            inside = False
    return inside


def _version(text: str) -> Version | None:
    """Old versions may follow no rule; ours do, and equal none of those."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def main(arguments: Sequence[str], requirements: Sequence[Path] | None = None) -> int:
    """Print what is affected; returns the exit status."""
    try:
        if not arguments:
            raise AuditError("Name the advisories: python -m scripts.audit FILE_OR_FOLDER... (see docs/security.md).")
        pinned = pins(requirements or sorted(ROOT.glob("requirements*.txt")))
        newest, number, hits = "", 0, []
        for advisory in advisories(map(Path, arguments)):
            number, newest = number + 1, max(newest, str(advisory["modified"]))
            hits += [(advisory, *pin, file) for pin, file in pinned.items() if affects(advisory, *pin)]
        if not number:
            raise AuditError("There is no advisory in what was named.")
    except AuditError as error:
        print(error, file=sys.stderr)
        return 2
    for advisory, name, version, file in hits:
        print(f"{name} {version} ({file}): {advisory['id']} {advisory.get('summary', '')}".rstrip())
    print(f"{len(pinned)} pinned versions, {len(hits)} findings; {number} advisories, the newest of {newest}.")
    return 1 if hits else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

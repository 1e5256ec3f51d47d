"""Which format a file or folder has, judged by its content."""

from __future__ import annotations

import json
from pathlib import Path

from backend.formats.errors import FormatError
from backend.formats.folder import ANNOTATIONS, SEVERAL
from backend.formats.json_stream import elements, members
from backend.formats.peerannot import ANSWERS

_FLAT = {"annotation_id", "annotator", "id"}


def detect(path: Path) -> str:
    """The name of the format. Raises FormatError saying what was found instead."""
    if path.is_dir():
        for name, found in ((ANSWERS, "peerannot"), (ANNOTATIONS, "folder")):
            if (path / name).is_file():
                return found
        if any(path.glob(f"{SEVERAL}?*.jsonl")):
            return "folder"
        inside = ", ".join(sorted(each.name for each in path.iterdir())[:8]) or "nothing"
        raise FormatError(f"{path.name} is no data set: it has neither {ANSWERS} nor {ANNOTATIONS}, but {inside}.")
    if not path.is_file():
        raise FormatError(f"There is no file or folder {path}.")
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head.strip():
        raise FormatError(f"{path.name} is empty.")
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"PK\x03\x04", b"\x1f\x8b")):
        raise FormatError(f"{path.name} is compressed; unpack it first.")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"[":
        return _list(path)
    if start == b"{":
        return _object(path)
    return _table(head)


def _list(path: Path) -> str:
    for line, first in elements(path, lambda fraction, note: None):
        keys = set(first) if isinstance(first, dict) else set()
        if "annotations" in keys:
            return "label-studio"
        if keys >= _FLAT:
            return "label-studio-min"
        listed = ", ".join(sorted(keys)) or "no keys"
        raise FormatError(
            f"{path.name} is a JSON list, but not of Label Studio tasks: the first one, in line {line}, has {listed}."
        )
    return "label-studio"  # an export of a project without annotations


def _object(path: Path) -> str:
    with path.open("rb") as file:
        first = file.readline(1 << 20)
    try:
        keys = set(json.loads(first.decode("utf-8-sig")))
    except (ValueError, RecursionError):  # it goes on in the next line; or it is what `members` will name
        keys = set()
    if keys >= {"task", "annotator"}:
        return "folder"
    for line, _, value in members(path, lambda fraction, note: None):
        if isinstance(value, dict):
            return "peerannot"
        raise FormatError(f"{path.name}, line {line}: neither votes nor an object {{annotator: label}} was found.")
    return "peerannot"


def _table(head: bytes) -> str:
    first = head.decode("utf-8-sig", errors="replace").split("\n", 1)[0].strip("\r")
    delimiter = max("\t,;", key=first.count)
    names = {name.strip().strip('"') for name in first.split(delimiter)}
    if names >= _FLAT:
        return "label-studio-csv"
    return "tsv" if delimiter == "\t" else "csv"

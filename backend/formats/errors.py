"""What the readers and writers of data sets raise: a sentence that names the file, and the line where there is one."""

from __future__ import annotations

from pathlib import Path

from backend.errors import ClientError


class FormatError(ClientError):
    """A data set cannot be read or written. The message quotes names of files, columns and keys, never labels."""


def at_line(path: Path, line: int, what: str) -> FormatError:
    """The error of one line; `what` continues "FILE, line 7: "."""
    return FormatError(f"{path.name}, line {line}: {what}.")

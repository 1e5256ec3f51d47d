"""Large JSON files piece by piece: the elements of a list, the members of an object, the objects of a JSON Lines file.

Only the piece at hand is in memory. Every error names the line; none quotes the file.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from backend.formats.errors import FormatError, at_line
from backend.ports import Progress

_CHUNK = 1 << 20  # bytes
_BREAK_OFF = 16  # an error this close to the end of what was read may be a piece cut in two
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"
_AFTER_VALUE = _SPACE + ",:]}"


def elements(path: Path, progress: Progress) -> Iterator[tuple[int, Any]]:
    """(line, element) of a file that holds one JSON list."""
    with path.open("rb") as file:
        text = _Text(path, file, progress)
        text.expect("[", "a list was expected")
        if text.peek() == "]":
            text.take()
        else:
            while True:
                text.peek()
                yield text.line, text.value()
                if text.one_of(",]") == "]":
                    break
        text.expect_end()


def members(path: Path, progress: Progress) -> Iterator[tuple[int, str, Any]]:
    """(line, key, value) of a file that holds one JSON object; a key that stands there twice comes twice."""
    with path.open("rb") as file:
        text = _Text(path, file, progress)
        text.expect("{", "an object was expected")
        if text.peek() == "}":
            text.take()
        else:
            while True:
                text.peek()
                line, key = text.line, text.value()
                if not isinstance(key, str):
                    raise at_line(path, line, "a key must be text")
                text.expect(":", "a colon was expected after a key")
                text.peek()
                yield line, key, text.value()
                if text.one_of(",}") == "}":
                    break
        text.expect_end()


def json_lines(path: Path, progress: Progress) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of a file with one JSON object a line; empty lines are skipped."""
    size = max(path.stat().st_size, 1)
    done = 0
    with path.open("rb") as file:
        for line, raw in enumerate(file, start=1):
            done += len(raw)
            if line % 20_000 == 0:
                progress(done / size, path.name)
            if not raw.strip():
                continue
            try:
                item = _DECODER.decode(raw.decode("utf-8-sig" if line == 1 else "utf-8"))
            except UnicodeDecodeError as error:
                raise at_line(path, line, "it is not UTF-8 text") from error
            except (ValueError, RecursionError) as error:
                raise at_line(path, line, "it is not valid JSON") from error
            if not isinstance(item, dict):
                raise at_line(path, line, "an object was expected")
            yield line, item


def whole(path: Path) -> Any:
    """A small JSON file at once."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise at_line(path, error.lineno, "it is not valid JSON") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"{path.name} is not valid JSON in UTF-8.") from error


class _Text:
    """A window that slides over the text of a file; `line` is where it begins."""

    def __init__(self, path: Path, file: BinaryIO, progress: Progress) -> None:
        self._path, self._file, self._progress = path, file, progress
        self._size = max(path.stat().st_size, 1)
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._window, self._at, self._ended = "", 0, False
        self.line = 1

    def peek(self) -> str:
        """The next character that is no space, "" at the end; the window begins with it."""
        while True:
            start = self._at
            window = self._window
            while start < len(window) and window[start] in _SPACE:
                start += 1
            self._advance(start)
            if start < len(window):
                return window[start]
            if not self._read(_CHUNK):
                return ""

    def take(self) -> None:
        self._advance(self._at + 1)

    def expect(self, character: str, otherwise: str) -> None:
        if self.peek() != character:
            raise at_line(self._path, self.line, otherwise)
        self.take()

    def one_of(self, characters: str) -> str:
        found = self.peek()
        if not found or found not in characters:
            raise at_line(self._path, self.line, f"{' or '.join(characters)} was expected")
        self.take()
        return found

    def expect_end(self) -> None:
        if self.peek():
            raise at_line(self._path, self.line, "there is more after the end of the data")

    def value(self) -> Any:
        """The JSON value that begins here; reads on while it is incomplete."""
        more = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._window, self._at)
                # A number may go on where the window ends: "0." is 0 and a rest.
                if self._ended or (end < len(self._window) and self._window[end] in _AFTER_VALUE):
                    self._advance(end)
                    return value
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._window) - _BREAK_OFF or error.msg.startswith("Unterminated string")
                if self._ended or not cut:
                    line = self.line + self._window.count("\n", self._at, error.pos)
                    raise at_line(self._path, line, "it is not valid JSON") from error
            except RecursionError as error:
                raise at_line(self._path, self.line, "it is nested too deeply") from error
            except ValueError as error:  # Python's limit, since reading one takes the square of its length
                raise at_line(self._path, self.line, "it has a number of too many digits") from error
            self._read(more)
            more *= 2

    def _advance(self, to: int) -> None:
        self.line += self._window.count("\n", self._at, to)
        self._at = to

    def _read(self, n: int) -> bool:
        """Append to the window, dropping what was used; False at the end of the file."""
        raw = self._file.read(n)
        try:
            text = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self.line + self._window.count("\n", self._at) + error.object.count(b"\n", 0, error.start)
            raise at_line(self._path, line, "it is not UTF-8 text") from error
        self._window = self._window[self._at:] + text
        self._at = 0
        self._ended = not raw
        self._progress(min(self._file.tell() / self._size, 1.0), self._path.name)
        return bool(raw)

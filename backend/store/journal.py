"""A bounded file for what could not be written into the database in time, until somebody takes it in.

One line an entry: its CRC-32 in hex, a space, the entry as JSON. Several processes append, each under a lock of the
folder that is held for one line only, and flush before they answer. A line that a crash cut off, or that is damaged,
is counted and left out: `take` says so, and all projects are compared then. A file that cannot be read at all (it
belongs to another account) stays and is named; it holds none of the others up.

Invariants: the file is at most `MOST_BYTES` long, and so is the one that is set aside to be taken in; where that is not
enough, the marks of whole projects become one entry each ("all": every task is read again). Nothing is removed before
it was taken in; twice does no harm.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

MOST_BYTES = 2 * 1024 * 1024
LOCK_S = 0.2  # an append waits so long for others
TAKE_S = 5.0  # and who takes it in
ALL = "all"
MARK = "mark"
Entry = Sequence[Any]  # ["mark", project, [task, ...]] and others; see `services.late_writes`


class JournalFull(OSError):
    """There is no more room, or no turn to be had."""


class Journal:
    """The journal of one data folder. Safe for threads and processes."""

    def __init__(self, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._file = folder / "journal"
        self._most_bytes = most_bytes

    def append(self, entries: Sequence[Entry]) -> None:
        """Durable when it returns. Raises OSError when it cannot be; then nothing of it is there."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked(LOCK_S):
            data = b"".join(map(line, entries))
            if self._size() + len(data) > self._most_bytes:
                kept = shortened([*_read(self._file)[0], *entries], self._most_bytes // 2)
                if sum(len(line(entry)) for entry in kept) > self._most_bytes:
                    raise JournalFull("the journal is full")
                self._rewrite(kept)
                return
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                end = os.lseek(descriptor, 0, os.SEEK_END)
                torn = end > 0 and os.pread(descriptor, 1, end - 1) != b"\n"
                try:
                    _write(descriptor, (b"\n" if torn else b"") + data)
                    os.fdatasync(descriptor)
                except OSError:
                    os.ftruncate(descriptor, end)
                    raise
            finally:
                os.close(descriptor)

    def waiting(self) -> bool:
        """Whether there is anything to take in; one look at the folder."""
        return self._size() > 0 or next(self._aside(), None) is not None

    def collapsed(self) -> bool:
        """Whether it became too long, so that whole projects will be read again."""
        read = self._readable([*self._aside(), self._file])
        return any(entry[0] == ALL for _, entries, _ in read for entry in entries)

    def unreadable(self) -> str:
        """Why a file of it, or its lock, cannot be used; "" where all can."""
        for path in [*self._aside(), self._file, self._folder / "lock", self._folder / "taking"]:
            try:
                _opened(path).close()
            except FileNotFoundError:
                continue
            except OSError as error:
                return error.strerror or str(error)
        return ""

    def since_s(self) -> float:
        """How long ago the oldest of it was begun, in seconds of the wall clock, at least 0."""
        times = [path.stat().st_mtime for path in [*self._aside(), self._file] if path.exists()]
        return max(0.0, time.time() - min(times, default=time.time()))

    def take(self, use: Callable[[Sequence[Entry], int], None]) -> int:
        """Hand all entries, and the number of damaged lines, to `use`, and forget them when it returns. Returns how
        many entries there were; 0 while another process does this."""
        if not self.waiting():
            return 0
        with self._locked(0.0, "taking", quiet=True) as mine:
            if not mine:
                return 0
            read = list(self._readable(sorted(self._aside())))
            if self._size() and not read:  # else each try in vain would set one more aside
                aside = self._folder / f"aside-{time.time_ns()}"
                with self._locked(TAKE_S):
                    os.replace(self._file, aside)
                read = list(self._readable([aside]))
            entries = [entry for _, found, _ in read for entry in found]
            if read:
                use(entries, sum(damaged for _, _, damaged in read))
            for path, _, _ in read:
                path.unlink()
            return len(entries)

    def _aside(self) -> Iterator[Path]:
        return self._folder.glob("aside-*")

    def _size(self) -> int:
        try:
            return self._file.lstat().st_size
        except OSError:  # there is none, or no folder; what cannot be written says so itself
            return 0

    def _readable(self, paths: Iterable[Path]) -> Iterator[tuple[Path, list[Entry], int]]:
        """As `_read`, of those that can be read."""
        for path in paths:
            with suppress(OSError):
                yield path, *_read(path)

    def _rewrite(self, entries: Sequence[Entry]) -> None:
        aside = self._folder / "new"
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write(descriptor, b"".join(map(line, entries)))
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(aside, self._file)

    @contextmanager
    def _locked(self, seconds: float, name: str = "lock", *, quiet: bool = False) -> Iterator[bool]:
        """The folder's lock of this name. Raises JournalFull when it cannot be had in time, or (`quiet`) yields False.
        It ends with the process, however that dies."""
        descriptor = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until, mine = time.monotonic() + seconds, False
            while not (mine := _lock(descriptor)) and time.monotonic() < until:
                time.sleep(0.001)
            if not mine and not quiet:
                raise JournalFull("the journal is in use")
            yield mine
        finally:
            os.close(descriptor)


def _read(path: Path) -> tuple[list[Entry], int]:
    """Entries, and how many lines are damaged."""
    try:
        with _opened(path) as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return [], 0
    found = [entry_of(each) for each in lines if each]
    return [each for each in found if each is not None], sum(each is None for each in found)


def _opened(path: Path) -> BinaryIO:
    """Without waiting, whatever lies there: nobody may ever write into a pipe."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data):]


def line(entry: Entry) -> bytes:
    """An entry as it stands in the file."""
    body = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(body), body)


def entry_of(text: bytes) -> Entry | None:
    """The inverse of `line`, without its end; None for what is damaged."""
    checksum, _, body = text.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(body):
            return None
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, list) and entry and isinstance(entry[0], str) else None


def _is_mark(entry: Entry) -> bool:
    fits = len(entry) == 3 and entry[0] == MARK and isinstance(entry[1], str) and isinstance(entry[2], list)
    return fits and all(type(each) is int and abs(each) < 2**63 for each in entry[2])


def shortened(entries: Sequence[Entry], most_bytes: int) -> list[Entry]:
    """The same in fewer bytes: each task once; the projects with most marks as a whole while it is still too long.
    What is no mark as they are written today stays as it is, for whoever takes it in to judge."""
    marks: dict[str, set[int]] = {}
    rest: dict[str, Entry] = {}
    for entry in entries:
        if _is_mark(entry):
            marks.setdefault(entry[1], set()).update(entry[2])
        else:
            rest[json.dumps(entry)] = entry
    whole = {entry[1] for entry in rest.values() if entry[0] == ALL and len(entry) == 2 and isinstance(entry[1], str)}

    def found() -> list[Entry]:
        return [*rest.values(), *([MARK, key, sorted(ids)] for key, ids in marks.items() if key not in whole)]

    while sum(len(line(entry)) for entry in found()) > most_bytes:
        left = [key for key in marks if key not in whole]
        if not left:
            break
        largest = max(left, key=lambda key: len(marks[key]))
        whole.add(largest)
        rest[json.dumps([ALL, largest])] = [ALL, largest]
    return found()

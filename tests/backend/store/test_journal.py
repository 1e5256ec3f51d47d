"""The journal: durable, bounded, whole after a kill, shared by processes, honest about damage."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from backend.store.journal import ALL, MARK, Entry, Journal, JournalFull, entry_of, line, shortened


def taken(journal: Journal) -> tuple[list[Entry], int]:
    found: list[Entry] = []
    damage: list[int] = []

    def use(entries: Sequence[Entry], damaged: int) -> None:
        found.extend(entries)
        damage.append(damaged)

    journal.take(use)
    return found, sum(damage)


def test_what_is_appended_is_taken_once_in_order(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    assert not journal.waiting() and taken(journal) == ([], 0)
    for task in range(3):
        journal.append([[MARK, "1.1", [task]]])
    assert journal.waiting()
    assert taken(journal) == ([[MARK, "1.1", [0]], [MARK, "1.1", [1]], [MARK, "1.1", [2]]], 0)
    assert not journal.waiting() and taken(journal) == ([], 0)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "journal").iterdir()} <= {0o600}


def test_what_could_not_be_used_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append([[MARK, "1.1", [1]]])

    def away(entries: Sequence[Entry], damaged: int) -> None:
        raise ConnectionError

    for task in (2, 3, 4):
        with pytest.raises(ConnectionError):
            journal.take(away)
        journal.append([[MARK, "1.1", [task]]])
        assert len(list(tmp_path.glob("aside-*"))) == 1, "tries in vain make no more files, so the bound holds"
    assert [*taken(journal)[0], *taken(journal)[0]] == [[MARK, "1.1", [task]] for task in (1, 2, 3, 4)]


@pytest.mark.parametrize("tail", [b"1234", line([MARK, "1.1", [9]])[:-3], b"00000000 [1]\n", b"\xff\xfe\n", b"{}\n"])
def test_damage_is_counted_and_hides_nothing_else(tail: bytes, tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append([[MARK, "1.1", [1]]])
    with (tmp_path / "journal").open("ab") as file:
        file.write(tail)  # as a kill in the middle of a line leaves it
    journal.append([[MARK, "1.1", [2]]])
    assert taken(journal) == ([[MARK, "1.1", [1]], [MARK, "1.1", [2]]], 1)


@pytest.mark.parametrize("name", ["journal", "aside-1"])
def test_what_cannot_be_read_is_named_and_holds_nothing_else_up(name: str, tmp_path: Path) -> None:
    """A folder, as a file of another account would: whoever runs the tests may be allowed to read those."""
    journal = Journal(tmp_path)
    (tmp_path / name).mkdir()
    assert journal.waiting() and not journal.collapsed() and journal.unreadable() == "Is a directory"
    assert taken(journal) == ([], 0)
    journal.append([[MARK, "1.1", [1]]])
    assert taken(journal) == ([[MARK, "1.1", [1]]], 0)
    (left,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    left.rmdir()
    assert not journal.waiting() and not journal.unreadable()


def test_nothing_is_written_where_a_link_leads(tmp_path: Path) -> None:
    other, journal = tmp_path / "other", Journal(tmp_path / "folder")
    other.write_text("somebody else's\n")
    journal.append([[MARK, "1.1", [1]]])
    (tmp_path / "folder" / "journal").unlink()
    (tmp_path / "folder" / "journal").symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"):
        journal.append([[MARK, "1.1", [2]]])
    assert taken(journal) == ([], 1) and other.read_text() == "somebody else's\n"
    journal.append([[MARK, "1.1", [3]]])
    assert taken(journal) == ([[MARK, "1.1", [3]]], 0)


def test_a_pipe_in_its_place_keeps_nobody_waiting(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    os.mkfifo(tmp_path / "aside-1")
    assert journal.waiting() and not journal.unreadable() and taken(journal) == ([], 0)
    assert not journal.waiting()


ODD: list[Entry] = [["mark"], ["mark", 5, [6]], ["mark", "1.1", [1, "a"]],
                    ["mark", "1.1", {"a": 1}], ["all"], ["all", [1]],
                    ["mark", "1.1", [2**70]]]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_an_entry_of_another_version_stays_as_it_is(odd: Entry) -> None:
    assert shortened([odd, [MARK, "1.1", [2]], [MARK, "1.1", [1]]], 10**6) == [odd, [MARK, "1.1", [1, 2]]]


def test_it_is_bounded_and_loses_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=4000)
    for task in range(2000):
        journal.append([[MARK, "1.1", [task % 40]], [MARK, "2.2", [task]]])
        assert (tmp_path / "journal").stat().st_size <= 4000
    assert journal.collapsed()
    entries = shortened(taken(journal)[0], 10**6)
    assert [ALL, "2.2"] in entries
    assert [ALL, "1.1"] in entries or [MARK, "1.1", list(range(40))] in entries


def test_what_cannot_be_shortened_is_refused_when_it_is_full(tmp_path: Path) -> None:
    journal = Journal(tmp_path, most_bytes=200)
    with pytest.raises(JournalFull):
        for task in range(100):
            journal.append([["shown", "1.1", [task], "2026-11-29"]])
    assert taken(journal)[1] == 0


WRITE = """
import sys
from pathlib import Path
from backend.store.journal import MARK, Journal
journal, first = Journal(Path(sys.argv[1])), int(sys.argv[2])
for task in range(first, first + int(sys.argv[3])):
    while True:
        try:
            journal.append([[MARK, "1.1", [task]]])
            break
        except OSError:
            pass
    print(task, flush=True)
"""


def writer(folder: Path, first: int, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITE, str(folder), str(first), str(count)],
                            stdout=subprocess.PIPE)


def test_processes_write_and_take_at_the_same_time(tmp_path: Path) -> None:
    writers = [writer(tmp_path, first, 60) for first in (0, 1000)]
    journal, seen = Journal(tmp_path), set()
    while any(each.poll() is None for each in writers) or journal.waiting():
        entries, damaged = taken(journal)
        assert damaged == 0
        seen |= {entry[2][0] for entry in entries}
    assert seen == {*range(60), *range(1000, 1060)}
    for each in writers:
        assert each.stdout is not None
        each.stdout.close()


def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    killed = writer(tmp_path, 0, 10**6)
    assert killed.stdout is not None
    said = [int(killed.stdout.readline()) for _ in range(50)]
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    said += [int(text) for text in killed.stdout.read().split(b"\n")[:-1]]
    killed.stdout.close()
    entries, damaged = taken(Journal(tmp_path))
    assert {entry[2][0] for entry in entries} >= set(said) and damaged <= 1


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may not grow: a real refusal of the operating system, in the middle of a line."""
    code = f"""
import resource, signal, sys
from pathlib import Path
from backend.store.journal import MARK, Journal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(Path({str(tmp_path)!r}))
journal.append([[MARK, "1.1", [1]]])
resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
try:
    journal.append([[MARK, "1.1", list(range(100))]])
except OSError:
    sys.exit(7)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=os.getcwd()).returncode == 7
    assert taken(Journal(tmp_path)) == ([[MARK, "1.1", [1]]], 0)


def test_lines_are_checked() -> None:
    entry = [MARK, "12.1764288000", [1, 2]]
    assert entry_of(line(entry).rstrip(b"\n")) == entry
    assert entry_of(line(entry).rstrip(b"\n").replace(b"2]", b"3]")) is None

"""Answers of tasks, kept until anything that they depend on is another.

Nothing is ever told to forget: an answer is found again by a digest of all that it was made from. That is the version,
the configuration, the project's settings, the data of the task, the votes on it, whom it is for, and what newcomers'
votes taught. All of it is read from the database at each request, so that a vote, a version or a setting that any
process stored is seen by every process at once.

Invariants: one answer a task, the newest; bounded in number and bytes; what is handed out may be changed.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from backend.records import Project, StoredVote
from backend.registry import Loaded

if TYPE_CHECKING:
    from model.coldstart.adapting import Adapted

KEPT = 10_000  # tasks of all projects
KEPT_BYTES = 32 << 20
_AROUND_IT = 1000  # bytes of an entry beside its answer

Predictions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class MadeFrom:
    """All that an answer depends on."""

    task: tuple[str, int]  # project, task
    digest: bytes
    newcomers: tuple[Adapted | None, ...]  # compared as objects: what is learned anew is another one

    @classmethod
    def each(
        cls, project: Project, loaded: Loaded, xml: str, tasks: Sequence[Mapping[str, Any]],
        votes: Sequence[StoredVote], wanted: Sequence[Sequence[str]], newcomers: Mapping[str, Adapted],
    ) -> list[MadeFrom]:
        """Of each of some tasks, Label Studio's JSON. `votes` are those on them, `wanted` says who gets an own
        prediction of each."""
        common = loaded.version.name, loaded.version.path, xml, json.dumps(project.settings, sort_keys=True)
        begun = blake2b(_bytes(common), digest_size=32)
        given: dict[int, list[StoredVote]] = {}
        for vote in votes:
            given.setdefault(vote.task_id, []).append(vote)
        found = []
        for task, annotators in zip(tasks, wanted, strict=True):
            own, number = begun.copy(), int(task["id"])
            own.update(_bytes((json.dumps(task["data"], sort_keys=True), given.get(number, []), list(annotators))))
            found.append(cls((project.key, number), own.digest(), tuple(map(newcomers.get, annotators))))
        return found

    def same(self, other: MadeFrom) -> bool:
        """Whether the answers are the same."""
        return self.digest == other.digest and all(
            mine is theirs for mine, theirs in zip(self.newcomers, other.newcomers, strict=True))


def _bytes(parts: object) -> bytes:
    return repr(parts).encode("utf-8", "surrogatepass")


class KeptAnswers:
    """Safe for threads."""

    def __init__(self, *, most: int = KEPT, most_bytes: int = KEPT_BYTES) -> None:
        """At most so many tasks of all projects, and so many bytes."""
        self._most, self._most_bytes = most, most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], tuple[MadeFrom, bytes]] = OrderedDict()
        self._bytes = 0

    def find(self, made_from: MadeFrom) -> Predictions:
        """The answer that was made from exactly this; [] where there is none."""
        with self._lock:
            kept = self._kept.get(made_from.task)
            if kept is None or not kept[0].same(made_from):
                return []
            self._kept.move_to_end(made_from.task)
        found: Predictions = json.loads(kept[1])
        return found

    def keep(self, made_from: MadeFrom, answer: Predictions) -> None:
        """In place of the answer that the task had."""
        text = json.dumps(answer, separators=(",", ":")).encode()
        with self._lock:
            self._forget(self._kept.pop(made_from.task, None))
            self._kept[made_from.task] = made_from, text
            self._bytes += len(text) + _AROUND_IT
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                self._forget(self._kept.popitem(last=False)[1])

    def _forget(self, kept: tuple[MadeFrom, bytes] | None) -> None:
        self._bytes -= 0 if kept is None else len(kept[1]) + _AROUND_IT

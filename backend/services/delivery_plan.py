"""What to deliver and what to delete: pure decisions, without a store and without Label Studio.

Which tasks are next for an annotator: those without a vote of theirs; tasks that still lack annotations before those
that have all that the project asks for, within both in Label Studio's order (id ascending). Other orders (uniform,
uncertainty) differ between openings and cannot be foreseen; an annotator who leaves the window sees the consensus.

Own predictions lie in Label Studio under several versions at once (only what changed is sent again). A version may be
deleted when no gap of the present plan relies on it; so that versions do not pile up, what lies deeper than
`LIVE_VERSIONS` back is sent again. Label Studio never gets two predictions of one version for a task and annotator:
what changed within a version (an edited text, another one's vote) waits for the next.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.prediction_names import own_version, parse
from backend.records import AnnotatorActivity, OwnPrediction
from backend.services.served import is_account
from model.data.splits import task_of
from model.data.votes import Votes

LIVE_VERSIONS = 3  # of one annotator's own predictions in Label Studio
PENDING = "?"  # before the digest of a prediction whose import may or may not have happened
UNKNOWN = "-"  # instead of the digest of a prediction that came another way: Label Studio asked /predict

Pair = tuple[int, str]  # task id, annotator


@dataclass(frozen=True, slots=True)
class Voted:
    """Who voted on which task."""

    tasks_of: Mapping[str, frozenset[int]]

    @classmethod
    def of(cls, votes: Votes) -> Voted:
        """Read off the current votes."""
        task = np.array([int(task_of(unit)) for unit in votes.units], dtype=np.int64)
        return cls({
            name: frozenset(np.unique(task[votes.unit[votes.annotator == index]]).tolist())
            for index, name in enumerate(votes.annotators)
        })

    def count(self, ids: NDArray[np.int64], annotators: Iterable[str] | None = None) -> NDArray[np.int64]:
        """How many (of these) annotators voted on each of the sorted ids, (n,)."""
        count = np.zeros(len(ids), dtype=np.int64)
        for name in self.tasks_of if annotators is None else annotators:
            count += np.isin(ids, np.fromiter(self.tasks_of.get(name, ()), np.int64))
        return count


def active_annotators(activity: Sequence[AnnotatorActivity], *, now: datetime, days: float) -> list[str]:
    """Those who can log in and voted within `days`, most active first."""
    since = now - timedelta(days=days)
    return [who.annotator for who in activity if who.last_vote >= since and is_account(who.annotator)]


def open_tasks(ids: NDArray[np.int64], voted: Voted, panel: Sequence[str]) -> list[int]:
    """Tasks that somebody of the active panel has not voted on; without a panel all of them."""
    if not panel:
        return [int(task) for task in ids]
    return [int(task) for task in ids[voted.count(ids, panel) < len(panel)]]


def next_gaps(
    ids: NDArray[np.int64], voted: Voted, annotators: Sequence[str], *, limit: int, wanted_votes: int,
) -> dict[str, list[int]]:
    """The next tasks of each annotator, at most `limit` each."""
    complete = voted.count(ids) >= wanted_votes
    order = np.concatenate([ids[~complete], ids[complete]])
    gaps = {}
    for annotator in annotators:
        done = np.fromiter(voted.tasks_of.get(annotator, ()), np.int64)
        gaps[annotator] = [int(task) for task in order[~np.isin(order, done)][:limit]]
    return gaps


def digest(prediction: Mapping[str, Any]) -> str:
    """Identifies what an annotator would see: the values, and the confidence in steps of a tenth."""
    return Digests().of(prediction)


class Digests:
    """`digest` of many predictions: most of them say what another one said, so each is worked out once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, prediction: Mapping[str, Any]) -> str:
        """See `digest`."""
        seen = [
            [[region.get("from_name"), region.get("to_name"), region.get("value")] for region in prediction["result"]],
            round(float(prediction["score"]), 1),
        ]
        key = repr(seen)  # equal only where the JSON is, and made several times faster
        if key not in self._known:
            text = json.dumps(seen, sort_keys=True, ensure_ascii=False)
            self._known[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._known[key]


def pending(entry: OwnPrediction) -> OwnPrediction:
    """The entry while nobody knows whether Label Studio has it."""
    return entry if is_pending(entry) else replace(entry, digest=PENDING + entry.digest)


def is_pending(entry: OwnPrediction) -> bool:
    """Whether the import of this entry may or may not have happened."""
    return entry.digest.startswith(PENDING)


def found(entry: OwnPrediction | None, new: OwnPrediction) -> OwnPrediction:
    """What to note when Label Studio turns out to have a prediction of the version of `new`: the one whose import was
    interrupted, as it was then, or else one of which nobody here knows what it says."""
    if entry is not None and entry.version == new.version and is_pending(entry):
        return replace(entry, digest=entry.digest.removeprefix(PENDING))
    return replace(new, digest=UNKNOWN)


def up_to_date(
    entry: OwnPrediction | None, new: OwnPrediction, existing: Mapping[str, int], kept: frozenset[str],
) -> bool:
    """Whether Label Studio still has what would be sent, under a version that may stay; or something under the very
    version of `new`, to which no second prediction is added."""
    if entry is None or is_pending(entry) or not existing.get(own_version(entry.annotator, entry.version)):
        return False
    return entry.version == new.version or (entry.digest == new.digest and entry.version in kept)


def kept_versions(entries: Iterable[OwnPrediction], target: str) -> frozenset[str]:
    """The target version and the newest others of one annotator, `LIVE_VERSIONS` in all."""
    names = sorted({entry.version for entry in entries} - {target}, key=_number, reverse=True)
    return frozenset([target, *names[: LIVE_VERSIONS - 1]])


def stale_versions(existing: Iterable[str], *, target: str, live: Iterable[OwnPrediction]) -> list[str]:
    """Versions of ours to delete, oldest first: older than `target` ("r12") and not relied on by a live prediction."""
    used = {own_version(entry.annotator, entry.version) for entry in live}
    found = []
    for version in existing:
        name = parse(version)
        if name is not None and name.number < _number(target) and version not in used:
            found.append((name.number, version))
    return [version for _, version in sorted(found)]


def _number(name: str) -> int:
    return int(name.removeprefix("r") or 0)

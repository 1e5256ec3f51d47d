"""The registry: which version of a project answers, and the files behind it.

Invariants: the pointer is read from the store at each call, so that a version published by any process is seen at the
next request; a checkpoint never changes once it has its path, nor do the figures of its version, so ladders and the
models of rankings are cached by path; a version is recorded only
after its files are whole on disk (`Ladder.save` writes aside, flushes and renames). Where a checkpoint is missing or
damaged the newest older published version answers, and `usable` is false until the damage is gone. All processes agree
on that: what was deleted answers from nobody's memory, and who finds a checkpoint damaged leaves a mark beside it.

Only published versions have files: a rejected one is a verdict with its figures, and would only take space.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from backend.ports import Clock, Store, utc_now
from backend.records import Verdict, Version
from model import checkpoint
from model.errors import CheckpointError

if TYPE_CHECKING:
    from model.ensemble.ladder import Judgement, Ladder
    from model.quality.evidence import Evidence
    from model.ranking_model import RankingModel

log = logging.getLogger(__name__)
_Learned: TypeAlias = "tuple[Ladder, Mapping[str, RankingModel]]"

DAMAGE_REMEMBERED_S = 60.0  # how long a checkpoint that could not be loaded is not tried again
AUDIT = "audit"  # folder beside a checkpoint's files
AUDITS = 11  # published versions whose audits stay: the one that answers, and ten that candidates are compared with
ORPHAN_AFTER_S = 3600.0  # files that no version names are left by a crash when they are older than this
DAMAGED = "damaged"  # file beside a checkpoint's that could not be loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A version that can answer."""

    version: Version
    ladder: Ladder
    rankings: Mapping[str, RankingModel]  # control -> what its version learned of orders


class Registry:
    """Safe for threads; any number of processes may use one folder."""

    def __init__(
        self, *, store: Store, folder: Path, device: str = "cpu", keep: int = 3, in_memory: int = 4,
        clock: Clock = utc_now, seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`keep` published versions of a project stay on disk, `in_memory` ladders of all projects in memory."""
        self._store = store
        self._folder = Path(folder)
        self.device = device  # where ladders live and are trained
        self._keep = max(keep, 2)  # the previous one stands in for a damaged one
        self._in_memory = in_memory
        self._clock = clock
        self._seconds = seconds
        self._lock = threading.Lock()  # never held while a file is read
        self._loads: dict[str, threading.Lock] = {}  # path -> held while it is read
        self._learned: OrderedDict[str, _Learned] = OrderedDict()
        self._damaged: dict[str, float] = {}  # path -> when it was found out here
        self._unmarked: set[str] = set()  # paths that only this process knows to be damaged: the disk takes no mark

    def published(self, project: str) -> Loaded | None:
        """The version that answers, with its ladder; None when there is none that can be loaded."""
        for version in self._candidates(project):
            found = self._load(version)
            if found is not None:
                return Loaded(version=version, ladder=found[0], rankings=found[1])
        return None

    def current(self, project: str) -> Version | None:
        """Like `published`, without loading anything: for /setup, which must answer at once."""
        return next((version for version in self._candidates(project) if self.usable(version)), None)

    def usable(self, version: Version) -> bool:
        """False when the files of a published version are gone, or known to be damaged. Two looks into the folder."""
        return self._is_there(version) and not self._is_damaged(version)

    def save(
        self, project: str, ladder: Ladder, judgement: Judgement, figures: Mapping[str, Any], changes: int,
        evidence: Evidence | None = None,
    ) -> Version:
        """Write the checkpoint when the judgement publishes it, record the version, prune old files.

        `evidence` is kept beside it, for the audit of votes. Raises CheckpointError when the files cannot be written;
        then nothing is recorded.
        """
        number = self._store.versions.next_number(project)
        path = ""
        if judgement.publish:
            path = f"{_folder_name(project)}/r{number}-{uuid.uuid4().hex[:8]}"  # two trainings at once never meet
            self._write(ladder, evidence, path)
        version = Version(
            project=project, name=f"r{number}", number=number, path=path,
            verdict=Verdict.PUBLISHED if judgement.publish else Verdict.REJECTED, reason=judgement.reason,
            figures=dict(figures), changes=changes, created_at=self._clock(),
        )
        self._store.versions.add(version)
        self._prune(project)
        return version

    def evidence(self, version: Version) -> Evidence | None:
        """What the training of a published version left for the audit; None where there is none that can be read."""
        from model.quality.evidence import Evidence

        folder = self._folder / version.path / AUDIT
        if not version.path or not folder.is_dir():
            return None
        try:
            return Evidence.load(folder)
        except (CheckpointError, OSError) as error:
            log.warning("the evidence of version %s of project %s is lost: %s", version.name, version.project, error)
            return None

    def _write(self, ladder: Ladder, evidence: Evidence | None, path: str) -> None:
        target = self._folder / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            ladder.save(target)
            if evidence is not None:
                evidence.save(target / AUDIT)
            _flush_folder(target.parent.parent)  # the project's folder itself may be new
        except OSError as error:
            raise CheckpointError(f"the checkpoint {target.name} cannot be written: {error.strerror}") from error

    def _candidates(self, project: str) -> Iterator[Version]:
        """The published version, then the earlier published ones, newest first."""
        pointed = self._store.versions.published(project)
        if pointed is None:
            return
        yield pointed
        for version in self._store.versions.recent(project, limit=100, verdict=Verdict.PUBLISHED):
            if version.number < pointed.number:
                yield version

    def _load(self, version: Version) -> _Learned | None:
        from model.learners.classes import ClassesLearner

        path = version.path
        if not self.usable(version):
            self._forget(path)
        learned = self._remembered(path)
        if learned is not None:
            return learned
        with self._loading(path):
            learned = self._remembered(path)  # another thread may have loaded it meanwhile
            if learned is not None or (self._damage_is_fresh(path) and not self.usable(version)):
                return learned
            try:
                ladder = ClassesLearner().load(self._folder / path, version.figures, device=self.device).ladder
            except (CheckpointError, OSError) as error:
                log.warning("version %s of project %s cannot be loaded: %s", version.name, version.project, error)
                self._damaged[path] = self._seconds()
                if self._is_there(version):
                    self._mark(version, damaged=True)
                return None
            self._damaged.pop(path, None)
            self._mark(version, damaged=False)
            learned = ladder, _rankings(version)
            self._remember(path, learned)
            return learned

    def _remembered(self, path: str) -> _Learned | None:
        with self._lock:
            if path in self._learned:
                self._learned.move_to_end(path)
            return self._learned.get(path)

    def _remember(self, path: str, learned: _Learned) -> None:
        with self._lock:
            self._learned[path] = learned
            while len(self._learned) > self._in_memory:
                self._learned.popitem(last=False)

    @contextlib.contextmanager
    def _loading(self, path: str) -> Iterator[None]:
        """One thread at a time for one path; nobody waits for the checkpoint of another project."""
        with self._lock:
            mine = self._loads.setdefault(path, threading.Lock())
        with mine:
            try:
                yield
            finally:
                with self._lock:  # whoever waits has it; whoever comes later finds the ladder, or makes a new lock
                    self._loads.pop(path, None)

    def _forget(self, path: str) -> None:
        with self._lock:
            self._learned.pop(path, None)

    def _is_there(self, version: Version) -> bool:
        return (self._folder / version.path / checkpoint.MANIFEST).is_file()

    def _is_damaged(self, version: Version) -> bool:
        return version.path in self._unmarked or (self._folder / version.path / DAMAGED).exists()

    def _mark(self, version: Version, *, damaged: bool) -> None:
        mark = self._folder / version.path / DAMAGED
        self._unmarked.discard(version.path)
        try:
            if damaged:
                mark.touch()
            else:
                mark.unlink(missing_ok=True)
        except OSError:
            self._unmarked |= {version.path} if damaged else set()

    def _damage_is_fresh(self, path: str) -> bool:
        found = self._damaged.get(path)
        return found is not None and self._seconds() - found < DAMAGE_REMEMBERED_S

    def _prune(self, project: str) -> None:
        """Remove the files of all but the last published versions, and what crashes left behind. What versions left for
        audits stays a while longer, since candidates are compared with it."""
        published = self._store.versions.recent(project, limit=100, verdict=Verdict.PUBLISHED)
        pointed = self._store.versions.published(project)  # whatever else is true, what answers keeps its files
        kept = {Path(version.path).name for version in [*published[: self._keep], *([pointed] if pointed else [])]}
        old = {Path(version.path).name for version in published[self._keep :]} - kept
        audited = {Path(version.path).name for version in published[: AUDITS]} - kept
        root = self._folder / _folder_name(project)
        if not root.is_dir():
            return
        for folder in root.iterdir():
            if folder.name in audited and (folder / AUDIT).is_dir():
                _only_audit(folder)
                continue
            orphan = folder.name not in kept and time.time() - folder.stat().st_mtime > ORPHAN_AFTER_S
            if folder.name in old or orphan:
                shutil.rmtree(folder, ignore_errors=True)  # another process may be doing the same


def _only_audit(folder: Path) -> None:
    """Leave of a version nothing but what it left for audits."""
    for each in folder.iterdir():
        if each.is_dir() and each.name != AUDIT:
            shutil.rmtree(each, ignore_errors=True)
        elif each.is_file():
            each.unlink(missing_ok=True)


def _rankings(version: Version) -> Mapping[str, RankingModel]:
    """Control -> model, from the figures of a version; those that are damaged are left out."""
    from model.learners.rankings import RankingsLearner

    try:
        learned = RankingsLearner().load(Path(version.path), version.figures)
    except CheckpointError:
        log.warning("the rankings of version %s of project %s are damaged; they are not predicted", version.name,
                    version.project)
        return {}
    for _ in learned.damaged:
        log.warning("the scores of a ranking control of version %s of project %s are damaged; it is not predicted",
                    version.name, version.project)
    return learned.models


def _folder_name(project: str) -> str:
    """A project key comes from requests: only the shape that Label Studio sends becomes a file name as it is."""
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", project):
        return project
    return "x" + hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

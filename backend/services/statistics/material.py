"""Everything that the statistics of one project are made from, read once.

Invariant: `fingerprint` is read before the votes, so that votes which arrive meanwhile make it differ next time.

Shape legend: N votes of the history, M current ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.errors import LabelConfigError
from backend.labeling import LabelConfig, parse_config
from backend.ports import Store
from backend.records import AnnotatorActivity, Check, Project, Version, VoteHistory
from backend.registry import Registry
from backend.services.overrides import settings_of
from backend.services.served import learned_of
from backend.services.statistics.checks import weighed
from backend.settings import Settings
from model.data.spaces import Space
from model.data.splits import task_of
from model.data.votes import Provenance, Votes
from model.quality.evidence import Evidence

SHAPE = 10  # raised whenever documents change in shape or meaning, so that all are computed anew
VERSIONS = 20  # of the training history


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the documents depend on; equal stamps, equal documents."""

    changes: int
    version: str  # of the published model; "" without
    checks: int
    tasks: int
    names: str
    config: str
    settings: Sequence[Any]
    tried: str  # newest version, published or not
    drawn: int  # differs when annotations changed, where they are compared

    @property
    def fingerprint(self) -> str:
        """Short and stable: the version of the documents."""
        parts = [SHAPE, self.changes, self.version, self.checks, self.tasks, self.names, self.config,
                 list(self.settings), self.tried, self.drawn]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Material:
    """What was read."""

    project: Project
    settings: Settings  # the project's
    stamp: Stamp
    config: LabelConfig | None  # None where it cannot be read
    history: VoteHistory  # (N,)
    checks: Sequence[Check]
    activity: Sequence[AnnotatorActivity]
    published: Version | None
    tried: Sequence[Version]
    evidence: Evidence | None
    at: datetime
    names: Mapping[str, str] = field(default_factory=dict)  # annotator -> name; the id itself where unknown

    @cached_property
    def current(self) -> NDArray[np.int64]:
        """(M,) rows of the history that are the current view."""
        return np.flatnonzero(self.history.current)

    @cached_property
    def given(self) -> Votes:
        """(M,) current votes as they stand, over tables of those units and annotators that have one."""
        return compact(self.history.votes.select(self.current))

    @cached_property
    def votes(self) -> Votes:
        """(M,) the same; an accepted pre-annotation weighs less, a checked vote what its check says."""
        votes = weighed(self.given, self.checks)
        echo = votes.provenance == Provenance.ACCEPTED
        weight = np.where(echo, votes.weight * np.float32(self.settings.echo_weight), votes.weight)
        return replace(votes, weight=weight.astype(np.float32))

    @cached_property
    def spaces(self) -> dict[str, Space]:
        """Control -> space, in document order."""
        return {} if self.config is None else self.config.spaces(self.given, learned_of(self.published))

    @cached_property
    def task(self) -> NDArray[np.int64]:
        """(U,) Label Studio's task id of each unit of `votes`."""
        return np.array([int(task_of(unit)) for unit in self.given.units], np.int64)

    @cached_property
    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(P,) task ids, ascending, and (P,) annotators: who labelled which task, each pair once."""
        people = max(len(self.given.annotators), 1)
        both = np.sort(self.task[self.given.unit] * people + self.given.annotator)
        both = both[np.diff(both, prepend=-1) > 0]
        return both // people, both % people

    def name(self, annotator: str) -> str:
        """E-mail or name, else the id."""
        return self.names.get(annotator, annotator)


def compact(votes: Votes) -> Votes:
    """The same votes over tables without unused units and annotators."""
    units, unit = _used(votes.units, votes.unit)
    annotators, annotator = _used(votes.annotators, votes.annotator)
    return replace(votes, units=units, unit=unit, annotators=annotators, annotator=annotator)


def _used(table: Sequence[str], codes: NDArray[np.int32]) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    there = np.bincount(codes, minlength=len(table)) > 0
    place = np.cumsum(there, dtype=np.int32) - np.int32(1)
    return tuple(compress(table, there.tolist())), place[codes]


def stamp_of(store: Store, project: Project, settings: Settings) -> Stamp:
    """Read what the documents depend on; a handful of small queries."""
    published = store.versions.published(project.key)
    tried = store.versions.recent(project.key, limit=1)
    names = [[each.annotator, each.name] for each in store.votes.activity(project.key)]
    own = settings_of(settings, project)
    return Stamp(
        changes=store.votes.counts(project.key).changes, version=published.name if published else "",
        checks=store.statistics.checks_made(project.key), tasks=store.tasks.count(project.key),
        names=_digest(json.dumps(sorted(names))), config=_digest(project.label_config),
        settings=(own.echo_weight, own.control_arm_percent, own.shadow_mode), tried=tried[0].name if tried else "",
        drawn=store.statistics.annotations_made(project.key) if draws(_config(project.label_config)) else 0,
    )


def read_material(
    store: Store, registry: Registry, settings: Settings, project: Project, stamp: Stamp, at: datetime
) -> Material:
    """Read it all; the votes are read column by column."""
    published = store.versions.published(project.key)
    activity = store.votes.activity(project.key)
    return Material(
        project=project, settings=settings_of(settings, project), stamp=stamp, config=_config(project.label_config),
        history=store.statistics.history(project.key), checks=store.statistics.checks(project.key), activity=activity,
        published=published, tried=store.versions.recent(project.key, limit=VERSIONS),
        evidence=registry.evidence(published) if published else None, at=at,
        names={each.annotator: each.name for each in activity},
    )


def draws(config: LabelConfig | None) -> bool:
    """Whether annotators draw regions that are compared."""
    return config is not None and bool(config.drawing)


def _config(text: str) -> LabelConfig | None:
    if not text:
        return None
    try:
        return parse_config(text)
    except LabelConfigError:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

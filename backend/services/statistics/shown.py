"""What is shown of the consensus, wherever it is shown: labels by unit, and what is known of their confidence.

Shape legend: D tasks with hidden votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from backend.services.statistics.subject import Labels, Subject, label_text
from model.data.spaces import Value
from model.ensemble.hidden import HiddenCheck

Answers = Mapping[str, tuple[Value, float]]  # control -> (label, how sure)
_PROJECTS = 8  # whose answers are remembered


@dataclass(slots=True, kw_only=True)
class Known:
    """What one version said, under one label config."""

    version: str
    answers: dict[int, tuple[str, Answers]] = field(default_factory=dict)  # task -> (digest of all it rests on, ...)


class Memory:
    """What versions said of tasks whose votes and content did not change; of the projects looked at last."""

    def __init__(self) -> None:
        self._projects: dict[str, Known] = {}

    def of(self, project: str, version: str) -> Known:
        """Empty for another version than the last time."""
        found = self._projects.pop(project, None)
        if found is None or found.version != version:
            found = Known(version=version)
        self._projects[project] = found
        while len(self._projects) > _PROJECTS:
            self._projects.pop(next(iter(self._projects)))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Consensuses:
    """control -> unit -> (label, how sure), and what is known of these."""

    answers: Mapping[str, Mapping[str, tuple[Value, float]]]
    said_by: str  # a version, or `ALONE`
    checks: Mapping[str, HiddenCheck]  # control -> how far the confidence is true

    def on(self, subject: Subject) -> Subject:
        """The subject with these labels; what it had stays beside them as `classical`."""
        found = self.answers.get(subject.name, {})
        voted = np.bincount(subject.votes.unit, minlength=len(subject.votes.units)) > 0
        each = [found.get(unit) if there else None
                for unit, there in zip(subject.votes.units, voted.tolist(), strict=True)]
        labels = Labels(
            label=tuple(None if one is None else label_text(one[0]) for one in each),
            confidence=np.array([np.nan if one is None else one[1] for one in each], np.float64), converged=True,
        )
        return replace(subject, labels=labels, classical=subject.labels, said_by=self.said_by,
                       check=self.checks.get(subject.name))

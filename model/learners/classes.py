"""The learner of choices: one class, a set of classes, numbers in bins; a ladder of base models (`model.ensemble`).

All controls of a project are learned together, those on regions too: a region is a unit with content of its own.
No torch is loaded before something is fitted, asked or loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.judgement import Judgement
from model.errors import ModelError
from model.learners.base import Answers, Learned, Learner, Progress, Question, silent

if TYPE_CHECKING:
    from model.ensemble.fitting import Fit
    from model.ensemble.predictor import Ladder
    from model.quality.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedClasses(Learned):
    """A ladder; `Ladder.predict` gives its probabilities."""

    ladder: Ladder

    @property
    def annotators(self) -> tuple[str, ...]:
        return self.ladder.annotators

    @property
    def controls_learned(self) -> tuple[str, ...]:
        return tuple(self.ladder.controls)

    def answers(self, question: Question) -> dict[str, Answers]:
        """The most probable answers. Raises ModelError without content."""
        if question.tokens is None:
            raise ModelError("classes are foretold from content, and there is none")
        found = self.ladder.predict(
            question.tokens, question.annotators, units=question.units, given=question.votes, texts=question.texts)
        answers = {}
        for name, each in found.items():
            space = self.ladder.controls[name].space
            voted = set() if question.votes is None else _voters(question, name)
            answers[name] = Answers(
                own=[{who: space.decode(p) for who, p in zip(question.annotators, rows, strict=True)
                      if (unit, who) not in voted}
                     for unit, rows in zip(question.units, each.served, strict=True)],
                consensus=[space.decode(p) for p in each.consensus],
            )
        return answers

    def save(self, folder: Path) -> dict[str, Any]:
        self.ladder.save(folder)
        return {}


@dataclass(frozen=True, kw_only=True)
class ClassesLearner(Learner["Fit", LearnedClasses]):
    """The learner."""

    config: LadderConfig = field(default_factory=LadderConfig)

    name: ClassVar[str] = "classes"

    def fit(
        self, data: TrainingSet, previous: LearnedClasses | None = None, *, progress: Progress = silent,
        device: str = "cpu",
    ) -> Fit:
        from model.ensemble.ladder import fit

        before = None if previous is None else previous.ladder
        return fit(data, self.config, previous=before, progress=progress, device=device)

    def learned(self, fitted: Fit) -> LearnedClasses:
        return LearnedClasses(ladder=fitted.ladder)

    def judge(
        self, fitted: Fit, published: LearnedClasses | None, data: TrainingSet, *, behind: float = 0.0,
        earlier: Sequence[tuple[str, Evidence]] = (), waived: Collection[str] = (),
    ) -> Judgement:
        """By the gate (`model.ensemble.gate`), which says what it makes of earlier versions and of annotators."""
        from model.ensemble.ladder import judge

        before = None if published is None else published.ladder
        return judge(fitted, before, data, self.config, behind=behind, earlier=earlier, waived=waived)

    def load(self, folder: Path, about: Mapping[str, Any], *, device: str = "cpu") -> LearnedClasses:
        from model.ensemble.predictor import Ladder

        return LearnedClasses(ladder=Ladder.load(folder, device=device))


def _voters(question: Question, control: str) -> set[tuple[str, str]]:
    assert question.votes is not None
    votes = question.votes.of_control(control)
    pairs = np.unique(np.stack([votes.unit, votes.annotator], 1), axis=0) if len(votes) else ()
    return {(votes.units[u], votes.annotators[a]) for u, a in pairs}

"""The learner of orders: Plackett-Luce scores of items, control by control (`model.ranking_model`).

Votes with a control whose values are rankings are learned from; the content of items is not read. What is learned is
small, so it is kept among the figures of a version and no folder is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from model.data.dataset import TrainingSet
from model.data.judgement import Judgement
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance, Votes
from model.errors import CheckpointError, ModelError, NotEnoughVotes
from model.learners.base import Answers, Learned, Learner, Progress, Question, silent
from model.ranking_gate import judge_rankings
from model.ranking_model import Given, RankingModel, fit_rankings
from model.rankings import mean_rank, order_of

KEPT = "rankings"  # under which figures of a version hold the scores


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedRankings(Learned):
    """Scores of the items of each control."""

    models: Mapping[str, RankingModel]
    annotators: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()  # controls whose kept scores cannot be read
    accepted_weight: float = 0.3  # of an accepted prediction among the votes on a unit

    @property
    def controls_learned(self) -> tuple[str, ...]:
        return tuple(self.models)

    def answers(self, question: Question) -> dict[str, Answers]:
        """Orders of what each unit lists, of two items or more; where a control is not better than equal chances, only
        the mean rank of the votes there are."""
        return {name: self._of(name, model, question) for name, model in self.models.items() if name in question.items}

    def _of(self, name: str, model: RankingModel, question: Question) -> Answers:
        items, given = question.items[name], _given(question, name, self.accepted_weight)
        own: list[dict[str, Value]] = []
        agreed: list[Value | None] = []
        for at, scores in enumerate(model.scores(items, question.annotators, given)):
            speaks = model.speaks(seen=bool(given[at])) and len(items[at]) > 1
            voted = {who for who, *_ in given[at]}
            orders = [order_of(dict(zip(items[at], (-row).tolist(), strict=True))) for row in scores]
            own.append({who: order for who, order in zip(question.annotators, orders, strict=False)
                        if speaks and who not in voted})
            mean = mean_rank(value for _, value, _ in given[at])
            agreed.append(orders[-1] if mean is None and speaks else mean)
        return Answers(own=own, consensus=agreed)

    def save(self, folder: Path) -> dict[str, Any]:
        return {KEPT: {name: model.to_json() for name, model in self.models.items()}}


@dataclass(frozen=True, kw_only=True)
class RankingsLearner(Learner[LearnedRankings, LearnedRankings]):
    """The learner."""

    accepted_weight: float = 0.3

    name: ClassVar[str] = "rankings"

    def fit(
        self, data: TrainingSet, previous: LearnedRankings | None = None, *, progress: Progress = silent,
        device: str = "cpu",
    ) -> LearnedRankings:
        """Each control that has rankings enough, from nothing: it takes seconds."""
        models = {}
        for name in ranked_controls(data.votes):
            found = fit_rankings(self._votes(data, name, heldout=False))
            if found is not None:
                models[name] = found
        if not models:
            raise NotEnoughVotes("there are too few rankings of two items or more")
        return LearnedRankings(models=models, accepted_weight=self.accepted_weight, annotators=tuple(
            sorted({who for model in models.values() for who in model.annotators})))

    def learned(self, fitted: LearnedRankings) -> LearnedRankings:
        return fitted

    def judge(
        self, fitted: LearnedRankings, published: LearnedRankings | None, data: TrainingSet
    ) -> Judgement:
        """Control by control (`figures["controls"]`): those that are shown to be worse stay as they are published."""
        found = {
            name: judge_rankings(
                model, None if published is None else published.models.get(name), self._votes(data, name, heldout=True))
            for name, model in fitted.models.items()
        }
        return Judgement(
            publish=any(each.new for each in found.values()),
            reason=" ".join(f"Rankings with '{name}': {each.reason}." for name, each in found.items()),
            figures={"controls": {name: {**each.figures, "new": each.new} for name, each in found.items()}},
        )

    def load(self, folder: Path, about: Mapping[str, Any], *, device: str = "cpu") -> LearnedRankings:
        """Controls whose scores are damaged are told by name and left out; raises CheckpointError where all are."""
        stored = about.get(KEPT)
        models, damaged = {}, []
        for name, each in (stored if isinstance(stored, Mapping) else {}).items():
            try:
                models[str(name)] = RankingModel.from_json(each)
            except (ModelError, KeyError, TypeError, ValueError):
                damaged.append(str(name))
        if damaged and not models:
            raise CheckpointError("the stored scores of rankings are damaged")
        return LearnedRankings(
            models=models, damaged=tuple(damaged), accepted_weight=self.accepted_weight,
            annotators=tuple(sorted({who for model in models.values() for who in model.annotators})),
        )

    def _votes(self, data: TrainingSet, name: str, *, heldout: bool) -> Votes:
        """The rankings with one control, accepted predictions weighing less."""
        votes = data.votes.of_control(name)
        rows = np.array([data.heldout(unit) is heldout for unit in votes.units], np.bool_)[votes.unit]
        return weighed(votes.select(rows), self.accepted_weight)


def ranked_controls(votes: Votes) -> list[str]:
    """Controls with a ranking among their votes."""
    kinds = np.array([value.kind is ValueKind.RANKING for value in votes.values], np.bool_)
    used = np.unique(votes.control[kinds[votes.value]]) if len(votes) else ()
    return [votes.controls[code] for code in used]


def weighed(votes: Votes, accepted_weight: float) -> Votes:
    """The same votes, accepted predictions weighing less."""
    accepted = votes.provenance == Provenance.ACCEPTED
    return replace(votes, weight=votes.weight * np.where(accepted, np.float32(accepted_weight), np.float32(1.0)))


def _given(question: Question, name: str, accepted_weight: float) -> Sequence[Sequence[Given]]:
    """The rankings on each unit."""
    found: dict[str, list[Given]] = {unit: [] for unit in question.units}
    if question.votes is not None:
        votes = weighed(question.votes.of_control(name), accepted_weight)
        for u, a, v, weight in zip(votes.unit, votes.annotator, votes.value, votes.weight, strict=True):
            if votes.units[u] in found:
                found[votes.units[u]].append((votes.annotators[a], votes.values[v], float(weight)))
    return [found[unit] for unit in question.units]

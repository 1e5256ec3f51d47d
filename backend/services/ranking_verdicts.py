"""Rankings in a training: learned from votes, judged against those that are published, kept among a version's figures.

Scores of items are fitted apart from the network, by a learner of their own (`model.learners.rankings`), so each
control's are judged by themselves: where the new ones are shown to be noticeably worse, the version carries on with the
published ones and says so. A version is published or rejected as a whole by its network; where the project asks for
orders alone there is no network, and the version is rejected when nothing in it would be new.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backend.labeling import LabelConfig
from backend.registry import Loaded
from backend.services.rankings import rankers
from model.data.dataset import TrainingSet
from model.data.votes import Votes
from model.errors import NotEnoughVotes
from model.learners.rankings import LearnedRankings, RankingsLearner
from model.learners.registry import RANKINGS
from model.ranking_model import RankingModel

HeldOut = Callable[[float], Callable[[str], bool]]  # percent -> whether a unit is held out


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRankings:
    """What a version gets of rankings. `figures` and `gate` are JSON-able, by control."""

    figures: Mapping[str, Mapping[str, Any]]
    gate: Mapping[str, Mapping[str, Any]]
    reason: str  # sentences, "" without rankings
    news: bool  # whether any of them was learned now


def rankings_alone(config: LabelConfig) -> bool:
    """Whether orders are all that can be learned."""
    return {control.learner for control in config.controls} - {""} == {RANKINGS}


def ranking_votes(config: LabelConfig, votes: Votes) -> dict[str, Votes]:
    """Control -> its votes."""
    return {control.name: votes.of_control(control.name) for control in rankers(config)}


def learned_rankings(
    learner: RankingsLearner, votes: Mapping[str, Votes], heldout: Callable[[str], bool]
) -> dict[str, RankingModel]:
    """Control -> what the rankings on tasks that are not held out say; those with too few have none."""
    models: dict[str, RankingModel] = {}
    for mine in votes.values():
        with contextlib.suppress(NotEnoughVotes):
            models |= learner.fit(_lesson(mine, heldout)).models
    return models


def judged_rankings(
    learner: RankingsLearner, votes: Mapping[str, Votes], learned: Mapping[str, RankingModel],
    published: Loaded | None, heldout: HeldOut, percent: float,
) -> JudgedRankings:
    """The new or the published scores of each control; `percent` of the tasks was held out from the new ones.

    They are compared on tasks that were held out from both.
    """
    figures: dict[str, Mapping[str, Any]] = {}
    gate: dict[str, Mapping[str, Any]] = {}
    said, news = [], False
    for name, model in learned.items():
        old = None if published is None else published.rankings.get(name)
        stored = published.version.figures["rankings"][name] if published is not None and old is not None else {}
        untouched = min(percent, float(stored.get("heldout_percent", percent)))
        verdict = learner.judge(
            LearnedRankings(models={name: model}), None if old is None else LearnedRankings(models={name: old}),
            _lesson(votes[name], heldout(untouched)),
        )
        if verdict.publish:
            figures[name] = {**model.to_json(), "heldout_percent": percent}
        else:
            figures[name] = {**stored, "learned_by": stored.get("learned_by", published and published.version.name)}
        gate[name] = verdict.figures["controls"][name]
        said.append(verdict.reason)
        news |= verdict.publish
    return JudgedRankings(figures=figures, gate=gate, reason=" ".join(said), news=news)


def _lesson(votes: Votes, heldout: Callable[[str], bool]) -> TrainingSet:
    """Orders are learned without content."""
    return TrainingSet(votes=votes, spaces={}, tokens=lambda units: [], heldout=heldout)

"""Rankings in a training: learned from votes, judged against those that are published, kept among a version's figures.

Scores of items are fitted apart from the network (`model.ranking_model`), so each control's are judged by themselves
(`model.ranking_gate`): where the new ones are shown to be noticeably worse, the version carries on with the published
ones and says so. A version is published or rejected as a whole by its network; where the project asks for orders alone
there is no network, and the version is rejected when nothing in it would be new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from backend.labeling import LabelConfig
from backend.registry import Loaded
from backend.services.rankings import rankers
from model.data.votes import Provenance, Votes
from model.ranking_gate import judge_rankings
from model.ranking_model import RankingModel, fit_rankings

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
    others = any(control.predicted or control.name in config.regional for control in config.controls)
    return bool(rankers(config)) and not others


def ranking_votes(config: LabelConfig, votes: Votes, echo_weight: float) -> dict[str, Votes]:
    """Control -> its votes, accepted predictions weighing less."""
    found = {}
    for control in rankers(config):
        mine = votes.of_control(control.name)
        echo = np.where(mine.provenance == Provenance.ACCEPTED, np.float32(echo_weight), np.float32(1.0))
        found[control.name] = replace(mine, weight=mine.weight * echo)
    return found


def learned_rankings(votes: Mapping[str, Votes], heldout: Callable[[str], bool]) -> dict[str, RankingModel]:
    """Control -> what the rankings on tasks that are not held out say; those with too few have none."""
    models = {name: fit_rankings(_on(mine, heldout, False)) for name, mine in votes.items()}
    return {name: model for name, model in models.items() if model is not None}


def judged_rankings(
    votes: Mapping[str, Votes], learned: Mapping[str, RankingModel], published: Loaded | None, heldout: HeldOut,
    percent: float,
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
        verdict = judge_rankings(model, old, _on(votes[name], heldout(untouched), True))
        if verdict.new:
            figures[name] = {**model.to_json(), "heldout_percent": percent}
        else:
            figures[name] = {**stored, "learned_by": stored.get("learned_by", published and published.version.name)}
        gate[name] = {**verdict.figures, "new": verdict.new}
        said.append(f"Rankings with '{name}': {verdict.reason}.")
        news |= verdict.new
    return JudgedRankings(figures=figures, gate=gate, reason=" ".join(said), news=news)


def _on(votes: Votes, heldout: Callable[[str], bool], wanted: bool) -> Votes:
    chosen = np.array([heldout(unit) is wanted for unit in votes.units], np.bool_)
    return votes.select(chosen[votes.unit])

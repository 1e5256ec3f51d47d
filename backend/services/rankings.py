"""Rankings beside what the network predicts: fitted from votes by each training, kept among the figures of a version.

A task gets an order for each annotator who has a prediction of their own, from Plackett-Luce scores
(`model.ranking_model`), as far as these were better than equal chances. The consensus of a task with rankings is their
mean rank; of one without, the order of the mean annotator. Regions are added to the predictions that there are: a
project that asks for rankings alone has no version, and none.

Scores of regions say how many of the pairs of items are expected to stand in the right order. A consensus of rankings
has the share of the votes on its pairs that agree with it, with one vote for and one against added to each pair.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling import LabelConfig
from backend.labeling.controls.ranker import Ranker
from backend.records import StoredVote
from backend.services.served import ReadyTask, TaskPredictions
from model.crowd.rankings import ranks_of
from model.errors import ModelError
from model.ranking_model import RankingModel, fit_rankings
from model.rankings import mean_places, order_of
from model.spaces import Value, ValueKind
from model.votes import Provenance, Votes

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]


def learned_rankings(
    config: LabelConfig, votes: Votes, heldout: Callable[[str], bool], echo_weight: float
) -> dict[str, dict[str, Any]]:
    """Control -> its model as JSON, from rankings on tasks that are not held out; those with too few have none."""
    found = {}
    for control in _rankers(config):
        mine = votes.of_control(control.name)
        mine = mine.select(~np.array([heldout(unit) for unit in mine.units], np.bool_)[mine.unit])
        echo = np.where(mine.provenance == Provenance.ACCEPTED, np.float32(echo_weight), np.float32(1.0))
        model = fit_rankings(replace(mine, weight=mine.weight * echo))
        if model is not None:
            found[control.name] = model.to_json()
    return found


def with_rankings(
    figures: Mapping[str, Any], config: LabelConfig, tasks: Sequence[ReadyTask], shaped: Sequence[TaskPredictions],
    votes: Sequence[StoredVote], *, echo_weight: float,
) -> list[TaskPredictions]:
    """The predictions with orders added to them; `figures` are those of the version that made them."""
    stored = figures.get("rankings", {})
    answers = list(shaped)
    for control in _rankers(config):
        if control.name not in stored:
            continue
        try:
            model = RankingModel.from_json(stored[control.name])
        except (ModelError, KeyError, TypeError, ValueError):
            log.warning("the scores of the rankings of a version are damaged; none are predicted")
            continue
        answers = _added(model, control, tasks, answers, votes, echo_weight)
    return answers


def _rankers(config: LabelConfig) -> list[Ranker]:
    """Those that can be predicted: one list, shown always."""
    return [each for each in config.controls if isinstance(each, Ranker) and not each.buckets and not each.shown_when]


def _added(
    model: RankingModel, control: Ranker, tasks: Sequence[ReadyTask], shaped: Sequence[TaskPredictions],
    votes: Sequence[StoredVote], echo_weight: float,
) -> list[TaskPredictions]:
    annotators = sorted({who for one in shaped for who in one.own})
    row = {who: at for at, who in enumerate(annotators)}
    of_task: dict[int, list[StoredVote]] = {}
    for vote in votes:
        if vote.control == control.name and vote.value.kind is ValueKind.RANKING:
            of_task.setdefault(vote.task_id, []).append(vote)
    given = [of_task.get(task.id, []) for task in tasks]
    items = [control.items(task.data) for task in tasks]
    scores = model.scores(items, annotators, [
        [(each.annotator, each.value, echo_weight if each.provenance is Provenance.ACCEPTED else 1.0)
         for each in mine] for mine in given])
    answers = []
    for task, one, names, mine, found in zip(tasks, shaped, items, given, scores, strict=True):
        if len(names) < 2:
            answers.append(one)
            continue
        agreed = _agreed(names, [each.value for each in mine], found[-1])
        speaks = model.speaks(seen=bool(mine))
        if agreed is None and speaks:
            agreed = _by_scores(names, found[-1])
        own = one.own if not speaks else {
            who: _with(prediction, control, *_by_scores(names, found[row[who]]), task.data)
            for who, prediction in one.own.items()}
        consensus = one.consensus if one.consensus is None or agreed is None else _with(
            one.consensus, control, *agreed, task.data)
        answers.append(TaskPredictions(task_id=one.task_id, own=own, consensus=consensus))
    return answers


def _by_scores(names: Sequence[str], scores: Floats) -> tuple[Value, float]:
    """The order of scores, best first, and how many of its pairs are expected to be right."""
    upper = np.triu_indices(len(names), 1)
    apart = np.abs(scores[:, None] - scores)[upper]
    return order_of(dict(zip(names, (-scores).tolist(), strict=True))), float((1.0 / (1.0 + np.exp(-apart))).mean())


def _agreed(names: Sequence[str], rankings: Sequence[Value], scores: Floats) -> tuple[Value, float] | None:
    """The mean rank of the rankings of the task, ties by scores, what nobody ranked last; None without rankings."""
    places = mean_places(rankings)
    if not places.keys() & set(names):
        return None
    order = sorted(range(len(names)), key=lambda at: (round(places.get(names[at], 2.0), 9), -scores[at]))
    ranks = [found for value in rankings if (found := ranks_of(value)) is not None]
    shares = []
    for before, after in combinations([names[at] for at in order], 2):
        told = [float(np.sign(one[after] - one[before])) for one in ranks if before in one and after in one]
        shares.append((sum((sign + 1.0) / 2.0 for sign in told) + 1.0) / (len(told) + 2.0))
    return Value(ValueKind.RANKING, tuple((names[at],) for at in order)), float(np.mean(shares))


def _with(
    prediction: dict[str, Any], control: Ranker, value: Value, sure: float, data: Mapping[str, Any]
) -> dict[str, Any]:
    """The prediction with a region more; as sure as its least sure answer."""
    regions = control.encode(value, sure, data)
    return {**prediction, "result": [*prediction["result"], *regions],
            "score": round(min(prediction["score"], sure), 6)}

"""Rankings in predictions, beside what the network says or alone where there is none.

A task gets an order for each annotator who wants a prediction of their own, from Plackett-Luce scores
(`model.ranking_model`), as far as these were better than equal chances. The consensus of a task with rankings is their
mean rank; of one without, the order of the mean annotator. Regions are added to the predictions that there are, or make
one where there is none; a Ranker that the other predicted answers leave hidden (`visibleWhen`) gets none.

Scores of regions say how many of the pairs of items are expected to stand in the right order. A consensus of rankings
has the share of the votes on its pairs that agree with it, with one vote for and one against added to each pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.labeling import LabelConfig
from backend.labeling.controls.ranker import Ranker
from backend.prediction_names import consensus_version, own_version
from backend.records import StoredVote
from backend.services.served import ReadyTask, TaskPredictions
from model.crowd.rankings import ranks_of
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance
from model.ranking_model import RankingModel
from model.rankings import mean_places, order_of

Floats = NDArray[np.float64]
Order = tuple[Value, float]  # and how many of its pairs are expected to be right


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What is predicted of the items of one task; nothing where nothing is known."""

    own: Mapping[str, Order]  # annotator -> theirs
    consensus: Order | None


def rankers(config: LabelConfig) -> list[Ranker]:
    """The controls whose orders are learned."""
    return [each for each in config.controls if isinstance(each, Ranker) and each.learner]


def with_rankings(
    models: Mapping[str, RankingModel], config: LabelConfig, tasks: Sequence[ReadyTask],
    shaped: Sequence[TaskPredictions], votes: Sequence[StoredVote], *, name: str, echo_weight: float,
) -> list[TaskPredictions]:
    """The predictions under version `name` with orders added to them; `models` are those of the version."""
    answers = list(shaped)
    for control in rankers(config):
        if control.name in models:
            found = orders(models[control.name], control, tasks, votes, echo_weight)
            answers = [_added(config, control, task, one, mine, name)
                       for task, one, mine in zip(tasks, answers, found, strict=True)]
    return answers


def orders(
    model: RankingModel, control: Ranker, tasks: Sequence[ReadyTask], votes: Sequence[StoredVote], echo_weight: float,
) -> Iterator[Orders]:
    """Of each task, in order."""
    annotators = sorted({who for task in tasks for who in task.annotators})
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
    for task, names, mine, found in zip(tasks, items, given, scores, strict=True):
        if len(names) < 2:
            yield Orders(own={}, consensus=None)
            continue
        speaks = model.speaks(seen=bool(mine))
        agreed = _agreed(names, [each.value for each in mine], found[-1])
        yield Orders(
            own={who: _by_scores(names, found[row[who]]) for who in task.annotators} if speaks else {},
            consensus=_by_scores(names, found[-1]) if agreed is None and speaks else agreed,
        )


def _added(
    config: LabelConfig, control: Ranker, task: ReadyTask, one: TaskPredictions, found: Orders, name: str,
) -> TaskPredictions:
    own = dict(one.own)
    for who, order in found.own.items():
        made = _with(config, control, own.get(who), order, task.data, own_version(who, name))
        if made is not None:
            own[who] = made
    consensus = one.consensus if found.consensus is None else _with(
        config, control, one.consensus, found.consensus, task.data, consensus_version(name))
    return TaskPredictions(task_id=one.task_id, own=own, consensus=consensus)


def _by_scores(names: Sequence[str], scores: Floats) -> Order:
    """The order of scores, best first, and how many of its pairs are expected to be right."""
    upper = np.triu_indices(len(names), 1)
    apart = np.abs(scores[:, None] - scores)[upper]
    return order_of(dict(zip(names, (-scores).tolist(), strict=True))), float((1.0 / (1.0 + np.exp(-apart))).mean())


def _agreed(names: Sequence[str], rankings: Sequence[Value], scores: Floats) -> Order | None:
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
    config: LabelConfig, control: Ranker, prediction: dict[str, Any] | None, order: Order, data: Mapping[str, Any],
    version: str,
) -> dict[str, Any] | None:
    """The prediction with a region more, as sure as its least sure answer; what there was where the control is hidden.
    """
    before = prediction or {"result": [], "score": 1.0, "model_version": version}
    if not config.shows(control, before["result"], data):
        return prediction
    value, sure = order
    regions = control.encode(value, sure, data)
    return {**before, "result": [*before["result"], *regions], "score": round(min(before["score"], sure), 6)}

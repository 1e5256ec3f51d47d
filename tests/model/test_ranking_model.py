"""Predicted rankings: tastes of annotators are found, what cannot be known is not said, stored models answer alike."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from model import ranking_model
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes
from model.errors import ModelError
from model.ranking_model import LEAST_VOTES, RankingModel, fit_rankings, newest_rankings

ITEMS = ("a", "b", "c", "d")
TASTE = np.array([[2.0, 1.0, -1.0, -2.0], [2.0, 1.0, -1.0, -2.0], [-2.0, -1.0, 1.0, 2.0]])
PEOPLE = ("x", "y", "z")


def order(names: tuple[str, ...], scores: np.ndarray, rng: np.random.Generator) -> Value:
    """A Plackett-Luce draw: the order of scores with Gumbel noise."""
    best = np.argsort(-(scores + rng.gumbel(size=len(scores))))
    return Value(ValueKind.RANKING, tuple((names[at],) for at in best))


def ballots(units: int, *, ids_mean_something: bool, spread: float, seed: int = 0) -> list[Vote]:
    rng = np.random.default_rng(seed)
    votes = []
    for unit in range(units):
        mine = spread * rng.normal(size=4)
        names = ITEMS if ids_mean_something else tuple(f"{unit}{item}" for item in ITEMS)
        votes += [Vote(unit=str(unit), annotator=who, control="r",
                       value=order(names, mine + ids_mean_something * taste, rng))
                  for who, taste in zip(PEOPLE, TASTE, strict=True)]
    return votes


def votes_of(units: int, *, ids_mean_something: bool, spread: float, seed: int = 0) -> Votes:
    return Votes.from_votes(ballots(units, ids_mean_something=ids_mean_something, spread=spread, seed=seed))


@pytest.fixture(scope="module")
def tastes() -> RankingModel:
    model = fit_rankings(votes_of(40, ids_mean_something=True, spread=0.3))
    assert model is not None
    return model


def test_annotators_with_opposite_tastes_get_opposite_orders(tastes: RankingModel) -> None:
    (scores,) = tastes.scores([ITEMS], ["x", "z", "nobody"])
    assert np.argsort(-scores[0]).tolist() == [0, 1, 2, 3] and np.argsort(-scores[1]).tolist() == [3, 2, 1, 0]
    assert scores[2] == pytest.approx(tastes.pooled[:-1])  # an annotator nobody knows has no taste of their own
    assert scores[3] == pytest.approx(scores[2] + tastes.own[:-1, :-1].mean(0))
    unseen = tastes.figures["unseen"]
    assert unseen["loss"] < unseen["pooled"] and unseen["loss"] < unseen["uniform"] and unseen["low"] > 0.0
    assert tastes.speaks(seen=False)


def test_items_of_one_task_are_known_from_its_rankings_alone() -> None:
    model = fit_rankings(votes_of(40, ids_mean_something=False, spread=2.0))
    assert model is not None and len(model.items) == 64
    assert model.speaks(seen=True) and not model.speaks(seen=False)
    given = [("x", Value(ValueKind.RANKING, (("new2",), ("new0",), ("new1",))), 1.0)]
    names = ["new0", "new1", "new2", "new3"]
    scores, other = model.scores([names, names], ["y"], [given, []])
    assert not other.any()  # rankings of one unit say nothing of another
    assert np.argsort(-scores[0])[[0, -1]].tolist() == [2, 1] and scores[0, 3] == 0.0
    turned = [("x", Value(ValueKind.RANKING, (("new1",), ("new0",), ("new2",))), 1.0)]
    both = model.scores([names, names], ["y"], [given, turned])
    assert both[0] == pytest.approx(scores, abs=1e-3) and np.argsort(-both[1][0])[0] == 1


def test_noise_is_not_predicted() -> None:
    model = fit_rankings(votes_of(40, ids_mean_something=False, spread=0.0))
    assert model is not None and not model.speaks(seen=True) and not model.speaks(seen=False)


def test_a_stored_model_answers_alike_and_a_damaged_one_is_refused(tastes: RankingModel) -> None:
    stored = json.loads(json.dumps(tastes.to_json()))
    again = RankingModel.from_json(stored)
    given = [("z", Value(ValueKind.RANKING, (("a", "b"), ("c",))), 0.5)]
    (told,), (before,) = (each.scores([ITEMS], PEOPLE, [given]) for each in (again, tastes))
    assert told == pytest.approx(before, abs=0.01)
    assert again.speaks(seen=True) == tastes.speaks(seen=True)
    with pytest.raises(ModelError, match="do not fit together"):
        RankingModel.from_json({**stored, "pooled": [1.0]})


def test_of_many_rankings_the_newest_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones say the opposite; only as many as the work allows are read, from the newest on."""
    old, new = (ballots(20, ids_mean_something=True, spread=0.0, seed=seed) for seed in (1, 2))
    turned = [replace(vote, unit=f"old {vote.unit}", time=100.0,
                      value=Value(ValueKind.RANKING, tuple(reversed(vote.value.data)))) for vote in old]
    votes = [*(replace(vote, time=200.0) for vote in new), *turned]
    monkeypatch.setattr(ranking_model, "MOST_WORK", 4.0 * 60)  # 60 rankings of 4 items
    model = fit_rankings(Votes.from_votes(votes))
    assert model is not None and model.figures["votes"] == 60
    assert model.scores([ITEMS], ["x"])[0][0].argmax() == 0


def test_ties_cost_more() -> None:
    strict, tied = Value(ValueKind.RANKING, (("a",), ("b",), ("c",))), Value(ValueKind.RANKING, (("a", "b"), ("c",)))
    votes = [Vote(unit=str(unit), annotator="x", control="r", value=value, time=unit)
             for unit, value in enumerate([strict] * 100)]
    few = [replace(vote, value=tied) for vote in votes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking_model, "MOST_WORK", 240.0)
        assert len(newest_rankings(Votes.from_votes(votes))[0]) == 80
        assert len(newest_rankings(Votes.from_votes(few))[0]) == LEAST_VOTES


def test_too_few_rankings_make_no_model() -> None:
    assert fit_rankings(votes_of(3, ids_mean_something=True, spread=0.0)) is None
    single = Votes.from_votes(Vote(unit=str(at), annotator="x", control="r", value=Value(ValueKind.RANKING, (("a",),)))
                              for at in range(20))
    assert fit_rankings(single) is None

"""Worse orders do not replace better ones; what cannot be told apart, or is better, does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from model import ranking_gate
from model.data.spaces import Value, ValueKind
from model.data.votes import Vote, Votes
from model.ranking_gate import RankingVerdict, judge_rankings, served_losses
from model.ranking_model import RankingModel, fit_rankings
from tests.model.test_ranking_model import votes_of


@pytest.fixture(scope="module")
def tastes() -> RankingModel:
    model = fit_rankings(votes_of(40, ids_mean_something=True, spread=0.3))
    assert model is not None
    return model


@pytest.fixture(scope="module")
def heldout() -> Votes:
    return votes_of(12, ids_mean_something=True, spread=0.3, seed=7)


def turned(model: RankingModel) -> RankingModel:
    return replace(model, pooled=-model.pooled, own=-model.own)


def silent(model: RankingModel) -> RankingModel:
    return replace(model, figures={})


def test_worse_orders_do_not_replace_better_ones(tastes: RankingModel, heldout: Votes) -> None:
    verdict = judge_rankings(turned(tastes), tastes, heldout)
    assert not verdict.new and "shown to be worse than the published ones, which stay" in verdict.reason
    assert verdict.figures["low"] > 0.0 and verdict.figures["new"] > verdict.figures["published"]
    assert verdict.figures["answers"] == 36 + 24 and verdict.figures["units"] == 12  # two of three hidden on each unit
    assert not judge_rankings(silent(tastes), tastes, heldout).new  # who falls silent is as good as equal chances


def test_better_or_equal_ones_do(tastes: RankingModel, heldout: Votes) -> None:
    better = judge_rankings(tastes, silent(tastes), heldout)
    assert better.new and "shown to be better" in better.reason and better.figures["high"] < 0.0
    same = judge_rankings(tastes, tastes, heldout)
    assert same.new and same.figures["mean"] == 0.0 and "not shown to be worse" in same.reason


def test_a_difference_that_counts_as_none_holds_nothing_back(
    tastes: RankingModel, heldout: Votes, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, unit = served_losses(tastes, heldout)
    more = np.random.default_rng(2).uniform(0.8, 1.2, len(losses))
    new = replace(tastes, figures=dict(tastes.figures))

    def judged(nats: float) -> RankingVerdict:
        told = {id(new): losses + nats * more, id(tastes): losses}
        monkeypatch.setattr(ranking_gate, "served_losses", lambda model, _: (told[id(model)], unit))
        return judge_rankings(new, tastes, heldout)

    hair, much = judged(0.004), judged(0.02)
    assert hair.new and hair.figures["low"] > 0.0 and "but up to 0.01 counts as no difference" in hair.reason
    assert not much.new and "which stay" in much.reason


def test_without_enough_held_out_rankings_nothing_is_compared(tastes: RankingModel) -> None:
    few = judge_rankings(turned(tastes), tastes, votes_of(4, ids_mean_something=True, spread=0.3, seed=7))
    assert few.new and few.figures == {"test": "none", "answers": 20, "units": 4} and "too few" in few.reason
    none = judge_rankings(turned(tastes), tastes, Votes.from_votes([]))
    assert none.new and none.figures["answers"] == 0


def test_a_first_model_says_how_far_it_beats_equal_chances(tastes: RankingModel, heldout: Votes) -> None:
    verdict = judge_rankings(tastes, None, heldout)
    assert verdict.new and "better than equal chances on tasks without a ranking by " in verdict.reason
    assert "only the mean rank" in judge_rankings(silent(tastes), None, heldout).reason


def test_silence_costs_what_equal_chances_cost_and_what_cannot_be_scored_costs_nothing(tastes: RankingModel) -> None:
    rankings = [("x", "a>b>c"), ("y", "a=b>c"), ("z", "a"), ("w", "a>a")]
    votes = Votes.from_votes(
        Vote(unit="1", annotator=who, control="r", scored=who != "x",
             value=Value(ValueKind.RANKING, tuple(tuple(part.split("=")) for part in told.split(">"))))
        for who, told in rankings)
    losses, unit = served_losses(silent(tastes), votes)
    assert losses == pytest.approx([np.log(3.0)]) and len(unit) == 1  # y's: x's may not be scored and is hidden
    spoken, _ = served_losses(tastes, votes)
    assert spoken[0] < losses[0]

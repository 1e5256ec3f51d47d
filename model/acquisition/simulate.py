"""Replay of a policy on votes that exist: bought in batches, learned from after each, scored against held-out votes.

For every seed a part of each task's votes is the reference, drawn at random; their majority is what the consensus is
scored against (where the reference is tied, a task counts by 1 / number of leaders). The rest is for sale. Every policy
starts from the same few votes, sees the same beliefs for the same votes (`beliefs`), and may ask only for votes that
are for sale. Nothing of the reference is seen while buying.

    area = mean over the curve (trapezoid) of accuracy, from the first votes to the whole budget

Shape legend: U units, A annotators, C classes, B batches, S seeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from model.acquisition.base import AcquisitionError, Flags, Floats, Policy, Situation
from model.acquisition.beliefs import BeliefConfig, Beliefs, fit_beliefs

Codes = NDArray[np.int64]
_A_TASK = 4  # votes bought by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How votes are replayed."""

    reference: float = 0.5  # share of each task's votes that are held out
    start: int = 1  # votes of each task that are there before anything is asked
    budget: int | None = None  # votes that are bought; None: four a task. Fewer where fewer are for sale
    batches: int = 16  # equal parts of the budget
    at_most_per_unit: int = 1  # in one batch
    balance: float = 0.5  # nobody is asked for more than twice an equal share of a batch
    beliefs: BeliefConfig = field(default_factory=BeliefConfig)

    def __post_init__(self) -> None:
        if not 0.0 < self.reference < 1.0 or self.start < 0 or self.batches < 1:
            raise AcquisitionError("a replay needs a reference between 0 and 1 and at least one batch")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Market:
    """One seed's split of the votes."""

    given: Codes  # (U, A) where everybody starts
    pool: Codes  # (U, A) what may be bought, -1 elsewhere
    credit: Floats  # (U, C) what each answer scores
    budget: int  # votes that are bought


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """What one policy did with one seed."""

    votes: Codes  # (B + 1,) bought so far
    credit: NDArray[np.float32]  # (B + 1, U) score of each task

    @property
    def accuracy(self) -> Floats:
        return np.asarray(self.credit.mean(axis=1, dtype=np.float64))

    @property
    def areas(self) -> Floats:
        """(U,) area under each task's curve, 0 to 1."""
        steps = np.diff(self.votes)[:, None] / max(float(self.votes[-1] - self.votes[0]), 1.0)
        middle = (self.credit[1:].astype(np.float64) + self.credit[:-1]) / 2.0
        return np.asarray((steps * middle).sum(axis=0))


def split(votes: Codes, classes: int, replay: Replay, seed: int) -> Market:
    """Split the votes (U, A) of tasks. Raises AcquisitionError where nothing is left to buy."""
    rng = np.random.default_rng(seed)
    has = votes >= 0
    turn = _ranks(np.where(has, rng.random(votes.shape), np.inf))  # (U, A) 0 for the first vote of a task
    number = has.sum(axis=1, keepdims=True)
    held = np.where(number > 1, np.maximum(1, np.floor(number * replay.reference + 0.5)), 0)
    reference = has & (turn < held)
    given = np.where(has & ~reference & (turn < held + replay.start), votes, -1)
    pool = np.where(has & ~reference & (given < 0), votes, -1)
    counts = np.stack([((votes == k) & reference).sum(axis=1) for k in range(classes)], axis=1)  # (U, C)
    leads = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
    kept = leads.any(axis=1)
    for_sale = int((pool[kept] >= 0).sum())
    budget = min(int(_A_TASK * kept.sum()) if replay.budget is None else replay.budget, for_sale)
    if budget < replay.batches:
        raise AcquisitionError(
            f"{budget} votes to buy in {replay.batches} batches is too few: {for_sale} are for sale after each task's "
            f"reference and its first votes")
    credit = leads / np.maximum(leads.sum(axis=1, keepdims=True), 1)
    return Market(given=given[kept], pool=pool[kept], credit=credit[kept], budget=budget)


def replay_policy(market: Market, policy: Policy, replay: Replay) -> Curve:
    """Buy with one policy until the budget is spent."""
    given, classes = market.given.copy(), market.credit.shape[1]
    rows, bought = np.arange(len(given)), 0
    votes, credit = [0], []
    stops = np.linspace(0, market.budget, replay.batches + 1).round().astype(int)
    for stop in stops[1:]:
        beliefs = fit_beliefs(given, classes, config=replay.beliefs)
        credit.append(market.credit[rows, beliefs.consensus.argmax(axis=1)])
        for per_unit in range(replay.at_most_per_unit, market.given.shape[1] + replay.at_most_per_unit):
            if bought == stop:
                break
            asked = policy.choose(
                situation(beliefs, given, (market.pool >= 0) & (given < 0)), stop - bought,
                at_most_per_unit=per_unit, balance=replay.balance)
            for ask in asked:
                given[ask.unit, ask.annotator] = market.pool[ask.unit, ask.annotator]
            bought += len(asked)
        votes.append(bought)
    credit.append(market.credit[rows, fit_beliefs(given, classes, config=replay.beliefs).consensus.argmax(axis=1)])
    return Curve(votes=np.array(votes), credit=np.array(credit, dtype=np.float32))


def situation(beliefs: Beliefs, given: Codes, may_ask: Flags) -> Situation:
    """What a policy is told: beliefs as they are."""
    return Situation(
        probabilities=beliefs.probabilities(may_ask), given=given, consensus=beliefs.consensus, may_ask=may_ask,
        confusion=beliefs.confusion, ambiguity=beliefs.ambiguity,
    )


def _ranks(draws: Floats) -> Codes:
    """(U, A) place of each entry in its row."""
    return np.asarray(draws.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable"))

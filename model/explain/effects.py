"""What leaving words out does to every annotator's probabilities, for averages over tasks; is that faithful?

    effect(a, w, c) = p_a(c | all places) - p_a(c | all but w)

Two leads say how far such weights may be trusted, each the area between two deletion curves of the annotator's answer
(`deletion`): of their own order of places before chance, and before the order of the mean over all annotators. Where
the second is 0, what moves this annotator is what moves everybody.

Shape legend: A annotators, P places, W words, C classes, T tokens, R random orders, F shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Tokens
from model.explain.deletion import deletions
from model.explain.explanation import answered, falling, likelihood, random_orders, scored
from model.explain.places import Places
from model.qumab.committee import Committee
from model.qumab.slots import Slot

Floats = NDArray[np.float64]
SHARES = (0.1, 0.3, 0.5)
DRAWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Leads:
    """Of one task and control, (A,) each."""

    chance: Floats
    everybody: Floats


def word_effects(
    committee: Committee, tokens: Tokens, places: Places, rows: Sequence[int], words: Sequence[Sequence[int]]
) -> dict[str, Floats]:
    """control -> effect (A, W, C) of words, each at some places, on the annotators at `rows` of the committee."""
    kept = np.ones((1 + len(words), len(places)), dtype=bool)
    for row, word in enumerate(words, start=1):
        kept[row, list(word)] = False
    found = {}
    for name, _, p in _scored(committee, tokens, places, kept):
        mine = p[:, list(rows)]  # (1 + W, A, C)
        found[name] = (mine[:1] - mine[1:]).transpose(1, 0, 2)
    return found


def leads(
    committee: Committee, tokens: Tokens, places: Places, rows: Sequence[int], *, rng: np.random.Generator
) -> dict[str, Leads]:
    """control -> both leads on one task of at least two places, in two batched passes."""
    at, length = list(rows), len(places)
    chance = random_orders(length, DRAWS, rng)
    kept = np.concatenate([np.ones((1, length), bool), ~np.eye(length, dtype=bool), deletions(chance, SHARES)])
    bare, own, random = {}, {}, {}
    for name, slot, p in _scored(committee, tokens, places, kept):
        answer, sure = answered(slot.space, p[0, at])
        left = likelihood(slot.space, p[1:, at], answer)  # (P + R F, A)
        bare[name], own[name] = answer, sure[:, None] - left[:length].T  # (A, P)
        random[name] = left[length:].reshape(DRAWS, len(SHARES), len(at)).mean(0)  # (F, A)
    orders = [falling(np.concatenate([weights, weights.mean(0, keepdims=True)])) for weights in own.values()]
    masks = np.concatenate([deletions(each, SHARES) for each in orders])
    per, found = len(masks) // len(orders), {}
    for place, (name, slot, p) in enumerate(_scored(committee, tokens, places, masks)):
        left = likelihood(slot.space, p[place * per : (place + 1) * per, at], bare[name])
        curves = left.reshape(len(at) + 1, len(SHARES), len(at))  # order, share, annotator
        mine = np.diagonal(curves[:-1], axis1=0, axis2=2)  # (F, A)
        found[name] = Leads(chance=(random[name] - mine).mean(0), everybody=(curves[-1] - mine).mean(0))
    return found


def mean_interval(values: Floats) -> tuple[float, float, float]:
    """Mean of values (N,) of tasks, with its normal 95 % interval; infinitely wide for fewer than two."""
    mean = float(values.mean()) if len(values) else 0.0
    half = 1.96 * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.inf
    return mean, mean - half, mean + half


def _scored(
    committee: Committee, tokens: Tokens, places: Places, kept: NDArray[np.bool_]
) -> Iterator[tuple[str, Slot, Floats]]:
    """(control, slot, probabilities (V, Q, C)) of variants in which the places `kept` (V, P) stay, equal ones once."""
    distinct, at = np.unique(kept, axis=0, return_inverse=True)
    stay = places.stay(distinct)
    variants = [tokens[mask] if mask.any() else np.zeros_like(tokens[:1]) for mask in stay]
    for name, slot, p in scored(committee, variants):
        yield name, slot, p[at.ravel()]


def mean_effects(parts: Mapping[str, Sequence[Floats]]) -> dict[str, tuple[Floats, Floats, int]]:
    """word -> mean over its tasks (A, C), standard error of each annotator's lead over the others (A, C), tasks.

    `parts`: word -> its effect (A, C) on each task that has it.
    """
    found = {}
    for word, effects in parts.items():
        stacked = np.stack(effects)  # (N, A, C)
        apart = lead_over_others(stacked)
        n = len(stacked)
        error = apart.std(0, ddof=1) / np.sqrt(n) if n > 1 else np.full(apart.shape[1:], np.inf)
        found[word] = (stacked.mean(0), error, n)
    return found


def lead_over_others(effect: Floats) -> Floats:
    """Effects (..., A, C) less the mean of the other annotators'; 0 for a single annotator."""
    people = effect.shape[-2]
    if people < 2:
        return np.zeros_like(effect)
    return np.asarray((effect - effect.mean(-2, keepdims=True)) * people / (people - 1))

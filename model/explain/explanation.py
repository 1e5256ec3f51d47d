"""The explanation of one task for several annotators at once: where each one's query looks, and what matters for it.

Two kinds of weight for every place (`places`) of the task:

    attention(a, i)   = cross-attention of annotator a's query, summed over the tokens of place i
    attribution(a, i) = p(answer of a | all places) - p(answer of a | all but i)

and for each kind the faithfulness, the area between deletion by that weight and deletion in random order (`deletion`);
for `pooled`, the mean attention of all annotators, too. Explained is what the network answers from content alone; the
answer of an annotator is the class it finds most probable, of several choices the set.

All variants of the task (each place left out, places left out in every order) are scored for all annotators in one
batched pass, those in order of attribution, which the first pass finds, in a second one. Tokens of no place stay.

Shape legend: A annotators asked for, Q = all + 1 queries, P places, T tokens, V variants, R random orders, F shares, C
classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Tokens
from model.data.scores import to_probabilities
from model.data.spaces import Space, ValueKind
from model.errors import ModelError
from model.explain.attention import attention
from model.explain.deletion import SHARES, deletions
from model.explain.places import Places
from model.qumab.batches import pad
from model.qumab.committee import Committee
from model.qumab.slots import Slot

Floats = NDArray[np.float64]
_AT_ONCE = 32  # variants between two looks at the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness:
    """Lead of each order over chance, (A,); positive is better, at most 1."""

    attention: Floats
    pooled: Floats
    attribution: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What the network says for one control, and why."""

    answer: Floats  # (A, C) of 0 and 1: the class, or the chosen classes
    probability: Floats  # (A,) of that answer
    attribution: Floats | None = None  # (A, P); None where time ran out or there is one place only
    faithfulness: Faithfulness | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One task."""

    attention: Floats  # (A, P), rows sum to at most 1: the rest went to tokens of no place and to the mean token
    pooled: Floats  # (P,) mean over all annotators
    controls: Mapping[str, Explained]


def explain(
    committee: Committee, tokens: Tokens, places: Places, queries: Sequence[int], *, draws: int = 6,
    in_time: Callable[[], bool] = lambda: True, rng: np.random.Generator | None = None,
) -> Explanation:
    """Explain the answers of the annotators at `queries` (positions in the committee) on one task of `tokens` (T, D).

    Once `in_time` says no, the answers and attention alone come back. Raises ModelError for a task without places.
    """
    if not len(places):
        raise ModelError("nothing in this task can be pointed at")
    rows, rng = list(queries), rng or np.random.default_rng(0)
    maps = attention(committee.network, *pad([tokens], committee.device))[0].double().cpu().numpy()  # (Q, T)
    looked = places.sums(maps[:-1])
    own, pooled, chance = looked[rows], looked.mean(0), random_orders(len(places), draws, rng)
    bare = {name: answered(slot.space, p[:, rows][0]) for name, slot, p in scored(committee, [tokens])}
    plain = Explanation(attention=own, pooled=pooled, controls={
        name: Explained(answer=answer, probability=probability) for name, (answer, probability) in bare.items()
    })
    if len(places) < 2:
        return plain
    score = _Score(committee, tokens, places, rows, {name: answer for name, (answer, _) in bare.items()}, in_time)
    orders = np.concatenate([chance, falling(pooled[None]), falling(own)])
    single = ~np.eye(len(places), dtype=bool)
    first = score(np.concatenate([single, deletions(orders)]))
    if first is None:
        return plain
    without = {name: p[: len(places)].T for name, p in first.items()}  # (A, P)
    curves = {name: p[len(places) :].reshape(len(orders), len(SHARES), -1) for name, p in first.items()}
    moved = {name: bare[name][1][:, None] - p for name, p in without.items()}
    second = score(np.concatenate([deletions(falling(each)) for each in moved.values()]))
    if second is None:
        return plain
    controls = {}
    for place, name in enumerate(moved):
        part = second[name].reshape(len(moved), len(rows), len(SHARES), -1)[place]
        controls[name] = Explained(
            answer=bare[name][0], probability=bare[name][1], attribution=moved[name],
            faithfulness=_faithfulness(curves[name], part, draws),
        )
    return Explanation(attention=own, pooled=pooled, controls=controls)


def _faithfulness(curves: Floats, by_attribution: Floats, draws: int) -> Faithfulness:
    """From curves (R + 1 + A, F, A): random orders, pooled attention, each one's attention; and (A, F, A)."""
    chance = curves[:draws].mean(0)  # (F, A)

    def lead(curve: Floats) -> Floats:
        return np.asarray((chance - curve).mean(0))

    def of_own(own: Floats) -> Floats:
        return np.diagonal(own, axis1=0, axis2=2)  # (F, A)

    return Faithfulness(
        attention=lead(of_own(curves[draws + 1 :])), pooled=lead(curves[draws]),
        attribution=lead(of_own(by_attribution)),
    )


class _Score:
    """Probability of each annotator's answer in variants of one task."""

    def __init__(
        self, committee: Committee, tokens: Tokens, places: Places, rows: Sequence[int], answers: Mapping[str, Floats],
        in_time: Callable[[], bool],
    ) -> None:
        self._committee, self._tokens, self._places = committee, tokens, places
        self._rows, self._answers, self._in_time = list(rows), answers, in_time

    def __call__(self, kept: NDArray[np.bool_]) -> dict[str, Floats] | None:
        """control -> (V, A) for the places (V, P) that stay, equal ones scored once; None when time runs out."""
        parts: dict[str, list[Floats]] = {name: [] for name in self._answers}
        distinct, at = np.unique(kept, axis=0, return_inverse=True)
        for start in range(0, len(distinct), _AT_ONCE):
            if not self._in_time():
                return None
            variants = [self._tokens[mask] for mask in self._places.stay(distinct[start : start + _AT_ONCE])]
            for name, slot, p in scored(self._committee, variants):
                parts[name].append(likelihood(slot.space, p[:, self._rows], self._answers[name]))
        return {name: np.concatenate(found)[at.ravel()] for name, found in parts.items()}


def scored(committee: Committee, variants: Sequence[Tokens]) -> Iterator[tuple[str, Slot, Floats]]:
    """(control, slot, probabilities (V, Q, C))."""
    for name, scores in committee.scores(variants).items():
        slot = committee.slots[name]
        yield name, slot, to_probabilities(slot.space, scores)


def answered(space: Space, p: Floats) -> tuple[Floats, Floats]:
    """The answer (A, C) as 0 and 1, and its probability (A,), of probabilities (A, C)."""
    several = space.kind is ValueKind.CLASSES
    answer = (p >= 0.5).astype(np.float64) if several else np.eye(p.shape[-1])[p.argmax(-1)]
    return answer, likelihood(space, p, answer)


def likelihood(space: Space, p: Floats, answer: Floats) -> Floats:
    """Probability (...) of answers of 0 and 1 (..., C) under probabilities (..., C)."""
    if space.kind is ValueKind.CLASSES:
        return np.asarray(np.where(answer > 0.5, p, 1.0 - p).prod(-1))
    return np.asarray((p * answer).sum(-1))


def falling(weights: Floats) -> NDArray[np.int64]:
    """Orders (N, P) of falling weight."""
    return np.argsort(-weights, axis=-1, kind="stable")


def random_orders(length: int, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Orders (R, P) by chance."""
    return rng.permuted(np.tile(np.arange(length), (draws, 1)), axis=1)

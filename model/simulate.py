"""Simulated annotators over simulated content, for tests and measurements that need no encoder. Seeded, no torch.

Content is a vector of traits (politeness, length, topic ...). Annotators read it each in their own way:

    score[u, a, c] = temper (common[c] + strength own[a, c]) . trait[u] + leniency[a, c],   vote ~ softmax(score)

or, with `content` off, they answer by leniency alone. Tokens are made from the traits: each shows one trait, scaled by
its value, in a direction of its own, with noise; so reading the right tokens means knowing the content.

Shape legend: U units, A annotators, C classes, F traits, T tokens, D dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import MultipleChoice, SingleChoice, Space, Value
from model.data.votes import Vote, Votes
from model.errors import ModelError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A project with known truth."""

    votes: Votes
    space: Space
    tokens: dict[str, NDArray[np.float16]]  # unit -> (T, D)
    traits: Floats  # (U, F); unit "t<row>"
    probabilities: Floats  # (U, A, C) true ones; annotator "a<column>"


def simulate_tokens(
    traits: Floats, rng: np.random.Generator, *, dim: int = 24, noise: float = 0.3, filler: tuple[int, int] = (1, 4)
) -> list[NDArray[np.float16]]:
    """Token sets that show the traits (U, F): one token for each trait, and some that say nothing; shuffled."""
    directions = rng.standard_normal((traits.shape[1], dim)) / np.sqrt(dim) * 3.0  # (F, D)
    anchors = rng.standard_normal((traits.shape[1], dim)) / np.sqrt(dim) * 3.0  # what the token is about
    found = []
    for row in traits:
        shown = anchors + row[:, None] * directions  # (F, D)
        empty = rng.standard_normal((int(rng.integers(filler[0], filler[1] + 1)), dim))
        tokens = np.concatenate([shown, empty]) + noise * rng.standard_normal((len(shown) + len(empty), dim))
        found.append(rng.permutation(tokens).astype(np.float16))
    return found


def annotator_scores(
    traits: Floats, annotators: int, classes: int, rng: np.random.Generator, *, content: bool = True,
    strength: float = 1.0, temper: float = 1.5, leniency: float = 0.7,
) -> Floats:
    """Scores (U, A, C) of every annotator for content with traits (U, F)."""
    own_bias = leniency * rng.standard_normal((annotators, classes))
    if not content:
        return np.broadcast_to(own_bias, (len(traits), annotators, classes)).copy()
    scale = temper / np.sqrt(traits.shape[1])
    common = rng.standard_normal((classes, traits.shape[1]))
    own = rng.standard_normal((annotators, classes, traits.shape[1]))
    return np.asarray(np.einsum("acf,uf->uac", scale * (common + strength * own), traits) + own_bias)


def simulate_annotators(
    rng: np.random.Generator, *, units: int = 240, annotators: int = 6, classes: Sequence[str] = ("no", "yes"),
    traits: int = 4, coverage: float = 1.0, multiple: bool = False, control: str = "label", content: bool = True,
    strength: float = 1.0, temper: float = 1.5, leniency: float = 0.7, dim: int = 24, noise: float = 0.3,
) -> Simulated:
    """A whole project. `coverage` is the share of (unit, annotator) pairs with a vote; each vote is drawn once."""
    if not 0.0 < coverage <= 1.0 or min(units, annotators, len(classes), traits) < 1:
        raise ModelError("a simulation needs units, annotators, classes and traits, and a coverage in (0, 1]")
    x = rng.standard_normal((units, traits))
    scores = annotator_scores(
        x, annotators, len(classes), rng, content=content, strength=strength, temper=temper, leniency=leniency
    )
    if multiple:
        p = 1.0 / (1.0 + np.exp(-scores))
        drawn = rng.random(p.shape) < p
    else:
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        drawn = (np.cumsum(p, -1) < rng.random((*p.shape[:2], 1))).sum(-1)
    asked = rng.random((units, annotators)) < coverage
    names = tuple(classes)
    rows = []
    for u, a in zip(*np.nonzero(asked), strict=True):
        value = (
            Value.of_classes([name for name, on in zip(names, drawn[u, a], strict=True) if on])
            if multiple else Value.of_class(names[min(int(drawn[u, a]), len(names) - 1)])
        )
        rows.append(Vote(unit=f"t{u}", annotator=f"a{a}", control=control, value=value))
    tokens = simulate_tokens(x, rng, dim=dim, noise=noise)
    return Simulated(
        votes=Votes.from_votes(rows), space=MultipleChoice(names) if multiple else SingleChoice(names),
        tokens={f"t{u}": array for u, array in enumerate(tokens)}, traits=x, probabilities=p,
    )

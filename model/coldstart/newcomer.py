"""A newcomer: what is served to an annotator whom a version has hardly been trained on, moved by their own votes.

A Bayesian mixture of experts, each of which answers for the newcomer:

    p(c | u) = sum_e w_e p_e(c | u),      w_e ~ prior_e * prod_i p_e(y_i | u_i, y_1 .. y_{i-1})^weight_i

- *generic*: what somebody unknown is expected to say, and *people*: what each known annotator is expected to say;
- the same through a *confusion* matrix of the newcomer's own, learned vote by vote from near "takes it as it is";
- *frequencies*: how often the newcomer gave each label so far, shrunk to even ones and to everybody's;
- *own scores*: a linear deviation with a Gaussian prior (`own_scores`), fitted again at some numbers of votes;
- for an annotator who has been trained on a little, *themselves*, by out-of-sample answers.

Weights and parameters before a vote never know it (the product is that of predictions made one after the other), so
over any sequence of votes the mixture loses at most -log prior_e nats in all to any expert: to own frequencies at most
`REGRET` nats, whatever the others do. Everything of the version stays as it is. Several choices are so many yes-or-no
questions, each with weights of its own. The likelihood on earlier votes is that of a cheap stand-in for each row of
answers (the pooled model), since reading all contents again with the network would take seconds; new answers are mixed
from what the whole ladder says.

Invariants: nothing depends on votes after the one that is answered for; no torch, no query, no encoding.
Shape legend: N votes of the newcomer in order of time, B units, J known annotators and R = J + 1 rows of answers (the
last one generic), C classes, G questions with K values each ((1, C), or (C, 2) for several choices), E experts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from model.base_models.others import codes_of
from model.coldstart.own_scores import STRENGTHS, OwnScores, learn_own
from model.data.scores import to_probabilities
from model.data.spaces import Space, ValueKind

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
GENERIC, PEOPLE, CONFUSED, CONFUSED_PEOPLE, FREQUENCIES, OWN_SCORES = 0.3, 0.15, 0.1, 0.1, 0.1, 0.125  # prior weights
ITSELF = 0.3  # of somebody who was trained on a little, before all is made to sum to 1
_TOGETHER = GENERIC + PEOPLE + CONFUSED + CONFUSED_PEOPLE + 2 * FREQUENCIES + 2 * OWN_SCORES + ITSELF
REGRET = -float(np.log(FREQUENCIES / _TOGETHER))  # nats in all that can be lost to own frequencies
SHRUNK = (0.5, 4.0)  # pseudo-votes: of each label alike, and in all of everybody's frequencies
_AS_IT_IS, _OTHERWISE = 1.4, 0.8  # pseudo-votes in each row of a confusion matrix
MOST_VOTES, FEWEST, _MOST_NUMBERS = 120, 30, 360  # the latest votes; own scores cost the cube of votes times values
MOST_CELLS = 1 << 21  # of the confusion matrices of all rows, 16 MB; where there would be more, nothing is learned
_FLOOR = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """A newcomer's votes with what a version says of their units, in order of time."""

    space: Space
    rows: Floats  # (N, R, C) scores of the stand-in for each known annotator, the generic one last
    content: Floats  # (N, F) about unit length
    y: NDArray[np.floating]  # (N, C)
    weight: Floats  # (N,) an accepted suggestion says less
    frequencies: Floats  # (C,) everybody's
    itself: int | None = None  # their own row, where they were trained on a little
    out_of_sample: Floats | None = None  # (N, C) what they were then expected to say; NaN where unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """What was learned of a newcomer on one control."""

    space: Space
    others: Codes  # (J',) rows of known annotators other than themselves
    itself: int | None
    weights: Floats  # (E, G) of generic, people, both through confusion, frequencies, own scores, themselves
    confusion: Floats  # (R', G, K, K), the last one for the generic row
    frequencies: Floats  # (2, G, K)
    own: OwnScores
    votes: int
    before: Floats = field(repr=False)  # (N, C) what was expected of each vote before it was known

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        own = (self.own.bias, self.own.slope, self.own.people, self.own.content)
        return sum(each.nbytes for each in (self.confusion, self.frequencies, self.weights, self.before, *own))

    def probabilities(self, scores: Floats, content: Floats) -> Floats:
        """(B, C) from what the ladder serves to everybody, scores (B, R, C), and content (B, F)."""
        p = _questions(self.space, scores)  # (B, R, G, K)
        rows = p[:, np.append(self.others, p.shape[1] - 1)]  # (B, R', G, K)
        told = np.einsum("brgk,rgkl->brgl", rows, self.confusion)
        answers = [rows, told, np.broadcast_to(self.frequencies, (len(p), *self.frequencies.shape))]
        answers.append(self.own.probabilities(_logs(rows), content))
        if self.itself is not None:
            answers.append(p[:, [self.itself]])
        mixed = np.einsum("begk,eg->bgk", np.concatenate(answers, 1), self.weights)
        return _classes(self.space, mixed)


def most_votes(space: Space) -> int:
    """How many of a newcomer's latest votes are learned from."""
    wide = len(space.classes) - 1 if space.kind is ValueKind.CLASS else 1
    return min(MOST_VOTES, max(FEWEST, _MOST_NUMBERS // max(wide, 1)))


def fits(space: Space, people: int) -> bool:
    """Whether there is something to learn of a space, and tables of so many known annotators are small enough."""
    c = len(space.classes)
    cells = c * c if space.kind is ValueKind.CLASS else 4 * c
    return c > (space.kind is ValueKind.CLASS) and (people + 1) * cells <= MOST_CELLS


def learn(seen: Experience) -> Newcomer:
    """Take a newcomer's votes one after the other; not more than `most_votes`, of a space that `fits`."""
    known = seen.rows.shape[1] - 1
    others = np.array([at for at in range(known) if at != seen.itself], np.int64)
    rows = _questions(seen.space, seen.rows)[:, np.append(others, known)]  # (N, R', G, K)
    said = codes_of(seen.space, seen.y)  # (N, G)
    base = _questions(seen.space, np.log(np.clip(seen.frequencies, _FLOOR, 1.0)) if seen.space.kind is ValueKind.CLASS
                      else _log_odds(seen.frequencies))  # (G, K)
    told, confusion = _confusion(rows, said, seen.weight, base)
    often, frequencies = _frequencies(said, seen.weight, base)
    leaning, own = _own_scores(seen, rows, said)
    answers = [rows, told, often, leaning]
    if seen.itself is not None:
        answers.append(_itself(seen, rows)[:, None])
    every = np.concatenate(answers, 1)  # (N, E, G, K) what each expert expected before each vote
    picked = np.take_along_axis(every, said[:, None, :, None], -1)[..., 0]  # (N, E, G)
    gained = np.log(np.clip(picked, _FLOOR, 1.0)) * seen.weight[:, None, None]
    logs = np.log(_prior(rows.shape[1], seen.itself is not None))[None, :, None] + np.concatenate(
        [np.zeros((1, *gained.shape[1:])), np.cumsum(gained, 0)])  # (N + 1, E, G)
    weights = np.exp(logs - logs.max(1, keepdims=True))
    weights /= weights.sum(1, keepdims=True)
    before = np.einsum("negk,neg->ngk", every, weights[:-1])
    return Newcomer(
        space=seen.space, others=others, itself=seen.itself, weights=weights[-1], confusion=confusion,
        frequencies=frequencies, own=own, votes=len(said), before=_classes(seen.space, before),
    )


def _own_scores(seen: Experience, rows: Floats, said: Codes) -> tuple[Floats, OwnScores]:
    """What own scores expected of each vote, (N, S, G, K), and what they are in the end: learned from the latest votes
    alone where all of them would take long, and as anybody's before."""
    n, _, g, k = rows.shape
    late = max(n - int(_MOST_NUMBERS / ((k - 1) * np.cbrt(g))), 0)
    expected, own = learn_own(_logs(rows[late:]), seen.content[late:], said[late:], seen.weight[late:])
    anybody = np.repeat(rows[:late, -1:], len(STRENGTHS), 1)
    return np.concatenate([anybody, expected]), own


def _prior(rows: int, itself: bool) -> Floats:
    """(E,) prior weights."""
    people = max(rows - 1, 1)
    found = [*[PEOPLE / people] * (rows - 1), GENERIC, *[CONFUSED_PEOPLE / people] * (rows - 1), CONFUSED,
             *[FREQUENCIES] * len(SHRUNK), *[OWN_SCORES] * len(STRENGTHS), *([ITSELF] if itself else [])]
    return np.asarray(np.array(found) / np.sum(found))


def _confusion(rows: Floats, said: Codes, weight: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Every row of answers through a confusion matrix that is learned on the way: (N, R, G, K), and the matrices
    (R, G, K, K) [what the row means][what the newcomer says] in the end."""
    n, r, g, k = rows.shape
    start = _AS_IT_IS * np.eye(k) + _OTHERWISE * base[:, None, :]  # (G, K, K)
    counts = np.broadcast_to(start, (r, g, k, k)).copy()
    told = np.empty((n, r, g, k))
    questions = np.arange(g)
    for i in range(n):
        matrix = counts / counts.sum(-1, keepdims=True)
        told[i] = (rows[i][..., None, :] @ matrix)[..., 0, :]
        picked = matrix[:, questions, :, said[i]].transpose(1, 0, 2)  # (R, G, K): of the label that was given
        meant = rows[i] * picked
        meant /= meant.sum(-1, keepdims=True)
        counts[:, questions, :, said[i]] += weight[i] * meant.transpose(1, 0, 2)
    return told, np.asarray(counts / counts.sum(-1, keepdims=True))


def _frequencies(said: Codes, weight: Floats, base: Floats) -> tuple[Floats, Floats]:
    """Own frequencies before each vote, (N, 2, G, K), and in the end, (2, G, K)."""
    k = base.shape[-1]
    given = np.eye(k)[said] * weight[:, None, None]
    count = np.concatenate([np.zeros((1, *given.shape[1:])), np.cumsum(given, 0)])  # (N + 1, G, K)
    start = np.stack([np.full(base.shape, SHRUNK[0]), SHRUNK[1] * base])  # (2, G, K)
    total = count[:, None] + start
    found = total / total.sum(-1, keepdims=True)
    return found[:-1], found[-1]


def _itself(seen: Experience, rows: Floats) -> Floats:
    """(N, G, K) what an annotator who was trained on a little was expected to say; where that is not known, what
    anybody is, so that nothing speaks for them there."""
    found = rows[:, -1].copy()
    if seen.out_of_sample is not None:
        known = np.isfinite(seen.out_of_sample).all(-1)
        p = seen.out_of_sample[known]
        found[known] = p[:, None] if seen.space.kind is ValueKind.CLASS else np.stack([1.0 - p, p], -1)
    return found


def _questions(space: Space, scores: Floats) -> Floats:
    """Scores (..., C) as probabilities of each question's values, (..., G, K)."""
    p = to_probabilities(space, scores)
    return p[..., None, :] if space.kind is ValueKind.CLASS else np.stack([1.0 - p, p], -1)


def _classes(space: Space, p: Floats) -> Floats:
    """The inverse: (..., G, K) as probabilities of classes, (..., C)."""
    return np.asarray(p[..., 0, :] if space.kind is ValueKind.CLASS else p[..., 1])


def _logs(p: Floats) -> Floats:
    return np.asarray(np.log(np.clip(p, _FLOOR, 1.0)))


def _log_odds(p: Floats) -> Floats:
    p = np.clip(p, _FLOOR, 1.0 - _FLOOR)
    return np.asarray(np.log(p) - np.log1p(-p))

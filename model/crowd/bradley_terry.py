"""Bradley-Terry with annotator quality (Chen et al. 2013): a score for each item from pairwise votes.

    p(a prefers i to j) = eta_a sigmoid(s_i - s_j) + (1 - eta_a) sigmoid(s_j - s_i)

EM over "did the annotator mean it the right way round": eta has a Beta prior that leans to the right way, scores a
normal prior. The scores move by Newton steps on a sparse Laplacian, halved while they do not help, so the penalised
likelihood never falls.

Shape legend: M items, A annotators, N comparisons.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.linalg import cg

from model.crowd.answers import encode_ids, is_missing
from model.crowd.base import Trace
from model.crowd.glad import sigmoid_softplus
from model.crowd.sums import Floats
from model.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparisons:
    """N votes "winner over loser"; several votes of one annotator on one pair all count."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    winner: NDArray[np.int32]  # (N,)
    loser: NDArray[np.int32]  # (N,)
    annotator: NDArray[np.int32]  # (N,)
    weight: Floats  # (N,)
    dropped: int = 0  # votes for neither of the two, or on one item alone

    @classmethod
    def from_columns(
        cls, left: Sequence[Hashable], right: Sequence[Hashable], annotators: Sequence[Hashable],
        winners: Sequence[Hashable | None], *, weights: ArrayLike | None = None, all_items: Sequence[Hashable] = (),
    ) -> Comparisons:
        """`winners` holds the id of the left or the right item; anything else (None, a tie) is dropped."""
        if len({len(left), len(right), len(annotators), len(winners)}) != 1:
            raise ModelError("the columns of comparisons differ in length")
        items, codes = encode_ids([*left, *right], all_items)
        table, annotator = encode_ids(annotators, ())
        l_code, r_code = codes[: len(left)], codes[len(left) :]
        position = {name: i for i, name in enumerate(items)}
        won = np.array([-1 if is_missing(w) else position.get(str(w), -1) for w in winners], dtype=np.int32)
        keep = ((won == l_code) | (won == r_code)) & (l_code != r_code)
        weight = np.ones(len(won)) if weights is None else np.asarray(weights, dtype=np.float64)
        loser = np.where(won == l_code, r_code, l_code)
        order = np.lexsort((annotator[keep], loser[keep], won[keep]))
        return cls(
            items=tuple(items), annotators=tuple(table), winner=won[keep][order],
            loser=loser[keep].astype(np.int32)[order], annotator=annotator[keep][order], weight=weight[keep][order],
            dropped=int((~keep).sum()),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Scores (mean about 0, higher is better) and annotator quality."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    score: Floats  # (M,) NaN for items that were never compared
    quality: Floats  # (A,) eta: 1 always the right way round, 0.5 noise, 0 always reversed
    objective: tuple[float, ...]
    converged: bool

    @property
    def order(self) -> list[str]:
        """The compared items, best first."""
        ranked = np.argsort(-self.score, kind="stable")
        return [self.items[i] for i in ranked if np.isfinite(self.score[i])]


@dataclass(frozen=True, slots=True, kw_only=True)
class BradleyTerry:
    """Crowd Bradley-Terry by EM; `annotator_quality=False` trusts everybody (plain Bradley-Terry)."""

    annotator_quality: bool = True
    right: float = 4.0  # Beta pseudo-votes the right way round
    wrong: float = 1.0
    score_sd: float = 2.0
    max_iter: int = 200
    tol: float = 1e-7

    def fit(self, votes: Comparisons) -> Ranking:
        """Scores from comparisons; items without any stay NaN."""
        n_items, n_annotators, n = len(votes.items), len(votes.annotators), len(votes.winner)
        score = np.zeros(n_items)
        eta = np.full(n_annotators, self.right / (self.right + self.wrong) if self.annotator_quality else 1.0)
        if not n:
            return Ranking(
                items=votes.items, annotators=votes.annotators, score=np.full(n_items, np.nan), quality=eta,
                objective=(), converged=True,
            )
        both = np.concatenate([votes.winner, votes.loser])
        entries = (np.repeat([1.0, -1.0], n), (np.tile(np.arange(n), 2), both))
        design = sparse.csr_array(entries, shape=(n, n_items))  # design @ score = difference, (N,)
        given = np.bincount(votes.annotator, votes.weight, minlength=n_annotators)
        trace = Trace(n, max_iter=self.max_iter, tol=self.tol)
        while True:
            p, _ = sigmoid_softplus(design @ score)
            chance = eta[votes.annotator] * p + (1.0 - eta[votes.annotator]) * (1.0 - p)
            objective = votes.weight @ np.log(np.maximum(chance, 1e-300)) - 0.5 * ((score / self.score_sd) ** 2).sum()
            if self.annotator_quality:
                objective += self.right * np.log(eta).sum() + self.wrong * np.log1p(-eta).sum()
            if trace.stop(float(objective)):
                break
            meant = eta[votes.annotator] * p / np.maximum(chance, 1e-300)  # (N,)
            if self.annotator_quality:
                agree = np.bincount(votes.annotator, votes.weight * meant, minlength=n_annotators)
                eta = (agree + self.right) / (given + self.right + self.wrong)
            score = self._newton(design, votes.weight, meant, score)
        compared = np.bincount(both, minlength=n_items) > 0
        return Ranking(
            items=votes.items, annotators=votes.annotators, score=np.where(compared, score, np.nan), quality=eta,
            objective=tuple(trace.values), converged=trace.converged,
        )

    def _newton(self, design: sparse.csr_array, weight: Floats, target: Floats, score: Floats) -> Floats:
        """One safeguarded Newton step on sum w (t d - softplus(d)) - |s|^2 / (2 sd^2), d = design @ s."""
        def value(s: Floats) -> float:
            d = design @ s
            return float(weight @ (target * d - sigmoid_softplus(d)[1]) - 0.5 * ((s / self.score_sd) ** 2).sum())

        p, _ = sigmoid_softplus(design @ score)
        gradient = design.T @ (weight * (target - p)) - score / self.score_sd**2
        curvature = design.T @ sparse.diags_array(weight * p * (1.0 - p)) @ design
        step, _ = cg(curvature + sparse.identity(len(score)) / self.score_sd**2, gradient, rtol=1e-8, maxiter=500)
        before = value(score)
        for _ in range(8):
            if value(score + step) >= before:
                moved: Floats = score + step
                return moved
            step = step * 0.5
        return score

"""Dawid-Skene (1979): every annotator has a confusion matrix; EM over the unknown true classes.

    log p(votes) = sum_u log sum_k rho_k prod_{votes (u, a, l)} pi_a[k, l]
    objective    = log p(votes) + sum_akl S[k, l] log pi_a[k, l] + smoothing_prior * sum log rho
    S            = smoothing + trust * [k = l]

The smoothing is a Dirichlet prior, so the objective never falls. `trust` says that annotators are rather right than
wrong: without it one annotator, or annotators who share no unit, leave the classes interchangeable. E and M step run
fused over blocks of units, in logs. `assignment="hard"` is Fast Dawid-Skene (Sinha et al. 2018): each unit counts for
its best class only; `"hybrid"` starts soft and ends hard. The paper of peerannot prints the likelihood with a product
over classes; the sum above is right.

Shape legend: U units, A annotators, C classes. pi is stored as (A * C given, C true) while fitting, and returned as
confusion (A, C, C) [annotator, true, given]. Where that is too large (`room`) only the cells of given answers are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.room import confusions_fit
from model.crowd.sparse_dawid_skene import GivenKeys, places
from model.crowd.sums import Floats, VoteBlocks, class_totals, normalise_rows, safe_log


@dataclass(frozen=True, slots=True, kw_only=True)
class DawidSkene(Aggregator):
    """Dawid-Skene by EM, from the soft vote."""

    name: ClassVar[str] = "dawid-skene"
    smoothing: float = 0.1  # pseudo-votes in every cell of every confusion matrix
    trust: float = 0.3  # more of them on the diagonal
    smoothing_prior: float = 1.0  # pseudo-units in every class
    assignment: Literal["soft", "hard", "hybrid"] = "soft"
    max_iter: int = 100
    tol: float = 1e-5  # rise of the objective per vote below which it stops

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        return self.climb(answers, gold, start_posterior(answers, gold))

    def climb(self, answers: AnswerMatrix, gold: Codes, posterior: Floats) -> Estimate:
        """EM from a first posterior (U, C), which is overwritten."""
        if not confusions_fit(len(answers.annotators), len(answers.classes)):
            return self._climb_given(answers, gold, posterior)
        blocks = VoteBlocks(answers)
        counts, classes = blocks.transposed(posterior), posterior[answers.voted].sum(axis=0)
        pseudo = self.pseudo_votes(answers.shape[2])
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        hard = self.assignment == "hard"
        while True:
            table = log_confusion(counts, pseudo)
            log_prior = log_shares(classes, self.smoothing_prior)
            penalty = float((table.reshape(-1, *pseudo.shape) * pseudo).sum())
            penalty += self.smoothing_prior * float(log_prior.sum())
            counts, classes, likelihood = _pass(blocks, answers, gold, table, log_prior, posterior, hard=hard)
            if trace.stop(likelihood + penalty):
                if self.assignment != "hybrid" or hard or len(trace.values) >= self.max_iter:
                    break
                hard, trace = True, Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        _, n_annotators, n_classes = answers.shape
        confusion = np.exp(table).reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1)
        return Estimate(
            posterior=posterior, confusion=confusion,
            counts=counts.reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1),
            skill=np.exp(log_prior) @ np.diagonal(confusion, axis1=1, axis2=2).T,
            parameters={"prior": np.exp(log_prior)}, objective=tuple(trace.values), converged=trace.converged,
        )

    def _climb_given(self, answers: AnswerMatrix, gold: Codes, posterior: Floats) -> Estimate:
        """The same over the cells of answers that were given, without confusion matrices; see `sparse_dawid_skene`."""
        given = GivenKeys(answers, self.smoothing, self.trust)
        counts, classes = given.blocks.transposed(posterior), posterior[answers.voted].sum(axis=0)
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        hard = self.assignment == "hard"
        while True:
            table, penalty, diagonal = given.log_table(counts)
            log_prior = log_shares(classes, self.smoothing_prior)
            penalty += self.smoothing_prior * float(log_prior.sum())
            counts, classes, likelihood = _pass(given.blocks, answers, gold, table, log_prior, posterior, hard=hard)
            if trace.stop(likelihood + penalty):
                if self.assignment != "hybrid" or hard or len(trace.values) >= self.max_iter:
                    break
                hard, trace = True, Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        return Estimate(
            posterior=posterior, skill=diagonal @ np.exp(log_prior), objective=tuple(trace.values),
            converged=trace.converged, parameters={
                "prior": np.exp(log_prior), "given_key": given.keys.astype(np.float64), "log_given": table,
                "diagonal": diagonal,
            },
        )

    def pseudo_votes(self, n_classes: int) -> Floats:
        """(C, C) Dirichlet pseudo-votes of every annotator; symmetric, so [given, true] as well as [true, given]."""
        return self.smoothing + self.trust * np.eye(n_classes)

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        return confusion_evidence(answers, fitted)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastDawidSkene(DawidSkene):
    """Dawid-Skene with hard assignments (Sinha et al. 2018), after a soft start."""

    name: ClassVar[str] = "fast-dawid-skene"
    assignment: Literal["soft", "hard", "hybrid"] = "hybrid"


def start_posterior(answers: AnswerMatrix, gold: Codes) -> Floats:
    """(U, C) soft vote, uniform where nobody voted, certain where gold is known."""
    posterior = normalise_rows(class_totals(answers), 1.0 / len(answers.classes))
    known = gold >= 0
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior


def log_confusion(counts: Floats, pseudo: Floats) -> Floats:
    """Expected votes (A * C given, C true) and pseudo-votes (C, C) -> log pi in the shape of the votes.

    A true class without votes or pseudo-votes gets a uniform row.
    """
    n_classes = len(pseudo)
    table = counts.reshape(-1, n_classes, n_classes) + pseudo  # (A, given, true)
    total = table.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        table = np.where(total > 0, table / total, 1.0 / n_classes)
    return safe_log(table).reshape(-1, n_classes)


def log_shares(counts: Floats, smoothing: float) -> Floats:
    """(C,) log of smoothed class shares."""
    smoothed = counts + smoothing
    return safe_log(smoothed / max(smoothed.sum(), 1e-300))


def confusion_evidence(answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
    """What each vote says through its annotator's confusion matrix: (N, C), and the log prior, (C,)."""
    n_classes = len(answers.classes)
    if fitted.confusion is None:
        rows = fitted.parameters["log_given"][places(fitted.parameters["given_key"], answers)]
    else:
        rows = safe_log(fitted.confusion.transpose(0, 2, 1)).reshape(-1, n_classes)[answers.key]
    if answers.weight is not None:
        rows *= answers.weight[:, None]
    return rows, safe_log(fitted.parameters["prior"])


def _pass(
    blocks: VoteBlocks, answers: AnswerMatrix, gold: Codes, table: Floats, log_prior: Floats, posterior: Floats, *,
    hard: bool,
) -> tuple[Floats, Floats, float]:
    """One fused E and M step; overwrites `posterior`.

    Returns the expected votes (A * C given, C true) and the expected units of each class (C,) under the new posterior,
    and the log-likelihood of the parameters that came in.
    """
    counts = np.zeros_like(table)
    classes = np.zeros_like(log_prior)
    likelihood = 0.0
    empty = np.diff(answers.indptr) == 0
    any_empty, any_gold = bool(empty.any()), bool((gold >= 0).any())
    no_gold = np.empty(0, dtype=np.int32)
    for start, stop, block in blocks:
        scores = block @ table
        scores += log_prior
        log_sum = posterior_from(scores, gold[start:stop] if any_gold else no_gold)
        posterior[start:stop] = scores
        if hard:
            scores = _harden(scores)
        if any_empty:  # nobody voted: the row is the prior and must not feed back into it
            scores[empty[start:stop]] = 0.0
            log_sum[empty[start:stop]] = 0.0
        likelihood += float(log_sum.sum())
        counts += block.T @ scores
        classes += np.ones(stop - start) @ scores
    return counts, classes, likelihood


def _harden(posterior: Floats) -> Floats:
    """One-hot rows of the most probable class."""
    hard = np.zeros_like(posterior)
    hard[np.arange(len(posterior)), posterior.argmax(axis=1)] = 1.0
    return hard

"""DSWC: Dawid-Skene with annotator clusters (Imamura et al. 2018), by variational EM.

    annotator a belongs to cluster g with weight tau_g, and everybody in g shares the confusion matrix Lambda_g
    q(u, k) ~ rho_k exp(sum_votes sum_g q(a, g) log Lambda_g[k, l])
    q(a, g) ~ tau_g exp(sum_votes sum_k q(u, k) log Lambda_g[k, l])

The objective is the evidence bound plus the Dirichlet smoothing; it never falls. An iteration is linear in votes: the
votes are summed to (A, C, C) first, and clusters only see that. Starts: k-means over smoothed confusion matrices, from
the soft vote and from Dawid-Skene, on a sample of units, seeded; the two best after a
few iterations are run to the end and the better bound is kept. Without `n_clusters`, held-out votes choose it.

Shape legend: U units, A annotators, C classes, G clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.cluster.vq import kmeans2

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import DawidSkene, log_confusion, log_shares, start_posterior
from model.crowd.sums import Floats, VoteBlocks, safe_log, softmax_rows

_CANDIDATES = (1, 2, 3, 4, 6, 8, 10, 15)
_HELD_OUT, _SPLITS = 0.2, 3
_PATIENCE = 2  # numbers of clusters in a row that may be no better before the search ends
_SAMPLE = 50_000  # votes that the number of clusters and the starts are tried on
_SCREEN = 10  # iterations that every start gets
_KEPT = 2  # starts that are then run to convergence


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredDawidSkene(Aggregator):
    """`parameters`: cluster (A, G) memberships, cluster_confusion (G, C, C) [true, given], share (G,), prior (C,)."""

    name: ClassVar[str] = "dswc"
    needs_confusions: ClassVar[bool] = True
    stochastic: ClassVar[bool] = True
    n_clusters: int | None = None  # None: chosen by held-out likelihood
    smoothing: float = 0.1  # pseudo-votes in every cell of a cluster's confusion matrix
    trust: float = 0.5  # more of them on the diagonal, as in Dawid-Skene
    smoothing_prior: float = 1.0  # pseudo-units in every class
    restarts: int = 20
    seed: int = 0
    max_iter: int = 200
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = self.choose_clusters(answers, gold)
        n_clusters = max(1, min(n_clusters, len(answers.annotators)))
        sample, sample_gold = self._sample(answers, gold)
        tried = self._screen(sample, sample_gold, n_clusters, _starts(sample, sample_gold))
        blocks = VoteBlocks(answers)
        if sample is answers:
            return self._best_end(blocks, answers, gold, tried)
        start = DawidSkene(max_iter=10)._estimate(answers, gold, None).posterior
        tried = [replace(first, posterior=start, objective=()) for first in tried]
        return self._best_end(blocks, answers, gold, tried)

    def _screen(
        self, answers: AnswerMatrix, gold: Codes, n_clusters: int, starts: tuple[Floats, Floats]
    ) -> list[Estimate]:
        """The most promising of the seeded starts, after a few iterations each; `starts` are posteriors (U, C)."""
        blocks = VoteBlocks(answers)
        rng = np.random.default_rng(self.seed)
        tried: list[Estimate] = []
        for restart in range(max(self.restarts, 1) if n_clusters > 1 else 1):
            start = starts[restart % 2]
            members = self._first_members(blocks, answers, start, n_clusters, rng)
            tried.append(self._climb(blocks, answers, gold, start, members, _SCREEN))
            tried = sorted(tried, key=lambda e: -e.objective[-1])[:_KEPT]
        return tried

    def _best_end(self, blocks: VoteBlocks, answers: AnswerMatrix, gold: Codes, tried: list[Estimate]) -> Estimate:
        """Run the kept starts to the end; the one with the better bound."""
        ends: list[Estimate] = []
        for first in tried:
            end = self._climb(blocks, answers, gold, first.posterior, first.parameters["cluster"], self.max_iter)
            ends.append(replace(end, objective=first.objective + end.objective))
        return max(ends, key=lambda e: e.objective[-1])

    def _sample(self, answers: AnswerMatrix, gold: Codes) -> tuple[AnswerMatrix, Codes]:
        """Random units with about `_SAMPLE` votes, at least 20 an annotator; all of them when there are no more."""
        share = max(_SAMPLE, 20 * len(answers.annotators)) / max(len(answers), 1)
        if share >= 1.0:
            return answers, gold
        chosen = np.random.default_rng(self.seed).random(len(answers.units)) < share
        return answers.take_units(chosen), gold[chosen]

    def choose_clusters(self, answers: AnswerMatrix, gold: Codes) -> int:
        """The number of clusters under which votes that were left out are the most likely.

        Numbers are tried upwards, until `_PATIENCE` in a row were no better than the best.
        """
        answers, gold = self._sample(answers, gold)
        overlapping = np.diff(answers.indptr)[answers.unit] > 1
        rng = np.random.default_rng(self.seed)
        held_out = [(rng.random(len(answers)) < _HELD_OUT) & overlapping for _ in range(_SPLITS)]
        if not all(rows.any() for rows in held_out):
            return 1
        splits = []
        for rows in held_out:
            rest = answers.select(~rows)
            splits.append((rows, rest, _starts(rest, gold)))  # the starts are the same for every number
        trial = replace(self, restarts=4, max_iter=50)
        best, best_score, worse = 1, -np.inf, 0
        for n_clusters in (n for n in _CANDIDATES if n <= len(answers.annotators)):
            score = 0.0
            for rows, rest, starts in splits:
                tried = trial._screen(rest, gold, n_clusters, starts)
                fitted = trial._best_end(VoteBlocks(rest), rest, gold, tried)
                assert fitted.confusion is not None
                belief = fitted.posterior[answers.unit[rows]]
                chance = fitted.confusion[answers.annotator[rows], :, answers.label[rows]]
                score += float(safe_log((belief * chance).sum(axis=1)).sum())
            if score > best_score:
                best, best_score, worse = n_clusters, score, 0
            else:
                worse += 1
            if worse == _PATIENCE:
                break
        return best

    def _first_members(
        self, blocks: VoteBlocks, answers: AnswerMatrix, posterior: Floats, n_clusters: int, rng: np.random.Generator
    ) -> Floats:
        """(A, G) one-hot k-means clusters of the annotators' confusion matrices, shrunk to the pooled one."""
        _, n_annotators, n_classes = answers.shape
        counts = blocks.transposed(posterior).reshape(n_annotators, n_classes, n_classes)  # (A, given, true)
        pooled = counts.sum(axis=0) + 0.1
        pooled /= pooled.sum(axis=0)
        matrices = counts + 4.0 * pooled
        matrices /= matrices.sum(axis=1, keepdims=True)
        rows = matrices.reshape(n_annotators, -1)
        if n_clusters == 1 or len(np.unique(rows.round(9), axis=0)) < n_clusters:
            cluster = np.arange(n_annotators) % n_clusters
        else:
            _, cluster = kmeans2(rows, n_clusters, iter=20, minit="++", seed=rng, missing="warn")
        members: Floats = np.eye(n_clusters)[cluster]
        return members

    def _climb(
        self, blocks: VoteBlocks, answers: AnswerMatrix, gold: Codes, posterior: Floats, members: Floats, max_iter: int
    ) -> Estimate:
        _, n_annotators, n_classes = answers.shape
        n_clusters = members.shape[1]
        voted = answers.voted
        pseudo = self.smoothing + self.trust * np.eye(n_classes)
        trace = Trace(len(answers), max_iter=max_iter, tol=self.tol)
        counts = blocks.transposed(posterior).reshape(n_annotators, n_classes * n_classes)  # (A, given * true)
        classes = posterior[voted].sum(axis=0)
        while True:
            table = log_confusion((members.T @ counts).reshape(-1, n_classes), pseudo).reshape(n_clusters, -1)
            log_share, log_prior = log_shares(members.sum(axis=0), 1.0), log_shares(classes, self.smoothing_prior)
            penalty = (table @ pseudo.reshape(-1)).sum() + self.smoothing_prior * log_prior.sum() + log_share.sum()
            scores = counts @ table.T + log_share  # (A, G)
            softmax_rows(scores)
            members = scores
            entropy = -float((members * safe_log(members)).sum())
            annotator_table = (members @ table).reshape(-1, n_classes)  # (A * given, true)
            posterior = blocks.product(annotator_table) + log_prior
            likelihood = float(posterior_from(posterior, gold)[voted].sum())
            bound = likelihood + entropy + float(members.sum(axis=0) @ log_share)
            if trace.stop(bound + float(penalty)):
                break
            counts = blocks.transposed(posterior).reshape(n_annotators, n_classes * n_classes)
            classes = posterior[voted].sum(axis=0)
        counts = blocks.transposed(posterior)
        clusters = np.exp(table).reshape(n_clusters, n_classes, n_classes).transpose(0, 2, 1)
        confusion = np.einsum("ag,gkl->akl", members, clusters)
        return Estimate(
            posterior=posterior, confusion=confusion,
            counts=counts.reshape(n_annotators, n_classes, n_classes).transpose(0, 2, 1),
            skill=np.exp(log_prior) @ np.diagonal(confusion, axis1=1, axis2=2).T,
            parameters={
                "cluster": members, "cluster_confusion": clusters, "share": np.exp(log_share),
                "prior": np.exp(log_prior),
            },
            objective=tuple(trace.values), converged=trace.converged,
        )

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        members, clusters = fitted.parameters["cluster"], fitted.parameters["cluster_confusion"]
        n_classes = len(answers.classes)
        table = np.einsum("ag,gkl->alk", members, safe_log(clusters)).reshape(-1, n_classes)
        return table[answers.key] * answers.weights[:, None], safe_log(fitted.parameters["prior"])


def _starts(answers: AnswerMatrix, gold: Codes) -> tuple[Floats, Floats]:
    """(U, C) posteriors to start from: the soft vote and Dawid-Skene."""
    return start_posterior(answers, gold), DawidSkene(max_iter=50)._estimate(answers, gold, None).posterior

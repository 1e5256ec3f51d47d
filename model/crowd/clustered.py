"""DSWC: Dawid-Skene with annotator clusters (Imamura et al. 2018), by variational EM.

    annotator a belongs to cluster g with weight tau_g, and everybody in g shares the confusion matrix Lambda_g
    q(u, k) ~ rho_k exp(sum_votes sum_g q(a, g) log Lambda_g[k, l])
    q(a, g) ~ tau_g exp(sum_votes sum_k q(u, k) log Lambda_g[k, l])

The objective is the evidence bound plus the Dirichlet smoothing; it never falls. An iteration is linear in votes: the
votes are summed to (A, C, C) first, and clusters only see that. Starts: k-means over smoothed confusion matrices, from
the soft vote and from Dawid-Skene, seeded; the best bound is kept. Without `n_clusters`, held-out votes choose it.

Shape legend: U units, A annotators, C classes, G clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.cluster.vq import kmeans2

from model.crowd.answers import AnswerMatrix
from model.crowd.base import Aggregate, Aggregator, Codes, Estimate, Trace, posterior_from
from model.crowd.dawid_skene import DawidSkene, log_shares, start_posterior
from model.crowd.sums import Floats, VoteBlocks, normalise_rows, safe_log, softmax_rows

_CANDIDATES = (1, 2, 3, 4, 6, 8, 10, 15)
_HELD_OUT = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredDawidSkene(Aggregator):
    """`parameters`: cluster (A, G) memberships, cluster_confusion (G, C, C) [true, given], share (G,), prior (C,)."""

    name: ClassVar[str] = "dswc"
    stochastic: ClassVar[bool] = True
    n_clusters: int | None = None  # None: chosen by held-out likelihood
    smoothing: float = 0.1  # pseudo-votes in every cell of a cluster's confusion matrix
    smoothing_prior: float = 0.01
    restarts: int = 4
    seed: int = 0
    max_iter: int = 200
    tol: float = 1e-5

    def _estimate(self, answers: AnswerMatrix, gold: Codes, probabilities: Floats | None) -> Estimate:
        n_clusters = self.n_clusters
        if n_clusters is None:
            n_clusters = self.choose_clusters(answers, gold)
        n_clusters = max(1, min(n_clusters, len(answers.annotators)))
        blocks = VoteBlocks(answers)
        warm = DawidSkene(smoothing=self.smoothing, max_iter=50)._estimate(answers, gold, None).posterior
        starts = (start_posterior(answers, gold), warm)
        rng = np.random.default_rng(self.seed)
        best: Estimate | None = None
        for restart in range(max(self.restarts, 1) if n_clusters > 1 else 1):
            start = starts[restart % 2]
            members = self._first_members(blocks, answers, start, n_clusters, rng)
            estimate = self._climb(blocks, answers, gold, start.copy(), members)
            if best is None or estimate.objective[-1] > best.objective[-1]:
                best = estimate
        assert best is not None
        return best

    def choose_clusters(self, answers: AnswerMatrix, gold: Codes) -> int:
        """The number of clusters under which votes that were left out are the most likely."""
        rng = np.random.default_rng(self.seed)
        held_out = rng.random(len(answers)) < _HELD_OUT
        held_out &= np.diff(answers.indptr)[answers.unit] > 1
        if not held_out.any() or held_out.all():
            return 1
        rest = answers.select(~held_out)
        scores: dict[int, float] = {}
        for n_clusters in _CANDIDATES:
            if n_clusters > max(len(answers.annotators), 1):
                break
            fitted = replace(self, n_clusters=n_clusters, restarts=2, max_iter=50)._estimate(rest, gold, None)
            assert fitted.confusion is not None
            belief = fitted.posterior[answers.unit[held_out]]
            chance = fitted.confusion[answers.annotator[held_out], :, answers.label[held_out]]
            scores[n_clusters] = float(safe_log((belief * chance).sum(axis=1)).sum())
        return max(scores, key=lambda n: scores[n])

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
        self, blocks: VoteBlocks, answers: AnswerMatrix, gold: Codes, posterior: Floats, members: Floats
    ) -> Estimate:
        n_units, n_annotators, n_classes = answers.shape
        n_clusters = members.shape[1]
        voted = answers.voted
        trace = Trace(len(answers), max_iter=self.max_iter, tol=self.tol)
        counts = blocks.transposed(posterior).reshape(n_annotators, n_classes * n_classes)  # (A, given * true)
        classes = posterior[voted].sum(axis=0)
        while True:
            table = self._log_clusters(members.T @ counts, n_classes)  # (G, given * true)
            log_share, log_prior = log_shares(members.sum(axis=0), 1.0), log_shares(classes, self.smoothing_prior)
            penalty = self.smoothing * table.sum() + self.smoothing_prior * log_prior.sum() + log_share.sum()
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
                "cluster": members, "cluster_confusion": clusters, "share": np.exp(log_share), "prior": np.exp(log_prior)
            },
            objective=tuple(trace.values), converged=trace.converged,
        )

    def _log_clusters(self, counts: Floats, n_classes: int) -> Floats:
        """(G, given * true) expected votes -> log Lambda in the same shape."""
        table = counts.reshape(-1, n_classes, n_classes) + self.smoothing
        table = normalise_rows(table.transpose(0, 2, 1), 1.0 / n_classes).transpose(0, 2, 1)
        return safe_log(table).reshape(len(counts), -1)

    def evidence(self, answers: AnswerMatrix, fitted: Aggregate) -> tuple[Floats, Floats]:
        members, clusters = fitted.parameters["cluster"], fitted.parameters["cluster_confusion"]
        n_classes = len(answers.classes)
        table = np.einsum("ag,gkl->alk", members, safe_log(clusters)).reshape(-1, n_classes)
        return table[answers.key] * answers.weights[:, None], safe_log(fitted.parameters["prior"])

"""How far labels go along with what is known of the tasks, in whatever way: the dependence, not the agreement.

    V = tr(S_xx^+ S_xy S_yy^+ S_yx)          (Pillai's trace: the sum of squared canonical correlations)

x is what the others say of the task (belief, (N, K)), y the label (one-hot). Somebody lenient, severe or contrary is as
tied to x as somebody who agrees. Without dependence n V is chi-square with rank(x) rank(y) degrees of freedom; with
V_0, about noncentral chi-square with n V_0, so that "depends at least so much" can be rejected as well as "does not
depend". Beliefs that hardly differ between tasks can show little: `reliability` is the share of the variance of the
truth that x has if it is calibrated. Class rates of one's own limit V as well: who calls nearly everything by one name
can be tied to little. `strength` is V over what could be seen at best, given both.

Many classes are put together into the most frequent ones and the rest, since rare ones say little and cost much.

Shape legend: A annotators, N votes, C classes, K kept classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chndtr

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
KEPT = 6  # classes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tie:
    """(A,) each."""

    n: Floats  # summed weights
    trace: Floats  # V
    freedom: Floats  # degrees of freedom; 0 where nothing varies
    best: Floats  # the V of somebody with these class rates who follows the truth behind x as far as they allow
    independent: Floats  # p-value of "does not depend at all"

    @property
    def strength(self) -> Floats:
        """V beyond chance, over the best; 0 to 1."""
        some = (self.best > 1e-9) & (self.n > 0)
        beyond = self.trace - self.freedom / np.maximum(self.n, 1.0)
        return np.where(some, np.clip(beyond / np.where(some, self.best, 1.0), 0.0, 1.0), 0.0)

    def weaker_than(self, strength: float) -> Floats:
        """(A,) p-value of "is tied at least by `strength`"."""
        judged = (self.freedom > 0) & (self.best > 1e-9) & (self.n > 0)
        found = np.ones(len(self.n))
        found[judged] = chndtr(
            (self.n * self.trace)[judged], self.freedom[judged], (self.n * strength * self.best)[judged]
        )
        return found


def tie(who: NDArray[np.integer], label: NDArray[np.integer], x: Floats, weight: Floats, people: int) -> Tie:
    """Measure every annotator's labels (N,) against x (N, C), each row a distribution over classes."""
    x, y = _kept(np.asarray(label, np.int64), x)
    n = np.bincount(who, weight, minlength=people).astype(np.float64)
    some = np.maximum(n, 1e-12)
    mean_x, mean_y = (_sums(who, each, weight, people) / some[:, None] for each in (x, y))  # (A, K)
    s_xx = _products(who, x, x, weight, people) / some[:, None, None] - mean_x[:, :, None] * mean_x[:, None, :]
    s_xy = _products(who, x, y, weight, people) / some[:, None, None] - mean_x[:, :, None] * mean_y[:, None, :]
    s_yy = np.eye(y.shape[1]) * mean_y[:, :, None] - mean_y[:, :, None] * mean_y[:, None, :]
    s_zz = np.eye(x.shape[1]) * mean_x[:, :, None] - mean_x[:, :, None] * mean_x[:, None, :]
    (in_x, rank_x), (in_y, rank_y), (in_z, rank_z) = (_inverse(each) for each in (s_xx, s_yy, s_zz))
    trace = np.einsum("aij,ajk,akl,ail->a", in_x, s_xy, in_y, s_xy)
    reliability = np.einsum("aij,aji->a", in_z, s_xx) / np.maximum(rank_z, 1)
    freedom = (rank_x * rank_y).astype(np.float64)
    p = np.ones(people)
    varies = (freedom > 0) & (n > 0)
    p[varies] = chdtrc(freedom[varies], (n * trace)[varies])
    return Tie(
        n=n, trace=np.where(varies, trace, 0.0), freedom=freedom, independent=p,
        best=np.where(varies, _most(mean_x, mean_y) * np.clip(reliability, 0.0, 1.0), 0.0),
    )


def _most(mean_x: Floats, mean_y: Floats) -> Floats:
    """(A,) V of labels with these class rates that go along with x as far as the rates allow: a favourite costs."""
    p, q = (np.clip(np.column_stack([each, 1.0 - each.sum(axis=1)]), 1e-9, 1.0) for each in (mean_x, mean_y))
    same = np.minimum(p, q)
    left, taken = p - same, q - same
    rest = np.maximum(left.sum(axis=1), 1e-12)[:, None, None]
    joint = np.eye(p.shape[1]) * same[:, :, None] + left[:, :, None] * taken[:, None, :] / rest
    independent = p[:, :, None] * q[:, None, :]
    return np.asarray(((joint - independent) ** 2 / independent).sum(axis=(1, 2)))


def _kept(label: Codes, x: Floats) -> tuple[Floats, Floats]:
    """(N, K - 1) belief and label in the most frequent classes; the last one follows from the others."""
    n_classes = x.shape[1]
    frequent = np.argsort(-np.bincount(label, minlength=n_classes), kind="stable")[: min(KEPT, n_classes) - 1]
    return x[:, frequent], (label[:, None] == frequent).astype(np.float64)


def _sums(who: NDArray[np.integer], table: Floats, weight: Floats, people: int) -> Floats:
    columns = [np.bincount(who, table[:, k] * weight, minlength=people) for k in range(table.shape[1])]
    return np.stack(columns, axis=1) if columns else np.zeros((people, 0))


def _products(who: NDArray[np.integer], left: Floats, right: Floats, weight: Floats, people: int) -> Floats:
    """(A, K, K) sums of products."""
    return np.stack([_sums(who, right, left[:, i] * weight, people) for i in range(left.shape[1])], axis=1)


def _inverse(table: Floats) -> tuple[Floats, Codes]:
    """Pseudo-inverses of (A, K, K) covariances, and their ranks (A,)."""
    value, vector = np.linalg.eigh(table)
    there = value > 1e-6
    scaled = vector * np.where(there, 1.0 / np.where(there, value, 1.0), 0.0)[:, None, :]
    return np.asarray(scaled @ vector.transpose(0, 2, 1)), there.sum(axis=1)

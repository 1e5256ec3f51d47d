"""Own scores: a newcomer's deviation from the generic answer, a linear model with a Gaussian prior, fitted by Newton.

    z(u) = m(u) + b + s m(u) + sum_j e_j (l_j(u) - m(u)) / sqrt(J) + V x(u),     vote ~ softmax(A z)

m are the generic log-probabilities of a unit, l_j those of known annotator j, x its content; b, s, e and V are the
newcomer's, each with a Gaussian prior around 0. So somebody may be more lenient (b), less or oppositely sure (s; -2
turns an answer round), lean towards people who are known (e), or follow a rule that nobody else has (V). There are
thousands of numbers and a few votes, so the posterior's mode is found in the space of votes: with the kernel K of the
features, z - m = K a solves (I + K H) (z - m) = K (H (z - m) + gradient), H being the curvature of the log-likelihood.
A is an orthonormal basis of contrasts, so that nothing is spent on a constant. (Rasmussen & Williams 2006, ch. 3.)

Shape legend: N votes, J known annotators, G questions with K values each, L = K - 1 contrasts, F features of the
content, S strengths of the prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
STRENGTHS = (0.5, 1.2)  # factors of the standard deviations below
_BIAS, _SLOPE, _PEOPLE, _CONTENT = 1.0, 1.5, 1.0, 1.0  # standard deviations of what they add to a score
_REFIT = 1.5  # fitted again whenever there are so many times the votes
_STEPS, _CLOSE = 3, 2e-2  # each fit goes on from the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnScores:
    """The deviations that were found, for each strength and question."""

    bias: Floats  # (S, G, L)
    slope: Floats  # (S, G)
    people: Floats  # (S, G, J)
    content: Floats  # (S, G, F, L)

    def probabilities(self, log: Floats, content: Floats) -> Floats:
        """(B, S, G, K) from log-probabilities of people and the generic one, (B, J + 1, G, K), and content (B, F)."""
        basis = contrasts(log.shape[-1])
        generic = log[:, -1]  # (B, G, K)
        z = (generic @ basis)[:, None] * (1.0 + self.slope[..., None]) + self.bias
        z = z + np.tensordot(content, self.content, (1, 2))
        if log.shape[1] > 1:
            lean = np.einsum("bjgk,sgj->bsgk", log[:, :-1] - generic[:, None], self.people, optimize=True)
            z = z + lean @ basis
        return softmax(z @ basis.T)


def learn_own(log: Floats, content: Floats, said: Codes, weight: Floats) -> tuple[Floats, OwnScores]:
    """What was expected of each vote before it, (N, S, G, K), by the fit that there was, and the fit on all votes.

    `log`: log-probabilities of people and the generic one on each vote's unit, (N, J + 1, G, K); `content` (N, F) of
    about unit length; `said` (N, G); `weight` (N,).
    """
    n, _, g, k = log.shape
    basis = contrasts(k)
    wide = k - 1
    middle = np.moveaxis(log[:, -1] @ basis, 0, 1)  # (G, N, L)
    apart = (log[:, :-1] - log[:, -1:]) @ basis / np.sqrt(max(log.shape[1] - 1, 1))  # (N, J, G, L)
    flat = apart.transpose(2, 0, 3, 1).reshape(g, n * wide, apart.shape[1])  # (G, N L, J)
    one = _kernel(middle, flat, content)
    variance = np.square(STRENGTHS)[:, None]  # (S, 1)
    kernel = variance[..., None, None] * one  # (S, G, N L, N L)
    y = np.eye(k)[said].transpose(1, 0, 2) @ basis  # (G, N, L)
    f = np.zeros((len(STRENGTHS), g, n, wide))  # the deviation at every vote's unit
    expected = np.empty((*f.shape[:3], k))
    alpha, done = np.zeros_like(f), 0
    while done < n:
        upto = min(n, max(done + 1, int(done * _REFIT)))
        expected[:, :, done:upto] = softmax((middle + f)[:, :, done:upto] @ basis.T)
        fitted = _fit(kernel[..., : upto * wide, : upto * wide], middle[:, :upto], y[:, :upto], weight[:upto],
                      f[:, :, :upto])
        f = (kernel[..., : upto * wide] @ fitted.reshape(*f.shape[:2], -1, 1)).reshape(f.shape)
        alpha[:, :, :upto] = fitted
        done = upto
    found = OwnScores(
        bias=_BIAS**2 * variance[..., None] * alpha.sum(2), slope=_SLOPE**2 * variance * (middle * alpha).sum((2, 3)),
        people=(_PEOPLE**2 * variance[..., None] / np.sqrt(max(log.shape[1] - 1, 1))
                * (alpha.reshape(*f.shape[:2], 1, n * wide) @ flat)[..., 0, :]),
        content=_CONTENT**2 * variance[..., None, None] * (content.T @ alpha),
    )
    return expected.transpose(2, 0, 1, 3), found


def _fit(kernel: Floats, middle: Floats, y: Floats, weight: Floats, f: Floats) -> Floats:
    """Newton from `f` (S, G, n, L) to the mode, as weights alpha (S, G, n, L): f = kernel alpha. `y` (G, n, L)."""
    s, g, n, wide = f.shape
    basis = contrasts(wide + 1)
    diagonal = np.arange(n * wide)
    alpha = np.zeros_like(f)
    for _ in range(_STEPS):
        p = softmax((middle + f) @ basis.T)  # (S, G, n, K)
        mean = p @ basis
        curvature: Floats = (p[..., None] * basis).swapaxes(-1, -2) @ basis - mean[..., None] * mean[..., None, :]
        curvature = curvature * weight[:, None, None]  # (S, G, n, L, L)
        target = (curvature @ f[..., None])[..., 0] + (y - mean) * weight[:, None]
        product = (kernel.reshape(s, g, n * wide, n, 1, wide).swapaxes(2, 3) @ curvature[:, :, :, None])
        system = product.swapaxes(2, 3).reshape(s, g, n * wide, n * wide)
        system[..., diagonal, diagonal] += 1.0
        moved = np.linalg.solve(system, kernel @ target.reshape(s, g, -1, 1)).reshape(f.shape)
        alpha = target - (curvature @ moved[..., None])[..., 0]
        close = float(np.abs(moved - f).max(initial=0.0)) < _CLOSE
        f = np.asarray(moved)
        if close:
            break
    return alpha


def _kernel(middle: Floats, apart: Floats, content: Floats) -> Floats:
    """(G, N L, N L) covariance of what a newcomer's deviations add to scores."""
    g, n, wide = middle.shape
    same = _BIAS**2 + _CONTENT**2 * (content @ content.T)  # (N, N)
    flat = middle.reshape(g, n * wide, 1)
    return np.asarray(np.kron(same, np.eye(wide)) + _SLOPE**2 * flat @ flat.swapaxes(1, 2)
                      + _PEOPLE**2 * apart @ apart.swapaxes(1, 2))


def softmax(scores: Floats) -> Floats:
    """Probabilities along the last axis."""
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(p / p.sum(-1, keepdims=True))


@lru_cache(maxsize=64)
def contrasts(values: int) -> Floats:
    """An orthonormal basis of the differences between K values, (K, K - 1): Helmert's."""
    found = np.zeros((values, values - 1))
    for column in range(1, values):
        found[:column, column - 1] = 1.0
        found[column, column - 1] = -column
    return np.asarray(found / np.sqrt(np.square(found).sum(0, keepdims=True)))

"""Calibration of the consensus: a probability to be the panel's majority, from what it is called to what it comes to.

    q ~ (1 - e) p^b / sum(p^b) + e / C,      log b = sharpness + by_votes log(n / 3),      e = 1 / (1 + exp(-doubt))

with n the votes that a unit has. The map keeps the order of classes, so it changes how sure a label is and never the
label; it is monotone in p where there are two classes. Its three numbers are fitted by the likelihood of majorities
that are known: those of units with many votes, most of which were hidden. They stay near their prior (a map that is
fitted on few units stays near what many simulated projects showed), and without such units they are the prior.

Shape legend: B units, C classes.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from model.data.spaces import Space, ValueKind

Floats = NDArray[np.float64]
_USUAL_VOTES = 3.0
_FLOOR = 0.5 / 256  # of a probability that draws give: half of one among `consensus_samples`
_BOUNDS = ((-1.5, 0.7), (-0.5, 0.5), (-7.0, -1.5))


@dataclass(frozen=True, slots=True)
class Calibration:
    """The map."""

    sharpness: float
    by_votes: float
    doubt: float

    def apply(self, space: Space, p: Floats, votes: NDArray[np.integer], open_: NDArray[np.bool_]) -> Floats:
        """Probabilities (B, C) of units with so many votes (B,), calibrated; several choices: class by class. What
        no further vote could change is not in doubt: `open_` (B, C) are the others (`undecided`)."""
        if space.kind is ValueKind.CLASS:
            q = _mapped(np.array(astuple(self)), p, votes)
        else:
            flat = np.stack([1.0 - p.ravel(), p.ravel()], 1)
            q = _mapped(np.array(astuple(self)), flat, np.repeat(votes, p.shape[1]))[:, 1].reshape(p.shape)
        return np.where(open_, q, p)


@dataclass(frozen=True, slots=True)
class Prior:
    """What is thought of a map before any majority is known: normal in each number, from many simulated projects."""

    centre: Calibration
    width: tuple[float, float, float]  # standard deviations


FROM_VOTES = Prior(Calibration(-0.02, 0.02, -4.2), (0.3, 0.2, 0.5))
# Joint sampling is nearly calibrated by itself. Of a version few units are known that it never trained on, and they
# show the majority of those who voted there: a map that follows them freely is further from the whole panel's.
FROM_VERSION = Prior(Calibration(-0.05, 0.0, -6.0), (0.1, 0.05, 0.2))


def undecided(
    space: Space, y: NDArray[np.floating], has: NDArray[np.bool_], panel: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """(B, C) whether the votes that are missing of the panel (B, P) could change the majority of the votes y (B, P, C)
    where `has` (B, P); of a single choice, all classes of a unit alike."""
    counts = (y * has[..., None]).sum(1, dtype=np.float64)
    missing = (panel & ~has).sum(1)[:, None]
    if space.kind is ValueKind.CLASS:
        ranked = np.sort(np.pad(counts, ((0, 0), (1, 0))), axis=1)
        return np.broadcast_to((missing > 0) & (missing >= ranked[:, -1:] - ranked[:, -2:-1]), counts.shape)
    ahead = np.abs(2.0 * counts - has.sum(1)[:, None])
    return np.asarray((missing > 0) & (missing >= ahead))


def fit_calibration(
    space: Space, p: Floats, votes: NDArray[np.integer], truth: Floats, weight: Floats, prior: Prior
) -> Calibration:
    """The map under which the majorities `truth` (B, C; level ones share it) are most probable, near `prior`.

    `weight` (B,) is how much a row counts: 1 / k where a unit is there k times.
    """
    if space.kind is not ValueKind.CLASS:
        classes = p.shape[1]
        p, truth = (np.stack([1.0 - each.ravel(), each.ravel()], 1) for each in (p, truth))
        votes, weight = np.repeat(votes, classes), np.repeat(weight, classes) / classes
    centre, width = np.array(astuple(prior.centre)), np.array(prior.width)

    def objective(at: Floats) -> float:
        q = _mapped(at, p, votes)
        off = (at - centre) / width
        return float(-(weight[:, None] * truth * np.log(q)).sum() + 0.5 * off @ off)

    found = minimize(objective, centre, method="L-BFGS-B", bounds=_BOUNDS).x if len(p) else centre
    return Calibration(*(float(each) for each in found))


def _mapped(at: Floats, p: Floats, votes: NDArray[np.integer]) -> Floats:
    power = np.exp(at[0] + at[1] * np.log(np.maximum(votes, 1) / _USUAL_VOTES))
    scores = power[:, None] * np.log((p + _FLOOR) / (1.0 + _FLOOR * p.shape[1]))
    q = np.exp(scores - scores.max(1, keepdims=True))
    e = 1.0 / (1.0 + np.exp(-at[2]))
    return np.asarray((1.0 - e) * q / q.sum(1, keepdims=True) + e / p.shape[1])

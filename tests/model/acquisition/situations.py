"""Situations to choose from."""

from __future__ import annotations

import numpy as np

from model.acquisition.base import Situation


def made_up(*, units=30, people=6, classes=3, gaps=0.7, seed=0, members=0, **more) -> Situation:
    """Random and consistent in shape; nothing in it is tied."""
    rng = np.random.default_rng(seed)
    given = np.where(rng.random((units, people)) < gaps, -1, rng.integers(0, classes, (units, people)))
    parts = {
        "probabilities": rng.dirichlet(np.ones(classes), (units, people)), "given": given,
        "consensus": rng.dirichlet(np.ones(classes), units), "features": rng.normal(size=(units, 5)),
        "confusion": rng.dirichlet(np.ones(classes), (people, classes)) * 0.5 + 0.5 * np.eye(classes),
        "ambiguity": rng.random(units) * 0.5,
    }
    if members:
        parts["committee"] = rng.dirichlet(np.ones(classes), (members, units, people))
    return Situation(**parts | more)

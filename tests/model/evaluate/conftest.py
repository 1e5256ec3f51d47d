"""Small problems that are built once."""

from __future__ import annotations

import numpy as np
import pytest

from model.evaluate.problem import make_problem
from model.simulate import simulate_annotators


def problem_of(simulated, **kept):
    def tokens(units):
        return [simulated.tokens[unit] for unit in units]

    return make_problem("simulated", simulated.votes, "label", simulated.space, tokens, **kept)


@pytest.fixture(scope="session")
def problem():
    """80 tasks, 5 annotators, 3 classes, most pairs voted on; annotators react to content."""
    rng = np.random.default_rng(3)
    return problem_of(simulate_annotators(rng, units=80, annotators=5, classes=("a", "b", "c"), coverage=0.8, dim=12))


@pytest.fixture(scope="session")
def several():
    """The same with sets of classes."""
    rng = np.random.default_rng(4)
    return problem_of(
        simulate_annotators(rng, units=60, annotators=4, classes=("a", "b", "c"), coverage=0.8, dim=12, multiple=True))

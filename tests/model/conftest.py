"""Common to the tests of `model`: one thread, so that results repeat bit for bit and neighbours keep their cores."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model.ensemble.ladder import LadderConfig, TrainingSet, fit
from model.simulate import simulate_annotators


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def quick():
    """A configuration that trains in about a second."""
    base = LadderConfig()
    return replace(base, folds=3, members_per_fold=1, network=replace(base.network, width=32, epochs=6))


@pytest.fixture(scope="session")
def training_set():
    """Build a TrainingSet from a simulation: every `heldout`-th unit is held out (0: none)."""

    def build(simulated, *, heldout=5, control="label"):
        return TrainingSet(
            votes=simulated.votes, spaces={control: simulated.space},
            tokens=lambda units: [simulated.tokens[unit] for unit in units],
            heldout=lambda unit: heldout > 0 and int(unit[1:]) % heldout == 0,
        )

    return build


@pytest.fixture(scope="session")
def simulated():
    rng = np.random.default_rng(7)
    return simulate_annotators(rng, units=120, annotators=4, classes=("no", "maybe", "yes"), dim=16)


@pytest.fixture(scope="session")
def fitted(simulated, training_set, quick):
    """A ladder over `simulated`, shared by tests that only read it."""
    return fit(training_set(simulated), quick)

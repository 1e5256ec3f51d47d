"""Is what is served worth serving? On projects that nobody has seen: fresh seeds in every run.

Eight projects whose annotators react to content each in their own way, and the same eight with annotators who ignore
it. In the first, `served` must beat the annotator prior and pooled content + annotator bias on held-out units; in the
second it must not be worse than the prior, which is then the truth. Measured as log-loss, averaged over annotators,
paired within a project, with an interval over projects (Student's t) and one margin for both questions.

Replay a failure with POLYVOX_TEST_SEED=<the printed number>.
"""

import os
import secrets
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from model.ensemble.ladder import LadderConfig, fit
from model.simulate import simulate_annotators

PROJECTS = 8
MARGIN = 0.01  # nats a vote


def _losses(seed, content, training_set):
    """Held-out log-loss of every way of predicting, for one simulated project."""
    rng = np.random.default_rng(seed)
    annotators, classes = int(rng.integers(4, 8)), ("no", "maybe", "yes")[: int(rng.integers(2, 4))]
    project = simulate_annotators(rng, units=160, annotators=annotators, classes=classes, coverage=0.8, content=content)
    # The default, but three networks instead of eight, narrower and trained for less: sixteen fits in a minute.
    base = LadderConfig()
    config = replace(base, folds=3, members_per_fold=1, network=replace(base.network, width=32, epochs=12))
    figures = fit(training_set(project, heldout=4), config).figures["controls"]["label"]["heldout"]
    return {way: figures[way]["log_loss_annotator_mean"] for way in ("served", "network", "prior", "pooled")}


def _interval(differences):
    """Mean and two-sided 95 % interval over projects."""
    x = np.asarray(differences)
    half = student.ppf(0.975, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return x.mean(), x.mean() - half, x.mean() + half


@pytest.mark.timeout(900)
def test_served_beats_naive(training_set, capsys):
    seed = int(os.environ.get("POLYVOX_TEST_SEED") or secrets.randbits(32))
    seeds = np.random.SeedSequence(seed).generate_state(PROJECTS)
    with capsys.disabled():
        print(f"\nPOLYVOX_TEST_SEED={seed}")
    reacting = [_losses(s, True, training_set) for s in seeds]
    ignoring = [_losses(s, False, training_set) for s in seeds]
    found = {}
    for name, runs, against in (
        ("reacting, served - prior", reacting, "prior"),
        ("reacting, served - pooled + bias", reacting, "pooled"),
        ("ignoring, served - prior", ignoring, "prior"),
    ):
        found[name] = mean, low, high = _interval([run["served"] - run[against] for run in runs])
        with capsys.disabled():
            print(f"{name}: {mean:+.4f} nats a vote, 95 % interval {low:+.4f} to {high:+.4f}")
    replay = f"replay with POLYVOX_TEST_SEED={seed}"
    assert found["reacting, served - prior"][2] < -MARGIN, replay
    assert found["reacting, served - pooled + bias"][2] < -MARGIN, replay
    assert found["ignoring, served - prior"][2] < MARGIN, replay

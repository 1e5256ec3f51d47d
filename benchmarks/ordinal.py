"""Whether a likelihood that knows the order of classes helps: simulated annotators with thresholds on a common scale.

    scale[u, a] = content[u] . (common + own[a]) + leniency[a] + what only the unit knows[u] + noise,   vote = its bin

    scale[u, a] = content[u] . (common + own[a]) + leniency[a] + what only the unit knows[u] + noise;  vote = its bin
each crowd, then the mean difference (ordered minus plain; below 0 is better) with a 95 % interval over crowds.

Usage: python -m benchmarks.ordinal [--crowds 6] [--classes 5]
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from scipy.stats import t as student

from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.metrics import ordered_errors
from model.data.spaces import SingleChoice, Value
from model.data.splits import is_heldout
from model.data.votes import Vote, Votes
from model.ensemble.fitting import fit
from model.simulate import simulate_tokens

UNITS, ANNOTATORS, COVERAGE, TRAITS, HELDOUT = 130, 5, 0.6, 4, 30.0


def crowd(seed: int, classes: int) -> tuple[Votes, dict[str, np.ndarray]]:
    """Votes, and the tokens of every unit."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((UNITS, TRAITS))
    common, own = rng.standard_normal(TRAITS), 0.6 * rng.standard_normal((ANNOTATORS, TRAITS))
    scale = 0.75 * (x @ (common + own).T) + 0.6 * rng.standard_normal(ANNOTATORS)
    scale += 0.5 * rng.standard_normal((UNITS, 1))
    noise = 0.5 * rng.logistic(size=scale.shape) * np.exp(0.3 * rng.standard_normal(ANNOTATORS))
    label = np.searchsorted(np.linspace(-2.0, 2.0, classes - 1), scale + noise)
    asked = rng.random(scale.shape) < COVERAGE
    tokens = simulate_tokens(x, rng)
    rows = [Vote(unit=f"t{u}", annotator=f"a{a}", control="stars", value=Value.of_class(str(label[u, a] + 1)))
            for u, a in zip(*np.nonzero(asked), strict=True)]
    return Votes.from_votes(rows), {f"t{u}": each for u, each in enumerate(tokens)}


def figures(votes: Votes, tokens: dict[str, np.ndarray], space: SingleChoice) -> dict[str, float]:
    """Log-loss and mean absolute error of what is served and of the network, on held-out votes."""
    made = fit(TrainingSet(votes=votes, spaces={"stars": space}, tokens=lambda units: [tokens[u] for u in units],
                           heldout=lambda unit: is_heldout("ordinal", unit, HELDOUT)), LadderConfig.preset("polyvox"))
    scored = made.heldout["stars"]
    found = {}
    for way in ("served", "network"):
        found[f"{way} log-loss"] = float(scored.losses(way).mean())
        found[f"{way} mae"] = float(ordered_errors(space, scored.p[way], scored.targets.y).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--crowds", type=int, default=6)
    parser.add_argument("--classes", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first crowd")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    names = tuple(str(at + 1) for at in range(asked.classes))
    differences = []
    for seed in range(asked.first, asked.first + asked.crowds):
        votes, tokens = crowd(seed, asked.classes)
        plain, ordered = (figures(votes, tokens, SingleChoice(names, ordered=order)) for order in (False, True))
        differences.append([ordered[name] - plain[name] for name in plain])
        print(f"crowd {seed}: " + ", ".join(f"{name} {plain[name]:.4f} -> {ordered[name]:.4f}" for name in plain),
              flush=True)
    table = np.array(differences)
    reach = student.ppf(0.975, max(len(table) - 1, 1)) * table.std(0, ddof=min(1, len(table) - 1)) / len(table) ** 0.5
    for name, mean, half in zip(plain, table.mean(0), reach, strict=True):
        print(f"{name}: {mean:+.4f} +- {half:.4f}")


if __name__ == "__main__":
    main()

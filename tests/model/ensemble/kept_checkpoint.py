"""A checkpoint as the code of November 2026 wrote it, and what it said then.

    python -m tests.model.ensemble.kept_checkpoint tests/fixtures/checkpoint

makes it anew, which is wrong as long as that of then must be read: it stands for those of installations that run.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from model.config import LadderConfig
from model.data.numbers import number_bins
from model.data.spaces import MultipleChoice, SingleChoice, Space, Value
from model.data.votes import Provenance, Vote, Votes
from model.ensemble.ladder import Ladder, TrainingSet, fit
from model.simulate import Simulated, simulate_annotators

LABELS = ("no", "maybe", "yes")
ASKED = [f"t{number}" for number in (0, 5, 7, 11)]


def simulated() -> Simulated:
    return simulate_annotators(np.random.default_rng(5), units=60, annotators=4, classes=LABELS, dim=8)


def spaces() -> dict[str, Space]:
    numbers = number_bins({}, least=1.0, most=9.0, step=1.0)
    assert numbers is not None
    return {"tone": SingleChoice(LABELS), "kinds": MultipleChoice(LABELS), "price": numbers}


def votes_of(crowd: Simulated) -> Votes:
    """The same opinions as one label, as several, and as a number."""
    return Votes.from_votes(vote for unit, who, label in _given(crowd) for vote in (
        Vote(unit=unit, annotator=who, control="tone", value=Value.of_class(label)),
        Vote(unit=unit, annotator=who, control="kinds", value=Value.of_classes(sorted({label, "maybe"})),
             provenance=Provenance.ACCEPTED if unit.endswith("3") else Provenance.MANUAL),
        Vote(unit=unit, annotator=who, control="price",
             value=Value.of_number(1.0 + 3.0 * LABELS.index(label) + int(unit[1:]) % 3)),
    ))


def _given(crowd: Simulated) -> list[tuple[str, str, str]]:
    votes = crowd.votes
    return [(votes.units[u], votes.annotators[a], str(votes.values[v].data))
            for u, a, v in zip(votes.unit, votes.annotator, votes.value, strict=True)]


def answers(ladder: Ladder, crowd: Simulated) -> dict[str, Any]:
    """Control -> what the ladder says of four tasks, without votes and with those there are."""
    people, tokens = [*ladder.annotators, "nobody"], [crowd.tokens[unit] for unit in ASKED]
    found: dict[str, Any] = {}
    for name, given in (("content", None), ("votes", votes_of(crowd))):
        for control, each in ladder.predict(tokens, people, units=ASKED, given=given).items():
            found[f"{control}, {name}"] = {
                key: array.round(9).tolist()
                for key, array in {"served": each.served, "consensus": each.consensus, **each.base_models}.items()}
    return found


def make(folder: Path) -> None:
    torch.set_num_threads(1)
    crowd, base = simulated(), LadderConfig()
    config = replace(base, folds=2, members_per_fold=1, consensus_samples=64, network=replace(
        base.network, width=8, heads=2, blocks=1, epochs=2))
    made = fit(TrainingSet(
        votes=votes_of(crowd), spaces=spaces(), tokens=lambda units: [crowd.tokens[unit] for unit in units],
        heldout=lambda unit: int(unit[1:]) % 5 == 0), config)
    made.ladder.save(folder / "r1")
    told = json.dumps(answers(Ladder.load(folder / "r1"), crowd), separators=(",", ":"))
    (folder / "answers.json").write_text(told + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))

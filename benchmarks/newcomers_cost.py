"""What a newcomer costs a request: learning their votes after a new one, and answering one task, among 200 annotators.

Usage: python -m benchmarks.newcomers_cost [--votes 20] [--annotators 200]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from model.base_models.pooled import FittedPooled
from model.coldstart.adapting import adapt
from model.coldstart.people import People
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.encoders.surface import PLAIN, WIDTH

DIM, COMPONENTS, REPEATS = 384, 24, 30
CLASSES = ("Polite", "Neutral", "Impolite")


def milliseconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """Median over repeats."""
    spent = []
    for _ in range(REPEATS):
        begun = clock()
        work()
        spent.append(1e3 * (clock() - begun))
    return float(np.median(spent))


def version(annotators: int, rng: np.random.Generator) -> Any:
    """What adapting asks of a ladder, with random weights."""
    width = DIM + WIDTH
    pooled = FittedPooled(
        centre=np.zeros(width), scale=np.ones(width), weight=rng.normal(size=(width, 3)) / 20,
        bias=rng.normal(size=(annotators + 1, 3)), own=0.3 * rng.normal(size=(annotators + 1, PLAIN, 3)),
    )
    people = People(basis=rng.normal(size=(width + PLAIN, COMPONENTS)).astype(np.float32),
                    weight=(0.2 * rng.normal(size=(annotators, COMPONENTS, 3))).astype(np.float32))
    state = SimpleNamespace(space=SingleChoice(CLASSES), pooled=pooled, people=people,
                            panel=np.ones(annotators, np.bool_), prior=np.full((annotators + 1, 3), 1 / 3))
    return SimpleNamespace(controls={"tone": state}, config=SimpleNamespace(echo_weight=0.3), place=lambda who: None)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--votes", type=int, default=20)
    parser.add_argument("--annotators", type=int, default=200)
    asked = parser.parse_args(arguments)
    rng = np.random.default_rng(0)
    ladder, width = cast(Any, version(asked.annotators, rng)), DIM + WIDTH
    votes = Votes.from_votes(
        Vote(unit=f"t{at}", annotator="new", control="tone", value=Value.of_class(CLASSES[at % 3]), time=float(at))
        for at in range(asked.votes))
    features = {unit: rng.normal(size=width).astype(np.float32) for unit in votes.units}
    found = adapt(ladder, "new", votes, features)
    assert found is not None
    scores, content = rng.normal(size=(1, asked.annotators + 1, 3)), rng.normal(size=(1, width + PLAIN)) / 20
    for name, clock in (("of the processor", time.process_time), ("by the clock", time.perf_counter)):
        learn = milliseconds(lambda: adapt(ladder, "new", votes, features), clock)
        answer = milliseconds(lambda: found.controls["tone"].probabilities(scores, content), clock)
        print(f"{asked.votes} votes among {asked.annotators} annotators, ms {name}: {learn:.1f} after a new vote, "
              f"{answer:.2f} for each task answered")


if __name__ == "__main__":
    main()

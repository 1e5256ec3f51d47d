"""Which part is killed when, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.moments import When
from tests.chaos.world import Setup, Victim

# In each set-up the first three are those that everything else rests on; short runs take them.
CASES: dict[Setup, Sequence[tuple[Victim, When]]] = {
    Setup.EMBEDDED: (
        (Victim.JOBS, When.CHECKPOINT), (Victim.JOBS, When.SELECT), (Victim.LABEL_STUDIO, When.IMPORT),
        (Victim.JOBS, When.IMPORT), (Victim.WEB, When.SUBMIT), (Victim.EVERYTHING, When.CHECKPOINT),
        (Victim.LABEL_STUDIO, When.SELECT), (Victim.WEB, When.TRAIN), (Victim.JOBS, When.SYNC),
        (Victim.JOBS, When.DELETE), (Victim.EVERYTHING, When.SELECT), (Victim.LABEL_STUDIO, When.SYNC),
    ),
    Setup.RQ: (
        (Victim.REDIS, When.SELECT), (Victim.MACHINE, When.IMPORT), (Victim.JOBS, When.CHECKPOINT),
        (Victim.REDIS, When.SUBMIT), (Victim.MACHINE, When.SELECT), (Victim.SYNC_LANE, When.SYNC),
        (Victim.WEB, When.SUBMIT), (Victim.EVERYTHING, When.IMPORT), (Victim.LABEL_STUDIO, When.DELETE),
        (Victim.REDIS, When.TRAIN), (Victim.JOBS, When.SELECT), (Victim.EVERYTHING, When.TRAIN),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One kill."""

    number: int
    setup: Setup
    victim: Victim
    when: When
    submits: int  # for SUBMIT: after how many
    progress: float  # for TRAIN: how far it is at least
    seed: int


def plan(rounds: int, seed: int, setups: Sequence[Setup]) -> list[Round]:
    """The rounds, set-up by set-up; of each the first cases of its list, in an order of the seed."""
    draw, made = random.Random(seed), []
    for at, setup in enumerate(setups):
        share = rounds // len(setups) + (at < rounds % len(setups))
        cases = [CASES[setup][index % len(CASES[setup])] for index in range(share)]
        draw.shuffle(cases)
        for victim, when in cases:
            made.append(Round(
                number=len(made) + 1, setup=setup, victim=victim, when=when, submits=draw.randint(3, 15),
                progress=draw.uniform(0.3, 0.7), seed=draw.randrange(10**6),
            ))
    return made

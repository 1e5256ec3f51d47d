"""Route x recorded request x mutation, derandomised: no 5xx, no traceback, one sentence in JSON, nothing half-written.

Every case depends on its number alone and begins with the same database, so `POLYVOX_MATRIX_ONLY=1234` repeats one.
`POLYVOX_MATRIX_CASES` says how many (500 by default; `make fuzz` runs more). The first cases walk through the grid of
originals and mutations in a shuffled order; every further round has other details.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from backend.bootstrap import Services
from tests.backend.matrix.bench import Bench
from tests.backend.matrix.mutations import MUTATIONS, Sent, sent
from tests.backend.matrix.originals import Original, originals
from tests.backend.web.trained import KEY

SEED = 20261128
CASES = int(os.environ.get("POLYVOX_MATRIX_CASES", "500"))
ONLY = os.environ.get("POLYVOX_MATRIX_ONLY", "")
PART = 50  # cases of one test


def of(services: Services) -> list[Original]:
    (job,) = services.store.jobs.recent(KEY, limit=1)
    return originals(job.id)


def case(known: list[Original], number: int) -> tuple[str, Sent]:
    """The case of this number: a description, and the request."""
    grid = [(original, name) for original in known for name in MUTATIONS]
    Random(SEED).shuffle(grid)
    original, name = grid[number % len(grid)]
    return f"{number}: {original.name}, {name}", MUTATIONS[name](Random(f"{SEED}:{number}"), original)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("begin", [int(ONLY)] if ONLY else range(0, CASES, PART))
def test_mutated_requests(begin: int, services: Services, bench: Bench) -> None:
    known, bad = of(services), {}
    for number in range(begin, begin + 1 if ONLY else min(begin + PART, CASES)):
        about, request = case(known, number)
        found = bench.complaints(request)
        if found:
            bad[about] = found
    assert bad == {}, "\n".join(f"{about}\n  " + "\n  ".join(found) for about, found in bad.items())


def test_originals_are_answered(services: Services, bench: Bench) -> None:
    """What is mutated is right before it is mutated: else every case would be a refusal for the same reason."""
    for original in of(services):
        assert bench.complaints(sent(original)) == [], original.name
        assert bench.open(sent(original)).status_code < 300, original.name
        bench.restore()


def test_cases_depend_on_their_number_alone(services: Services) -> None:
    known = of(services)
    assert [case(known, number) for number in (3, 700)] == [case(known, number) for number in (3, 700)]
    assert case(known, 3) != case(known, 3 + len(known) * len(MUTATIONS))

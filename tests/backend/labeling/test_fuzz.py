"""Generated configurations and annotations through parse -> vote -> result, derandomised: no crash, nothing invalid.

`POLYVOX_FUZZ_CASES` says how many (500 by default; `make fuzz` runs 10,000). A case depends on its number alone.
"""

from __future__ import annotations

import json
import math
import os
from random import Random

import numpy as np
import pytest

from backend.errors import LabelConfigError
from backend.labeling import LabelConfig, parse_config, read_task
from backend.labeling.outside import kept_aside
from backend.services.served import Offers, as_votes
from model.data.spaces import Space, Value
from model.data.votes import Votes
from tests.backend.labeling.fuzz_cases import config, task

SEED = 20261128
CASES = int(os.environ.get("POLYVOX_FUZZ_CASES", "500"))
PART = 250


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(0, CASES, PART))
def test_generated_projects_are_read_and_answered(part: int) -> None:
    read = 0
    for number in range(part, min(part + PART, CASES)):
        try:
            read += _case(Random(f"{SEED}:{number}"))
        except Exception as error:
            raise AssertionError(f"case {number}: {error!r}") from error
    assert read > 0  # some of them are configurations


def _case(random: Random) -> bool:
    try:
        read = parse_config(config(random))
    except LabelConfigError as error:
        assert str(error).endswith(".")
        return False
    assert all(each.reason.endswith(".") for each in read.unmodelled)
    tasks = [task(random) for _ in range(2)]
    votes = as_votes([
        vote for each in tasks for vote in read_task(
            read, each, project_id=1, control_arm_percent=10.0, shown_since=None, known_annotators={}).votes])
    for value in votes.values:
        assert Value.from_json(value.kind.value, value.to_json()) == value
    spaces = read.spaces(votes)
    _check_spaces(spaces, votes)
    for sentences in kept_aside(read, spaces, votes).values():
        assert all(sentence.endswith(".") for sentence in sentences)
    _check_predictions(read, spaces, [each["data"] for each in tasks], random)
    return True


def _check_spaces(spaces: dict[str, Space], votes: Votes) -> None:
    for name, space in spaces.items():
        assert space.classes and len(set(space.classes)) == len(space.classes)
        for value in {votes.values[code] for code in votes.of_control(name).value.tolist()}:
            if space.contains(value):
                row = space.encode(value)
                assert np.array_equal(space.encode(space.decode(row)), row)


def _check_predictions(read: LabelConfig, spaces: dict[str, Space], data: list[object], random: Random) -> None:
    """A prediction says what its own control reads back, is JSON, and only of what the task offers."""
    rng = np.random.default_rng(random.randrange(1 << 30))
    rows = {name: rng.dirichlet(np.ones(len(space.classes)), len(data)) for name, space in spaces.items()}
    made = Offers(spaces, read).predictions(rows, data, range(len(data)), ["v"] * len(data))
    for shown, prediction in zip(data, made, strict=True):
        if prediction is None:
            continue
        json.dumps(prediction, allow_nan=False)
        assert 0.0 <= prediction["score"] <= 1.0 and math.isfinite(prediction["score"])
        for region in prediction["result"]:
            control = read.control(region["from_name"])
            value = control.decode(prediction["result"], shown)
            assert value is not None and control.offered(value, shown) == value

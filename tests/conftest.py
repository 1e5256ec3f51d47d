"""How the tests are spread over processes: end-to-end tests in two rows, everything else file by file.

End-to-end tests mostly wait, so two rows of them, each with a Label Studio of its own, start first, and the other tests
use the rest of the machine in a third process (`make test` has pytest-xdist do that; more processes would leave nothing
of two cores to Polyvox' trainings, which give way to everything else). A row stays in one process.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

KILLING = "tests/chaos/"
FIRST_ROW = (
    "tests/e2e/test_container_commands", "tests/e2e/test_demo", "tests/e2e/test_first_light", "tests/e2e/test_rq",
    KILLING,
)
SECOND_ROW = "tests/e2e/"


def row(nodeid: str) -> int | None:
    """In which row a test stands; None where it is not end to end."""
    if nodeid.startswith(FIRST_ROW):
        return 1
    return 2 if nodeid.startswith(SECOND_ROW) else None


class ByFile(LoadScopeScheduling):
    """A file is tested in one process, and so is a row."""

    def _split_scope(self, nodeid: str) -> str:
        number = row(nodeid)
        return nodeid.partition("::")[0] if number is None else f"end to end {number}"


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """See pytest-xdist."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the rows, which take longest; tests that kill end theirs, when the machine has become quieter."""
    items.sort(key=lambda item: (row(item.nodeid) or 3, item.nodeid.startswith(KILLING)))

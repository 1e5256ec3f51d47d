"""How the tests are spread over processes: what talks to a real Label Studio in one, everything else file by file.

End-to-end tests mostly wait, and they share one Label Studio, so they stay together in one process and start first;
meanwhile the others use the rest of the machine (`make test` has pytest-xdist do that).
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

END_TO_END = ("tests/e2e/", "tests/chaos/")


class ByFile(LoadScopeScheduling):
    """A file is tested in one process, and all end-to-end files in the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return "end to end" if nodeid.startswith(END_TO_END) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """See pytest-xdist."""
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the end-to-end tests, which take longest; those that kill come when the machine has become quiet."""
    items.sort(key=lambda item: (not item.nodeid.startswith(END_TO_END), item.nodeid.startswith(END_TO_END[1])))

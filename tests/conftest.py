"""How the tests are spread over processes: what talks to a real Label Studio in one, everything else file by file.

End-to-end tests mostly wait, and they share one Label Studio, so they stay together in one process and start first;
meanwhile the others use the rest of the machine (`make test`, pytest-xdist with `--dist loadgroup`).
"""

from __future__ import annotations

import pytest

LABEL_STUDIO = "label-studio"


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests for pytest-xdist, and put those that wait for Label Studio first."""
    for item in items:
        group = LABEL_STUDIO if item.get_closest_marker("e2e") else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("e2e") is None)

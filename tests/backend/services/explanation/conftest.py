"""One version, trained once for all tests of explanations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backend.services.workshop import trained


@pytest.fixture(scope="package")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to copy, with a published version."""
    return trained(tmp_path_factory.mktemp("learned"))

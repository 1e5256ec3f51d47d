"""Fixtures of the end-to-end tests: a real Label Studio with the middleware, and a real browser.

Label Studio comes from its own environment (`.venv-label-studio`, or POLYVOX_LABEL_STUDIO_VENV). Its database is
prepared once and kept under `local/`; each session works on a copy. Logs are printed when a test fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from demo.label_studio import REPOSITORY
from tests.e2e import server as running
from tests.e2e.browser import chromium

CACHE = REPOSITORY / "local" / "e2e"
CONTROL_ARM_PERCENT = 10.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="save pictures of what annotators see to docs/")


@pytest.fixture(scope="session")
def label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.LabelStudio]:
    """Label Studio 1.23.2 on the loopback interface, with four annotators and the middleware's default settings."""
    folder = tmp_path_factory.mktemp("server")
    server = running.start(CACHE, folder, {"POLYVOX_CONTROL_ARM_PERCENT": str(CONTROL_ARM_PERCENT)})
    try:
        yield server
    finally:
        server.service.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. Not for the whole session, since Playwright occupies the thread's event loop while it is there."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Where to save screenshots; None unless --screenshots was given."""
    return REPOSITORY / "docs" / "images" if request.config.getoption("--screenshots", default=False) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of Label Studio's log to the report of a failed test."""
    report = yield
    server = getattr(item, "funcargs", {}).get("label_studio")
    if report.failed and isinstance(server, running.LabelStudio):
        report.sections.append(("Label Studio's log", server.service.log_tail(60)))
    return report

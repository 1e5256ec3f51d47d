"""POLYVOX_SHOW_ALL_TABS: each annotator's predicted label is a tab of the quick view, and the own one preselected."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.e2e import server as running
from tests.e2e.browser import log_in, open_quick_view, open_stream, prediction_tabs, selected_choice
from tests.e2e.conftest import CACHE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def open_label_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.LabelStudio]:
    env = {"POLYVOX_SHOW_ALL_TABS": "true", "POLYVOX_CONTROL_ARM_PERCENT": "0"}
    server = running.start(CACHE, tmp_path_factory.mktemp("all-tabs"), env)
    try:
        yield server
    finally:
        server.service.stop()


def test_all_tabs_are_open_and_the_own_label_is_preselected(
    open_label_studio: running.LabelStudio, browser: Browser
) -> None:
    first, second, third, _ = open_label_studio.annotators
    text = "Well, that went brilliantly."
    project, task = open_label_studio.project_with_one_task(lambda *_: True, text)
    own = {f"annotator:{first.id}@r2": "Polite", f"annotator:{first.id}@r1": "Neutral",
           f"annotator:{second.id}@r2": "Impolite", "consensus@r2": "Neutral"}
    open_label_studio.predict(project, task, own)
    # Label Studio shortens a title, and has all of it in its answer.
    title_of = {account: f"{account.email}, r2" for account in (first, second)}
    for account, label, tabs in ((first, "Polite", {"For you, r2", title_of[second]}),
                                 (second, "Impolite", {"For you, r2", title_of[first]}),
                                 (third, "Neutral", {*title_of.values(), "Consensus, r2"})):
        answer = open_label_studio.session(account).get(f"{open_label_studio.url}/api/tasks/{task}", timeout=60)
        assert {each["model_version"] for each in answer.json()["predictions"]} == tabs
        page = log_in(browser, open_label_studio, account)
        open_quick_view(page, project, task, text)
        assert selected_choice(page) == label
        assert set(prediction_tabs(page)) == {shortened(title) for title in tabs}
        open_stream(page, project, text)
        assert selected_choice(page) == label
        page.context.close()


def shortened(title: str) -> str:
    """As Label Studio's editor writes it."""
    return title if len(title) <= 15 else f"{title[:8]}...{title[-6:]}"

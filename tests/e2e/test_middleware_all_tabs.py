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
    tabs_of_first = {f"annotator:{first.id}@r2", f"annotator:{second.id}@r2"}
    tabs_of_third = tabs_of_first | {"consensus@r2"}
    for account, label, tabs in ((first, "Polite", tabs_of_first), (second, "Impolite", tabs_of_first),
                                 (third, "Neutral", tabs_of_third)):
        page = log_in(browser, open_label_studio, account)
        open_quick_view(page, project, task, text)
        assert selected_choice(page) == label
        assert set(prediction_tabs(page)) == tabs
        open_stream(page, project, text)
        assert selected_choice(page) == label
        page.context.close()

"""Tabs of the Data Manager: made, refreshed and removed, and never one of somebody else's."""

import pytest

from backend.errors import JobFailed, LabelStudioError
from backend.services.gaps.tabs import MARK, PREFIX, TASKS
from tests.backend.services.gaps.test_service import encode_all, gaps_of
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID
from tests.backend.services.workshop import silent, workshop_of


class Tabs:
    """Label Studio as far as tabs go."""

    def __init__(self):
        self.kept = {1: {"title": "Default"}, 2: {"title": f"{PREFIX}me"}, 3: {"title": "Mine", MARK: "1"}}
        self.calls = []
        self.broken = None

    def views(self, project_id):
        assert project_id == LABEL_STUDIO_ID
        self.calls.append("views")
        return [{"id": number, "data": dict(data)} for number, data in self.kept.items()]

    def save_view(self, project_id, view_id, data):
        self.calls.append("save")
        if self.broken:
            raise self.broken
        self.kept[view_id or max(self.kept) + 1] = dict(data)

    def delete_view(self, view_id):
        self.calls.append("delete")
        del self.kept[view_id]

    def ours(self):
        """annotator -> tasks"""
        return {data[MARK]: [item["value"] for item in data["filters"]["items"]]
                for number, data in self.kept.items() if number > 3}


@pytest.fixture
def shop(template, tmp_path):
    made = workshop_of(template, tmp_path / "shop")
    encode_all(made)
    yield made
    made.close()


def run(shop, tabs):
    return gaps_of(shop, tabs).run(KEY, silent, force=True)


def test_off_by_default_and_then_nothing_is_asked_of_label_studio(shop):
    tabs = Tabs()
    run(shop, tabs)
    assert not tabs.calls


def test_they_are_made_kept_changed_and_removed(shop):
    tabs, others = Tabs(), dict(Tabs().kept)
    on = shop.having(gap_tabs=True, gap_per_task=3)
    figures = run(on, tabs)
    assert figures["tabs"] == figures["tabs_written"] == len(tabs.ours()) > 1
    asked = tabs.ours()
    assert {task for tasks in asked.values() for task in tasks} == set(range(41, 61))
    assert all(len(tasks) <= TASKS for tasks in asked.values())
    assert run(on, tabs)["tabs_written"] == 0, "what is as it should be is not written"
    tabs.kept[4]["hiddenColumns"] = {"explore": ["tasks:id"]}
    tabs.kept[4]["filters"]["items"].pop()
    assert run(on, tabs)["tabs_written"] == 1
    assert tabs.ours() == asked and tabs.kept[4]["hiddenColumns"], "what people set up stays"
    tabs.kept[5]["title"] = "Renamed by somebody"
    assert run(on, tabs)["tabs_written"] == 1
    assert tabs.kept[5]["title"] == "Renamed by somebody"
    assert run(shop, tabs)["tabs_deleted"] == len(asked)
    assert tabs.kept == others | {5: tabs.kept[5]}
    tabs.calls.clear()
    run(shop, tabs)
    assert not tabs.calls


def test_a_failure_is_tried_again(shop):
    tabs, on = Tabs(), shop.having(gap_tabs=True, gap_per_task=3)
    tabs.broken = LabelStudioError("Label Studio answered 502.", retry=True, http_status=502)
    with pytest.raises(JobFailed) as raised:
        gaps_of(on, tabs).run(KEY, silent)
    assert raised.value.retry_in_s
    tabs.broken = None
    assert gaps_of(on, tabs).run(KEY, silent)["tabs_written"] > 1
    assert not gaps_of(on, tabs).run(KEY, silent)["computed"]

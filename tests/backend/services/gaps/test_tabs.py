"""Tabs of the Data Manager: made, refreshed and removed, and never one of somebody else's."""

import pytest

from backend.errors import LabelStudioError
from backend.services.gaps.documents import read_gaps
from backend.services.gaps.service import MASKED
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


def test_title_and_conjunction_are_looked_at_too(shop):
    tabs, on = Tabs(), shop.having(gap_tabs=True, gap_per_task=3)
    run(on, tabs)
    as_made = {number: dict(data) for number, data in tabs.kept.items()}
    tabs.kept[4] = as_made[4] | {"filters": as_made[4]["filters"] | {"conjunction": "and"}}
    tabs.kept[5] = as_made[5] | {"title": f"{PREFIX}somebody else"}
    assert run(on, tabs)["tabs_written"] == 2
    assert tabs.kept == as_made
    shop.store.votes.set_names(KEY, {as_made[4][MARK]: "Renamed"})
    assert run(on, tabs)["tabs_written"] == 1
    assert tabs.kept[4]["title"] == f"{PREFIX}Renamed"


def test_no_names_are_shown_where_they_are_masked(shop):
    """Neither on the tabs nor in their data, and those that are there go."""
    tabs, others, on = Tabs(), dict(Tabs().kept), shop.having(gap_tabs=True)
    run(on, tabs)
    assert tabs.ours()
    shop.store.projects.update_settings(KEY, {"mask_names": True})
    assert gaps_of(on, tabs).run(KEY, silent)["tabs_deleted"], "the settings changed, so that it need not be forced"
    assert tabs.kept == others
    assert shop.store.projects.findings(KEY) == [MASKED]
    tabs.calls.clear()
    run(on, tabs)
    assert not tabs.calls
    run(shop, tabs)
    assert not shop.store.projects.findings(KEY)


def failing(shop, monkeypatch, **error):
    """Figures are stored, tabs are not; from then on nothing may be computed."""
    tabs, on = Tabs(), shop.having(gap_tabs=True, gap_per_task=3)
    tabs.broken = LabelStudioError("Label Studio says no.", **error)
    figures = run(on, tabs)
    assert figures["computed"] and figures["asks"] == len(read_gaps(shop.store, KEY).controls["politeness"].asks) > 0
    assert shop.store.projects.findings(KEY) == ["Tabs with next tasks could not be kept: Label Studio says no."]
    monkeypatch.setattr("backend.services.gaps.service.gap_figures", None)
    return tabs, on, figures


def test_a_failure_of_tabs_is_tried_again_alone_and_ever_later(shop, monkeypatch):
    tabs, on, figures = failing(shop, monkeypatch, retry=True, http_status=502)
    assert shop.store.projects.sync_state(KEY).reread_wanted == shop.clock()  # the job itself does not fail
    waits = [figures["tabs_retry_in_s"]]
    for _ in range(20):
        shop.clock.forward(waits[-1])
        figures = gaps_of(on, tabs).run(KEY, silent)
        assert not figures["computed"]
        waits.append(figures["tabs_retry_in_s"])
    assert waits == sorted(waits) and waits[-1] > waits[0] and waits[-1] == waits[-2]
    tabs.broken = None
    assert gaps_of(on, tabs).run(KEY, silent)["tabs_written"] > 1
    assert not shop.store.projects.findings(KEY)
    assert gaps_of(on, tabs).run(KEY, silent) == {"computed": False}


def test_a_refusal_is_said_and_waits_for_the_next_figures(shop, monkeypatch):
    with monkeypatch.context() as only_here:
        tabs, on, figures = failing(shop, only_here, retry=False, http_status=403)
        assert "tabs_retry_in_s" not in figures
        tabs.calls.clear()
        assert gaps_of(on, tabs).run(KEY, silent) == {"computed": False}
        assert not tabs.calls and shop.store.projects.findings(KEY)
    tabs.broken = None
    shop.clock.forward(1.0)
    assert run(on, tabs)["tabs_written"] > 1
    assert not shop.store.projects.findings(KEY)

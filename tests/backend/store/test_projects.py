from dataclasses import replace

import pytest

from backend.errors import ClientError, NotFound, TooMany
from backend.records import JobKind, SyncState
from backend.store import SqlStore
from tests.backend.store.conftest import FakeClock
from tests.backend.store.samples import KEY, NOON, minutes


def test_ensure_makes_once_and_stores_what_differs(store: SqlStore) -> None:
    project = store.projects.ensure(KEY)
    assert (project.title, project.label_config, project.version) == ("A project", "<View/>", None)
    assert project.label_studio_id == 7
    assert store.projects.ensure(KEY, title="Renamed").title == "Renamed"
    assert store.projects.get(KEY) == store.projects.ensure(KEY)
    assert len(store.projects.all()) == 1


def test_the_newest_project_of_an_id_is_found(store: SqlStore) -> None:
    store.projects.ensure("7.1800000000", title="after a reset")
    store.projects.ensure("7.1700000000", title="long ago")
    found = store.projects.by_label_studio_id(7)
    assert found is not None and found.title == "after a reset"
    assert store.projects.by_label_studio_id(8) is None


@pytest.mark.parametrize("key", ["", "7", "7.", "x.y", "7.1.2", "-7.1", "9" * 19 + ".1"])
def test_a_key_of_another_shape_is_refused(store: SqlStore, key: str) -> None:
    with pytest.raises(ClientError):
        store.projects.ensure(key)


def test_text_that_no_database_takes_is_stored_readably(store: SqlStore) -> None:
    project = store.projects.ensure(KEY, title="a\x00b\ud800c 😀")
    assert project.title == "a\ufffdb?c 😀"
    assert store.projects.ensure(KEY, title="a\x00b\ud800c 😀") == project


def test_settings_are_merged_and_taken_back(store: SqlStore) -> None:
    store.projects.update_settings(KEY, {"shadow_mode": True, "control_arm_percent": 20})
    store.projects.update_settings(KEY, {"shadow_mode": None})
    project = store.projects.get(KEY)
    assert project is not None and project.settings == {"control_arm_percent": 20}
    with pytest.raises(NotFound):
        store.projects.update_settings("9.9", {"shadow_mode": True})


def test_sync_state_comes_back_as_it_was(store: SqlStore) -> None:
    assert store.projects.sync_state(KEY) == SyncState() == store.projects.sync_state("9.9")
    state = SyncState(
        cursor_time=NOON + minutes(0.0001), cursor_id=12, last_sweep=NOON, last_success=NOON, last_error="down",
        failures=3,
    )
    store.projects.set_sync_state(KEY, state)
    assert store.projects.sync_state(KEY) == state


def test_a_wanted_reread_is_not_forgotten_either(store: SqlStore, clock: FakeClock) -> None:
    before = store.projects.sync_state(KEY)
    store.projects.ensure("2.2")
    store.projects.want_reread()
    store.projects.set_reread(KEY, last=NOON, begun=NOON + minutes(1), after=7)
    store.projects.set_sync_state(KEY, replace(before, cursor_id=3))
    assert store.projects.sync_state(KEY) == SyncState(
        cursor_id=3, last_reread=NOON, reread_begun=NOON + minutes(1), reread_after=7, reread_wanted=clock.now
    )
    assert store.projects.sync_state("2.2").reread_wanted == clock.now  # there is one Label Studio
    with pytest.raises(NotFound):
        store.projects.set_reread("9.9", last=NOON)


def test_a_wanted_sweep_is_not_forgotten_by_a_run_that_does_not_know_of_it(store: SqlStore, clock: FakeClock) -> None:
    before = store.projects.sync_state(KEY)
    store.projects.want_sweep(KEY)
    store.projects.set_sync_state(KEY, before)
    assert store.projects.sync_state(KEY).sweep_wanted == clock.now
    with pytest.raises(NotFound):
        store.projects.want_sweep("9.9")


def test_a_project_that_a_request_names_has_no_facts_yet(store: SqlStore) -> None:
    project = store.projects.introduce("8.1700000000", unread=3)
    assert (project.title, project.label_config, project.version) == ("", "", None)
    assert store.projects.introduce(KEY, unread=0) == store.projects.get(KEY)  # known ones need no room
    with pytest.raises(ClientError, match="named by its id"):
        store.projects.introduce("8", unread=3)


def test_few_projects_of_which_nothing_was_read_are_kept(store: SqlStore) -> None:
    names = [f"{number}.1700000000" for number in range(20, 24)]
    for key in names[:3]:
        store.projects.introduce(key, unread=3)
        store.tasks.mark_dirty(key, [1])
        store.jobs.enqueue(JobKind.RECONCILE, key)
    with pytest.raises(TooMany, match="LABEL_STUDIO_URL"):
        store.projects.introduce(names[3], unread=3)
    store.projects.set_sync_state(names[1], replace(SyncState(), failures=2, last_error="404."))
    store.projects.set_findings(names[1], "webhooks", ["A sentence."])
    store.projects.introduce(names[3], unread=3)
    assert [each.key for each in store.projects.all()] == [KEY, names[0], names[2], names[3]]
    assert store.jobs.pending(names[1], JobKind.RECONCILE) is None
    store.projects.ensure(names[0], title="Read")
    store.projects.introduce(names[1], unread=3)  # a project that was read counts no more


def test_an_invented_project_does_not_hide_a_real_one(store: SqlStore) -> None:
    store.projects.introduce("7.1999999999", unread=3)
    found = store.projects.by_label_studio_id(7)
    assert found is not None and found.key == KEY

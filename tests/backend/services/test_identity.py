"""A copy of a database asks before it acts in Label Studio; the same database in another container does not."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from backend.services.identity import held
from backend.services.reconcile import Reconciler
from backend.services.webhook_lease import HEADER
from backend.store import open_store
from tests.backend.services.reading_bench import Bench, bench

HERE, THERE = "http://polyvox.internal:9090", "http://other.internal:9090"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Bench]:
    with bench(tmp_path / "data", url=HERE) as made:
        made.store.projects.ensure(made.key)
        made.reconcile()
        yield made


class Beside:
    """A second Polyvox over `folder`, for the Label Studio of `at`."""

    def __init__(self, at: Bench, folder: Path, url: str = THERE) -> None:
        self.settings = at.settings.__class__(
            data_dir=folder, label_studio_url="http://studio", label_studio_api_key="0" * 40, url=url)
        self.store = open_store(self.settings.database_url, clock=at.clock)
        self._run = Reconciler(store=self.store, label_studio=at.studio, settings=self.settings, clock=at.clock)
        self.key = at.key

    def reconcile(self) -> None:
        self._run.run(self.key, lambda done, note: None)


def copied(at: Bench, folder: Path) -> Path:
    at.store.close()
    shutil.copytree(at.settings.data_dir, folder)
    return folder


def test_a_copied_folder_registers_nothing_until_it_is_adopted(at: Bench, tmp_path: Path) -> None:
    copy = Beside(at, copied(at, tmp_path / "copy"))
    assert "copied or restored from another place" in held(copy.store.instance) and not held(at.store.instance)
    copy.reconcile()
    assert [hook["url"] for hook in at.studio.hooks] == [f"{HERE}/webhook"]
    assert copy.store.projects.findings(at.key) == []  # and advises nobody to delete the original's
    copy.store.instance.adopt()
    copy.reconcile()
    assert [hook["url"] for hook in at.studio.hooks] == [f"{HERE}/webhook", f"{THERE}/webhook"]
    assert not held(copy.store.instance)


def test_neither_of_two_advises_to_delete_the_webhook_of_the_other_as_its_own(at: Bench, tmp_path: Path) -> None:
    copy = Beside(at, copied(at, tmp_path / "copy"))
    copy.store.instance.adopt()
    for url in (HERE, THERE):  # both are connected as models, too
        at.studio.backends.append({"id": 1, "project": at.project_id, "url": url, "model_version": "consensus@r0"})
    copy.reconcile()
    at.reconcile()
    copy.reconcile()
    for store, other in ((at.store, THERE), (copy.store, HERE)):
        (sentence,) = store.projects.findings(at.key)
        assert f"Another Polyvox serves this project too, at {other}" in sentence
        assert not held(store.instance)


def test_a_volume_under_another_path_keeps_its_identity(at: Bench, tmp_path: Path) -> None:
    before = at.store.instance.get()
    at.store.close()
    (tmp_path / "data").rename(tmp_path / "volume")  # a container made anew: another path and host name
    moved = Beside(at, tmp_path / "volume", HERE)
    assert moved.store.instance.get() == before and not held(moved.store.instance)
    moved.reconcile()
    assert len(at.studio.hooks) == 1 and not held(moved.store.instance)


def test_another_owner_or_a_disk_that_was_numbered_anew_is_no_other_place(
    at: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (at.settings.data_dir / "polyvox.sqlite3.place").chmod(0o640)  # its time of change is another now
    assert not held(at.store.instance)
    monkeypatch.setattr("backend.store.place.os.statvfs", lambda path: type("Found", (), {"f_fsid": 1}))
    assert held(at.store.instance)  # both together are one too many


def test_a_lost_mark_of_the_place_is_cured_by_one_command(at: Bench) -> None:
    (at.settings.data_dir / "polyvox.sqlite3.place").unlink()
    assert held(at.store.instance)
    at.store.instance.adopt()
    assert not held(at.store.instance)
    at.reconcile()
    assert len(at.studio.hooks) == 1 and not held(at.store.instance)


def like_a_cloned_disk(folder: Path) -> None:
    """Make a copy that differs in nothing that a file system tells."""
    store = open_store(f"sqlite:///{folder / 'polyvox.sqlite3'}")
    kept = store.instance.get().id
    store.instance.adopt()
    store.close()
    with sqlite3.connect(folder / "polyvox.sqlite3") as connection:
        connection.execute("UPDATE instance SET id = ?", [kept])


@pytest.mark.parametrize("first", ["original", "copy"])
def test_of_a_cloned_disk_only_the_first_to_come_goes_on(at: Bench, tmp_path: Path, first: str) -> None:
    copy_folder = copied(at, tmp_path / "copy")
    with sqlite3.connect(copy_folder / "polyvox.sqlite3") as connection:
        marks = connection.execute("SELECT * FROM webhook_marks").fetchall()
    like_a_cloned_disk(copy_folder)
    with sqlite3.connect(copy_folder / "polyvox.sqlite3") as connection:
        connection.executemany("INSERT INTO webhook_marks VALUES (?, ?, ?, ?)", marks)
    copy = Beside(at, copy_folder, HERE if first == "copy" else THERE)
    assert not held(copy.store.instance)  # the place tells nothing
    at.later += timedelta(hours=2)
    earlier, later = (at, copy) if first == "original" else (copy, at)
    earlier.reconcile()
    later.reconcile()
    earlier.reconcile()
    assert not held(earlier.store.instance)
    assert f"has written our webhook in Label Studio, at {HERE}" in held(later.store.instance)
    assert [hook["url"] for hook in at.studio.hooks] == [f"{HERE}/webhook"]


def test_a_crash_between_the_two_notes_of_a_mark_is_no_copy(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    at.later += timedelta(hours=2)
    written = at.studio.register_webhook

    def then_die(*arguments: object) -> None:
        written(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(at.studio, "register_webhook", then_die)
    before = at.studio.hooks[0]["headers"][HEADER]
    with pytest.raises(KeyboardInterrupt):
        at.reconcile()
    assert at.studio.hooks[0]["headers"][HEADER] != before
    monkeypatch.undo()
    at.reconcile()
    assert not held(at.store.instance)


def test_a_mark_is_kept_for_an_hour(at: Bench) -> None:
    mark = at.studio.hooks[0]["headers"][HEADER]
    at.reconcile()
    assert at.studio.hooks[0]["headers"][HEADER] == mark

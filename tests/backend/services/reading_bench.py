"""What tests of ingest and reconciler stand on: a real store on SQLite and a small Label Studio in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from backend.records import JobKind
from backend.services.ingest import Ingest
from backend.services.reconcile import Reconciler
from backend.settings import Settings
from backend.store import SqlStore, open_store
from tests.backend.fakes import FakeLabelStudio


class Bench:
    """One project, with its services; `hook` builds what Label Studio would send."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.studio = FakeLabelStudio()
        self.project_id = self.studio.add_project()
        self.key = self.studio.key(self.project_id)
        self.settings = Settings(
            data_dir=folder, label_studio_url="http://studio", label_studio_api_key="0" * 40, **settings
        )
        self.store: SqlStore = open_store(self.settings.database_url, clock=self.clock)
        services: dict[str, Any] = {
            "store": self.store, "label_studio": self.studio, "settings": self.settings, "clock": self.clock,
        }
        self.ingest = Ingest(**services)
        self.reconciler = Reconciler(**services, page_size=3)
        self.later = timedelta(0)
        self.notes: list[str] = []

    def clock(self) -> datetime:
        """The same clock as Label Studio's; `later` moves it on."""
        return self.studio.now + self.later

    def hook(self, action: str, **body: Any) -> dict[str, Any]:
        return {"action": action, "project": self.studio.projects[self.project_id], **body}

    def progress(self, fraction: float, note: str) -> None:
        assert 0.0 <= fraction <= 1.0
        self.notes.append(note)

    def sync(self) -> dict[str, Any]:
        return self.ingest.sync(self.key, self.progress)

    def reconcile(self) -> dict[str, Any]:
        return self.reconciler.run(self.key, self.progress)

    def reread(self) -> dict[str, Any]:
        return self.reconciler.reread(self.key, self.progress)

    def labels(self) -> dict[tuple[int, str], str]:
        """(task, annotator) -> label, of all current votes."""
        votes = self.store.votes.of_tasks(self.key, [*sorted(self.studio.tasks), 999])
        return {(vote.task_id, vote.annotator): str(vote.value.data) for vote in votes}

    def dirty(self) -> list[int]:
        return sorted(task_id for task_id, _ in self.store.tasks.dirty(self.key, 10_000))

    def waiting(self, kind: JobKind) -> bool:
        return self.store.jobs.pending(self.key, kind) is not None


@contextmanager
def bench(folder: Path, **settings: Any) -> Iterator[Bench]:
    made = Bench(folder, **settings)
    try:
        yield made
    finally:
        made.store.close()

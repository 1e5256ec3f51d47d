"""Services for tests of the job machinery: a real store and real triggers, and services that do what the test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from backend.bootstrap import Services
from backend.client.alive import Alive
from backend.ports import Clock, Progress, utc_now
from backend.services.late_writes import LateWrites
from backend.services.statistics import Statistics
from backend.services.storage_watch import StorageWatch
from backend.services.triggers import Triggers
from backend.settings import Settings
from backend.store import open_store
from backend.store.journal import Journal

Work = Callable[[str, Progress], Mapping[str, Any]]
CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="label" toName="text"><Choice value="A"/>'
    '<Choice value="B"/></Choices></View>'
)


@dataclass
class Doing:
    """Stands for any service; `work` is what its jobs do, `asked` what they were asked for."""

    work: Work
    asked: list[dict[str, Any]]

    def run(self, project: str, progress: Progress, **options: Any) -> Mapping[str, Any]:
        self.asked.append({"project": project, **options})
        return self.work(project, progress)

    sync = run


class NoEvidence:
    """Stands for a registry whose versions left nothing for the audit."""

    def evidence(self, version: object) -> None:
        return None

    def published(self, project: str) -> None:
        return None


class NothingToExplain:
    """Stands for explanations of projects without a version."""

    def refresh(self, project: str, progress: Progress) -> None:
        return None


def nothing(project: str, progress: Progress) -> Mapping[str, Any]:
    progress(0.5, "half")
    return {}


def small_services(
    folder: Path, *, on_sync: Work = nothing, on_reconcile: Work = nothing, on_train: Work = nothing,
    on_deliver: Work = nothing, features: Any = None, clock: Clock = utc_now,
    asked: list[dict[str, Any]] | None = None, **settings: Any,
) -> Services:
    """Services over a SQLite file in `folder` with project "1.1"."""
    chosen = Settings(data_dir=folder, **settings)
    store = open_store(chosen.database_url, clock=clock, job_attempts=chosen.job_attempts)
    store.projects.ensure("1.1", label_config=CONFIG)
    asked = [] if asked is None else asked
    absent = cast(Any, None)
    return Services(
        settings=chosen, store=store, label_studio=cast(Any, SimpleNamespace(waits_for=lambda thread: None)),
        features=features, registry=absent,
        ingest=cast(Any, Doing(on_sync, asked)), reconciler=cast(Any, Doing(on_reconcile, asked)),
        training=cast(Any, Doing(on_train, asked)), prediction=absent, explanations=cast(Any, NothingToExplain()),
        delivery=cast(Any, Doing(on_deliver, asked)),
        gaps=cast(Any, Doing(nothing, [])),
        statistics=Statistics(store=store, registry=cast(Any, NoEvidence()), settings=chosen, clock=clock,
                              features=cast(Any, None)),
        alive=Alive(""), storage=StorageWatch(store, chosen), late=LateWrites(store, Journal(folder / "journal")),
        triggers=Triggers(store=store, settings=chosen, clock=clock), clock=clock,
    )

"""A web app around small services: a real store in a temporary SQLite file, and an ingest and a prediction that are
just enough to see what the routes hand over. `test_real_services` does the same with everything real.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from flask.testing import FlaskClient

from backend.app import create_app
from backend.errors import NotFound
from backend.services.gaps.service import GapFilling
from backend.services.late_writes import LateWrites
from backend.services.statistics import Statistics
from backend.services.storage_watch import StorageWatch
from backend.services.triggers import Triggers
from backend.settings import Settings
from backend.store import open_store
from backend.store.journal import Journal
from tests.backend.web.explanations import SmallExplanations

ROOT = Path(__file__).parents[3]
FIXTURES = ROOT / "tests" / "fixtures" / "label-studio"
# What stands in the recorded requests for secrets, replaced by something that can be looked for.
SECRETS = {"<ADMIN_TOKEN>": "5ec4e7ad0123456789abcdef0123456789abcdef", "<PROJECT_TOKEN>": "5ec4e7b00123456789abcdef"}
NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
CONFIG = '<View><Text name="text" value="$text"/><Choices name="label" toName="text"><Choice value="A"/>' \
         '<Choice value="B"/></Choices></View>'


@dataclass
class SmallIngest:
    """Keeps what it was given; like the real one it makes the project known and marks its tasks."""

    store: Any
    payloads: list[Mapping[str, Any]] = field(default_factory=list)

    def webhook(self, payload: Mapping[str, Any]) -> SimpleNamespace:
        self.payloads.append(payload)
        if "project" not in payload:
            return _outcome(message="All projects will be compared.")
        project = payload["project"]
        created = datetime.fromisoformat(project["created_at"]) if project["created_at"] else None
        known = self.store.projects.by_label_studio_id(project["id"])
        key = f"{project['id']}.{int(created.timestamp())}" if created else known.key if known else None
        if key is None:
            raise NotFound("The project is not known here.")
        self.store.projects.introduce(key, unread=50)
        task = payload.get("task", payload.get("tasks", []))
        ids = [each["id"] for each in (task if isinstance(task, list) else [task])]
        self.store.tasks.mark_dirty(key, ids)
        return _outcome(project=key, marked=len(ids), start_training=payload["action"] == "START_TRAINING")

    def configured(self, key: str, label_config: str) -> str:
        known = self.store.projects.introduce(key, unread=50)
        return label_config or str(known.label_config)


def _outcome(**about: Any) -> SimpleNamespace:
    usual = {"accepted": True, "project": None, "marked": 0, "message": "Marked.", "start_training": False}
    return SimpleNamespace(**usual | about)


@dataclass
class SmallPrediction:
    """One own prediction and the consensus for each task with text; `broken` makes it fail as code does."""

    asked: list[tuple[str, str, Sequence[Mapping[str, Any]], float]] = field(default_factory=list)
    broken: Exception | None = None

    def version(self, project_key: str) -> str:
        return "consensus@r3" if project_key else "consensus@r0"

    def answer(
        self, project_key: str, label_config: str, tasks: Sequence[Mapping[str, Any]], *, deadline_s: float,
        drawn: Sequence[Mapping[str, Any]] = (),
    ) -> list[list[dict[str, Any]]]:
        self.asked.append((project_key, label_config, tasks, deadline_s))
        self.drawn = list(drawn)
        if self.broken is not None:
            raise self.broken
        return [[_prediction("annotator:5@r3"), _prediction("consensus@r3")] if task["data"] else [] for task in tasks]


def _prediction(version: str) -> dict[str, Any]:
    region = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["A"]}}
    return {"result": [region], "score": 0.75, "model_version": version}


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the newest schema and nothing in it; copying it is ten times faster than migrating."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("migrated"))
    open_store(settings.database_url).close()
    return settings.data_dir / "polyvox.sqlite3"


def make_services(folder: Path, migrated: Path | None = None, **overrides: Any) -> SimpleNamespace:
    settings = Settings(data_dir=folder, **overrides)
    folder.mkdir(parents=True, exist_ok=True)
    if migrated is not None:
        shutil.copy(migrated, folder / migrated.name)
    store = open_store(settings.database_url)
    registry = SimpleNamespace(
        usable=lambda version: True, evidence=lambda version: None, published=lambda project: None,
        current=store.versions.published)
    return SimpleNamespace(
        settings=settings, store=store, ingest=SmallIngest(store), prediction=SmallPrediction(), clock=lambda: NOW,
        alive=SimpleNamespace(problem=lambda: ""), storage=StorageWatch(store, settings),
        late=LateWrites(store, Journal(folder / "journal")),
        triggers=Triggers(store=store, settings=settings, clock=lambda: NOW),
        registry=registry, explanations=SmallExplanations(store),
        gaps=GapFilling(store=store, label_studio=None, features=None, registry=registry, settings=settings,
                        clock=lambda: NOW),
        statistics=Statistics(
            store=store, registry=registry, settings=settings, clock=lambda: NOW, features=None),
    )


@pytest.fixture
def services_with(tmp_path: Path, migrated: Path) -> Any:
    made: list[SimpleNamespace] = []

    def make(**overrides: Any) -> SimpleNamespace:
        made.append(make_services(tmp_path / str(len(made)), migrated, **overrides))
        return made[-1]

    yield make
    for each in made:
        each.store.close()


@pytest.fixture
def services(services_with: Callable[..., SimpleNamespace]) -> SimpleNamespace:
    return services_with()


@pytest.fixture
def client(services: SimpleNamespace) -> FlaskClient:
    return create_app(services).test_client()


@pytest.fixture
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def recorded(name: str) -> dict[str, Any]:
    """The request of a recorded exchange, with findable secrets."""
    text = (FIXTURES / name).read_text()
    for placeholder, secret in SECRETS.items():
        text = text.replace(placeholder, secret)
    request: dict[str, Any] = json.loads(text)["request"]
    return request


def recorded_requests() -> list[str]:
    """Names of the files that hold a request which Label Studio made to a backend."""
    contents = {path.name: json.loads(path.read_text()) for path in sorted(FIXTURES.glob("*.json"))}
    return [name for name, content in contents.items() if isinstance(content, dict) and "request" in content]

"""`status`: what is connected, what runs, how good each version is, what needs attention."""

from __future__ import annotations

import argparse
import dataclasses
import json
from datetime import datetime
from enum import Enum
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from sqlalchemy.engine import make_url

from backend.bootstrap import build_services
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.records import Job, JobState, Version
from backend.routes.overview import Overview, ProjectView, overview
from backend.routes.sentences import again, ago, answering, connection, crowd, learned
from backend.services.storage_watch import of_database
from backend.settings import Settings
from backend.store.patience import AWAY, patience, why

VERSIONS_SHOWN = 5
LOOK_S = 3.0  # how long the database is waited for
PRIVATE = {"label_config", "settings"}  # long, and no state


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser, optional=True)
    parser.add_argument("--json", action="store_true", help="for programs")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    try:
        with patience(LOOK_S):
            services = build_services(settings)
    except AWAY as error:
        return _unreadable(of_database(why(error)), arguments, console)
    try:
        chosen = find_project(services.store, arguments.project).key if arguments.project else None
        seen = overview(services)
        views = [view for view in seen.projects if chosen in (None, view.project.key)]
        versions = {view.project.key: services.store.versions.recent(view.project.key, limit=VERSIONS_SHOWN)
                    for view in views}
        seen = dataclasses.replace(seen, projects=views)
        if arguments.json:
            print(json.dumps(as_json(seen, versions), indent=2, ensure_ascii=False))
        else:
            show(seen, versions, console)
            if not services.store.projects.all():
                place = make_url(settings.database_url).set(query={}).render_as_string()
                say(console, f"Looked into {place}; what another server keeps is found with the POLYVOX_DATA_DIR or "
                             "DATABASE_URL that it was started with.")
        return 0
    finally:
        services.close()


def _unreadable(sentence: str, arguments: Arguments, console: Console) -> int:
    """Nothing can be told but why; exit code 1."""
    if arguments.json:
        print(json.dumps({"readable": False, "problems": [sentence]}, indent=2, ensure_ascii=False))
    else:
        say(console, f"! {sentence}", "yellow")
    return 1


def as_json(seen: Overview, versions: dict[str, list[Version]]) -> dict[str, Any]:
    """The overview with the newest versions of each project; times in ISO 8601."""
    plain: dict[str, Any] = _plain(seen) | {"connected": seen.works, "answers": not seen.away}
    for view in plain["projects"]:
        view["versions"] = _plain(versions[view["project"]["key"]])
    return plain


def _plain(item: Any) -> Any:
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {field.name: _plain(getattr(item, field.name)) for field in dataclasses.fields(item)
                if field.name not in PRIVATE}
    if isinstance(item, dict):
        return {str(name): _plain(each) for name, each in item.items()}
    if isinstance(item, list | tuple):
        return [_plain(each) for each in item]
    if isinstance(item, datetime):
        return item.isoformat()
    return item.value if isinstance(item, Enum) else item


def show(seen: Overview, versions: dict[str, list[Version]], console: Console) -> None:
    """For people. Titles, notes and reasons come from elsewhere, so they are printed as plain text, without markup."""
    say(console, f"Label Studio: {seen.label_studio_url or 'not connected'}")
    if seen.away or (seen.connected and not seen.works):
        say(console, f"! {connection(seen)}", "yellow")
    for sentence in seen.problems:
        say(console, f"! {sentence}", "yellow")
    if seen.readable and not seen.projects:
        say(console, "No project yet: add Polyvox as a model in a project's settings in Label Studio.")
    for view in seen.projects:
        console.print()
        _show_project(view, versions[view.project.key], seen.at, console)


def _show_project(view: ProjectView, versions: list[Version], now: datetime, console: Console) -> None:
    project, votes = view.project, view.votes
    say(console, f"Project {project.label_studio_id} {project.title}".rstrip(), "bold")
    waiting = f", {view.dirty} to be read again" if view.dirty else ""
    say(console, f"  {view.tasks} tasks{waiting}; {votes.total} votes by {votes.annotators} annotators")
    say(console, f"  read from Label Studio {_ago(view.sync.last_success, now)}")
    say(console, f"  {answering(view, now)}")
    for sentence in [*learned(view), *crowd(view)]:
        say(console, f"  {sentence}")
    for sentence in view.problems:
        say(console, f"  ! {sentence}", "yellow")
    for sentence in view.notes:
        say(console, f"  {sentence}")
    for job in view.jobs:
        say(console, f"  {_job(job, now)}")
        if job.error:
            say(console, f"    {again(job, now)}")
    if versions:
        table = Table("version", "verdict", "trained", "reason", box=None, padding=(0, 2))
        for version in versions:
            cells = (version.name, version.verdict.value, _ago(version.created_at, now), version.reason)
            table.add_row(*(Text(cell) for cell in cells))
        console.print(table)


def _job(job: Job, now: datetime) -> str:
    if job.state is JobState.RUNNING:
        return f"{job.kind.value}: {job.progress:.0%} {job.note}".rstrip()
    wait_s = max((job.not_before - now).total_seconds(), 0.0)
    return f"{job.kind.value}: waits{f' {wait_s:.0f} s' if wait_s >= 1 else ''}"


def _ago(moment: datetime | None, now: datetime) -> str:
    return "never" if moment is None else ago(moment, now)


COMMAND = Command(
    name="status", help="what is connected, what runs, what needs attention", arguments=_arguments, run=_run,
    description="Show the state of all projects or of one: connection, votes, jobs with their progress, versions with "
    "their verdicts, and problems with what to do about them. Changes nothing.",
)

"""`set`: a project's own settings, on top of those of the environment."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from backend.bootstrap import open_store
from backend.commands.base import Arguments, Command, find_project, project_argument, say
from backend.errors import ClientError, SettingsError
from backend.records import Project
from backend.services.overrides import settings_of
from backend.settings import BY_NAME, PREFIX, SETTINGS, Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument(
        "assignments", metavar="NAME=VALUE", nargs="*",
        help="a setting of the project, such as shadow_mode=yes; NAME= takes it back, so that the environment's holds "
        "again; without any, the settings of the project are shown")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    store = open_store(settings)
    try:
        project = find_project(store, arguments.project)
        if arguments.assignments:
            changes = read_changes(arguments.assignments, project.settings, settings)
            store.projects.update_settings(project.key, changes)
            project = find_project(store, project.key)
        _show(project, settings, console)
        return 0
    finally:
        store.close()


def read_changes(assignments: Sequence[str], present: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """Setting name -> value, None to take it back, of a project with the overrides `present`.

    Names are those of the environment, in either case, with or without their prefix. Raises ClientError for what is no
    assignment, SettingsError for a name that no project can set, a value that does not fit, or when what would hold
    then, with the overrides that are there already, could not be used.
    """
    changes: dict[str, Any] = {}
    for assignment in assignments:
        given, equals, text = assignment.partition("=")
        name = given.strip().lower().removeprefix(PREFIX.lower())
        if not equals or not name:
            raise ClientError("Settings are given as NAME=VALUE, such as shadow_mode=yes.")
        if name in changes:
            raise ClientError(f"{name} is given twice.")
        known = name in BY_NAME and BY_NAME[name].per_project
        if not known and (text.strip() or name not in present):  # an earlier release may have known it
            can = ", ".join(each.name for each in SETTINGS if each.per_project)
            raise SettingsError(f"{name} is not a setting that a project can override; those are {can}.")
        changes[name] = BY_NAME[name].parse(text) if text.strip() else None
    merged = {**present, **changes}
    settings.for_project({name: value for name, value in merged.items() if value is not None})
    return changes


def _show(project: Project, settings: Settings, console: Console) -> None:
    """Every setting that a project can have, and where its value comes from."""
    say(console, f"Project {project.label_studio_id} {project.title}".rstrip(), "bold")
    holds = settings_of(settings, project)
    for each in SETTINGS:
        if each.per_project:
            mark = "  (of this project)" if each.name in project.settings else ""
            say(console, f"  {each.name}={_text(getattr(holds, each.name))}{mark}")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


COMMAND = Command(
    name="set", help="settings of one project", arguments=_arguments, run=_run,
    description="Give a project its own settings on top of those of the environment, or show them. They hold from the "
    "next request and the next job on; nothing need be started again.",
)

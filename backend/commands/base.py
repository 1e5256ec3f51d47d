"""What a command is, and what several commands share: the console, finding the project that somebody means."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from backend.errors import NotFound
from backend.ports import Store
from backend.records import Project
from backend.settings import Settings

Arguments = argparse.Namespace


@dataclass(frozen=True, kw_only=True)
class Command:
    """`run` gets the parsed arguments, the settings and a console for the result (logs go to stderr), and returns the
    exit code. Expected errors are raised as `PolyvoxError`; `cli` prints their sentence."""

    name: str
    help: str  # one line for the list of commands
    description: str  # for its own --help
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[Arguments, Settings, Console], int]


def say(console: Console, sentence: str, style: str = "") -> None:
    """Print text as it is: titles, ids and labels come from elsewhere and may look like markup."""
    console.print(Text(sentence), style=style, soft_wrap=True)


def project_argument(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """The positional PROJECT."""
    parser.add_argument(
        "project", metavar="PROJECT", nargs="?" if optional else None,
        help="number of the project in Label Studio (as in its address: /projects/12/), or its key in Polyvox",
    )


def find_project(store: Store, name: str) -> Project:
    """The project that a person means by its number or key. Raises NotFound with the ones there are."""
    project = store.projects.get(name)
    if project is None and name.isascii() and name.isdigit():
        project = store.projects.by_label_studio_id(int(name))
    if project is not None:
        return project
    known = ", ".join(str(each.label_studio_id) for each in store.projects.all()[:20])
    raise NotFound(
        f"There is no project {name} here; Polyvox knows {known}." if known
        else f"There is no project {name} here: Polyvox learns of a project when Label Studio first calls it."
    )

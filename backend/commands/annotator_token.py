"""`annotator-token`: annotators' own access tokens, for drafts where Label Studio's settings cannot be changed."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from backend.bootstrap import annotator_tokens, desk_opener, open_store
from backend.commands.base import Arguments, Command, find_project, say
from backend.errors import ClientError, LabelStudioError, NotFound
from backend.ports import Store, utc_now
from backend.records import AnnotatorToken, Project
from backend.services.draft_writer import DraftWriter, Outcome
from backend.services.triggers import Triggers
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", dest="action", required=True, metavar="add | list | remove",
                                    help="what to do; each has its own --help")
    add = actions.add_parser("add", help="store a token; it is read from standard input or a file")
    _whose(add)
    add.add_argument("--file", type=Path, help="file with the token, one line; without it, standard input is read")
    actions.add_parser("list", help="whose tokens there are (never the tokens)")
    remove = actions.add_parser("remove", help="take back untouched drafts, then forget the token")
    _whose(remove)


def _whose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", nargs="?", help="number or key of the project; or --all")
    parser.add_argument("email", metavar="EMAIL", help="the annotator's account in Label Studio")
    parser.add_argument("--all", action="store_true", help="for all projects, those of the future included")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    store = open_store(settings)
    try:
        if arguments.action == "list":
            _list(store, console)
            return 0
        if arguments.all == bool(arguments.project):
            raise ClientError("Name either a project or --all.")
        scope = "" if arguments.all else find_project(store, arguments.project).key
        if arguments.action == "add":
            _add(arguments, scope, settings, store, console)
        else:
            _remove(arguments.email, scope, settings, store, console)
        return 0
    finally:
        store.close()


def _add(arguments: Arguments, scope: str, settings: Settings, store: Store, console: Console) -> None:
    stored = annotator_tokens(settings, store).add(scope, arguments.email, read_token(arguments.file))
    say(console, f"The token of {stored.email} is stored, encrypted, for {_scope(store, scope)}.")
    triggers = Triggers(store=store, settings=settings, clock=utc_now)
    for project in _projects(store, scope):
        if triggers.settings_of(project).middleware:
            say(console, f"Project {project.label_studio_id} makes no drafts while POLYVOX_MIDDLEWARE is yes.")
        elif project.version is not None and triggers.delivers(project):
            triggers.deliver_now(project.key)


def read_token(file: Path | None) -> str:
    """One line. Never an argument: other users of the machine can see those. Raises ClientError."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").strip()
        except UnicodeDecodeError:
            raise ClientError("The file does not hold a token: it is no text.") from None
    return (getpass.getpass("Token (not shown): ") if sys.stdin.isatty() else sys.stdin.read()).strip()


def _list(store: Store, console: Console) -> None:
    tokens = store.tokens.all()
    if not tokens:
        say(console, "No annotator gave a token.")
    for token in tokens:
        problem = f"  ! {token.problem}" if token.problem else ""
        say(console, f"{token.email}: {_scope(store, token.scope)}, since {token.added_at:%Y-%m-%d}{problem}")


def _remove(email: str, scope: str, settings: Settings, store: Store, console: Console) -> None:
    mine = [each for each in store.tokens.all() if each.scope == scope and each.email.casefold() == email.casefold()]
    if not mine:
        raise NotFound(f"There is no token of {email} for {_scope(store, scope)}.")
    for token in mine:
        try:
            taken, left = _take_back(token, settings, store)
            say(console, f"{taken} untouched drafts were taken back, {left} were left to the annotator.")
        except LabelStudioError as error:
            say(console, f"Drafts stay in Label Studio: {error}")
        store.tokens.remove(scope, token.annotator)
        say(console, f"The token of {token.email} for {_scope(store, scope)} is forgotten.")


def _take_back(token: AnnotatorToken, settings: Settings, store: Store) -> tuple[int, int]:
    """Remove this annotator's drafts in the projects that use this very token; (removed, not ours any more)."""
    writer, counts = DraftWriter(store), [0, 0]
    secret = annotator_tokens(settings, store).unseal(token)
    if secret is None:
        return 0, 0
    desk = desk_opener(settings)(secret)
    for project in _projects(store, token.scope):
        if token not in store.tokens.of(project.key):
            continue
        for entry in store.drafts.of(project.key).values():
            if entry.annotator == token.annotator and not entry.theirs:
                counts[writer.take_away(project.key, desk, token.email, entry) is Outcome.THEIRS] += 1
    return counts[0], counts[1]


def _projects(store: Store, scope: str) -> Iterator[Project]:
    return (project for project in store.projects.all() if scope in ("", project.key))


def _scope(store: Store, scope: str) -> str:
    project = store.projects.get(scope) if scope else None
    return "all projects" if not scope else f"project {project.label_studio_id if project else scope}"


COMMAND = Command(
    name="annotator-token", help="annotators' own tokens, for drafts without the middleware", arguments=_arguments,
    run=_run,
    description="Where Label Studio's settings cannot be changed, an annotator may give Polyvox their own access "
    "token; their predicted labels then come as drafts that only they see. Tokens are encrypted, and only ever read "
    "from standard input or a file.",
)

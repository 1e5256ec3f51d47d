"""The command line: `python -m backend COMMAND`.

Exit codes: 0 done, 1 an expected failure (its sentence is on stderr), 2 wrong usage, an unusable setting or a file
without votes, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from sqlalchemy.exc import SQLAlchemyError

from backend.commands import COMMANDS
from backend.errors import NoVotes, PolyvoxError, SettingsError
from backend.services.storage_watch import of_database
from backend.settings import Settings
from backend.store.patience import AWAY, why
from backend.telemetry import configure_logging

_WIDE = 200  # columns


def build_parser() -> argparse.ArgumentParser:
    """The parser with one sub-parser per command."""
    parser = argparse.ArgumentParser(
        prog="python -m backend",
        description="Polyvox learns each annotator of your Label Studio projects and hands everybody their own "
        "predicted label.",
        epilog="Settings come from environment variables; docs/settings.md lists them.",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(command.name, help=command.help, description=command.description)
        command.arguments(sub)
        sub.set_defaults(command=command)
    return parser


def main(argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run one command and return its exit code; usage errors leave through argparse with 2."""
    arguments = build_parser().parse_args(argv)
    try:
        settings = Settings.from_env(os.environ if env is None else env)
        configure_logging(settings)
        code: int = arguments.command.run(arguments, settings, _console())
        return code
    except SettingsError as error:
        return _complain(str(error), 2)
    except NoVotes as error:
        return _complain(str(error), 2)
    except PolyvoxError as error:
        return _complain(str(error), 1)
    except AWAY as error:
        return _complain(of_database(why(error)), 1)
    except SQLAlchemyError as error:
        # Its message quotes the statement and its values.
        return _complain(f"The database cannot be used ({type(error).__name__}); check DATABASE_URL.", 1)
    except BrokenPipeError:  # `status | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 1
    except OSError as error:  # a folder that cannot be made or written, a full disk
        where = f": {error.filename}" if error.filename else ""
        return _complain(f"{error.strerror or type(error).__name__}{where}", 1)
    except KeyboardInterrupt:
        return 130


def _console() -> Console:
    """A file or a pipe has no width of its own; rich would cut tables to 80 columns there."""
    told = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if told else _WIDE)


def _complain(sentence: str, code: int) -> int:
    print(f"polyvox: {sentence}", file=sys.stderr)
    return code

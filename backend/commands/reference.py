"""The reference of commands in docs/crowd.md, made from the parsers.

`python -m backend.commands.reference` renews it; a test fails when it is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from backend.commands import aggregate, aggregate_deep, agreement, convert, identify, simulate
from backend.commands.base import Command

PAGE = Path(__file__).parents[2] / "docs" / "crowd.md"
BEGIN, END = "<!-- commands:begin -->", "<!-- commands:end -->"
CROWD_COMMANDS: tuple[Command, ...] = (
    aggregate.COMMAND, aggregate_deep.COMMAND, identify.COMMAND, agreement.COMMAND, simulate.COMMAND, convert.COMMAND,
)


def reference() -> str:
    """Markdown: for each command what it does and every argument that its --help lists."""
    return "\n\n".join(_command(command) for command in CROWD_COMMANDS)


def renewed(page: str) -> str:
    """The page with its generated part renewed."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{reference()}\n{END}{rest.split(END)[1]}"


def _command(command: Command) -> str:
    parser = argparse.ArgumentParser(prog=command.name, add_help=False)
    command.arguments(parser)
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    places = " ".join(_invocation(action) for action in shown if not action.option_strings)
    lines = [f"### {command.name}", "", f"`python -m backend {command.name} {places} [options]`", "",
             command.description, "", "| argument | default | meaning |", "| --- | --- | --- |"]
    for action in shown:
        meaning = (action.help or "").replace("%%", "%").replace("|", "\\|")
        lines.append(f"| `{_invocation(action)}` | {_default(action)} | {meaning} |")
    return "\n".join(lines)


def _invocation(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else f" {action.metavar}"
    return ", ".join(action.option_strings) + value if action.option_strings else str(action.metavar)


def _default(action: argparse.Action) -> str:
    if action.nargs == 0 or action.default in (None, "", []):
        return ""
    return f"`{action.default}`"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)

"""How far a long command is: a bar in a terminal, elsewhere a line now and then.

On stderr, so that results on stdout can be piped.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from backend import ports
from backend.commands.base import say

SAY_EVERY_S = 30.0


@contextlib.contextmanager
def progress_bar(what: str = "reading") -> Iterator[ports.Progress]:
    """A callback for as long as `what` lasts."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield now_and_then(what, lambda line: say(console, line))
        return
    columns = (TextColumn(f"{what} {{task.description}}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"),
               TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        line = bar.add_task("", total=1.0)

        def update(fraction: float, note: str) -> None:
            bar.update(line, completed=fraction, description=note)

        yield update


def now_and_then(
    what: str, tell: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic,
) -> ports.Progress:
    """A callback that tells a line every `SAY_EVERY_S` at most, and nothing of what is quicker."""
    begun = told = clock()

    def update(fraction: float, note: str) -> None:
        nonlocal told
        if (now := clock()) - told >= SAY_EVERY_S:
            told = now
            tell(f"{what} {note}: {fraction:.0%} after {now - begun:.0f} s")

    return update

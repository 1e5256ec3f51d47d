"""`worker`: a job process of its own, on this or another machine."""

from __future__ import annotations

import argparse
import os
import sys

from rich.console import Console

from backend.commands.base import Arguments, Command
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    # The supervisor of the web process sets it: end when standard input closes.
    parser.add_argument("--embedded", action="store_true", help=argparse.SUPPRESS)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from backend.worker import Worker, be_nice, stop_on_signals, stop_with_parent

    be_nice(settings.train_threads)  # before torch is imported, which reads its thread limit then
    from backend.bootstrap import build_queue, build_services

    services = build_services(settings)
    worker = Worker(services, build_queue(services))
    stop_on_signals(worker)
    if arguments.embedded:
        stop_with_parent(worker, sys.stdin.fileno())
    else:
        console.print("The job process waits for work; Ctrl-C ends it.")
    if not worker.run():
        sys.stderr.flush()
        os._exit(1)  # a lane is inside a long step; its job is taken over when the lease ends
    services.close()
    return 0


COMMAND = Command(
    name="worker", help="run jobs only (reading, training, delivering)", arguments=_arguments, run=_run,
    description="Start a job process. `serve` has one built in; more of them, on this machine or on others that reach "
    "the same database and folders, share the work. Ctrl-C ends it; an unfinished job is taken up again.",
)

"""`worker`: a job process of its own, on this or another machine; with REDIS_URL one that RQ wakes."""

from __future__ import annotations

import argparse
import os
import sys

from rich.console import Console

from backend.allocator import return_large_blocks
from backend.bootstrap import keep_private
from backend.commands.base import Arguments, Command
from backend.settings import Settings


def _arguments(parser: argparse.ArgumentParser) -> None:
    # Set by the parent process: the supervisor of a web process, or the job machine whose lane this is.
    for name in ("--name", "--lane"):
        parser.add_argument(name, default="", help=argparse.SUPPRESS)
    parser.add_argument("--embedded", action="store_true", help=argparse.SUPPRESS)  # end when standard input closes
    parser.add_argument("--answers", type=int, default=-1, help=argparse.SUPPRESS)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    keep_private()
    return_large_blocks()  # else a process that trains and counts all day grows by megabytes a minute
    if arguments.lane:
        return _lane(arguments, settings)
    from backend.worker import be_nice

    be_nice(settings.train_threads)  # before torch is imported, which reads its thread limit then
    if settings.redis_url and not arguments.embedded:
        return _over_rq(settings, console)
    return _alone(arguments, settings, console)


def _alone(arguments: Arguments, settings: Settings, console: Console) -> int:
    """Everything in one process."""
    from backend.bootstrap import build_queue, build_services
    from backend.worker import Worker, stop_on_signals, stop_with_parent

    services = build_services(settings)
    worker = Worker(services, build_queue(services), name=arguments.name)
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


def _over_rq(settings: Settings, console: Console) -> int:
    """A job machine: this process listens and stays small, one child per lane works."""
    from backend.bootstrap import build_doorbell, open_store
    from backend.ports import utc_now
    from backend.queues.children import child_environment
    from backend.services.triggers import Triggers
    from backend.worker import stop_on_signals
    from backend.worker.over_rq import LIMITS_S, RqWorker

    store = open_store(settings)
    worker = RqWorker(
        store.jobs, Triggers(store=store, settings=settings, clock=utc_now).tick,
        build_doorbell(settings, limits_s=LIMITS_S), env=child_environment(settings),
        command=lambda lane: [sys.executable, "-m", "backend", "worker", "--lane", lane],
    )
    stop_on_signals(worker)
    console.print("The job machine waits for RQ's rings; Ctrl-C ends it.")
    ended = worker.run()
    store.close()
    return 0 if ended else 1


def _lane(arguments: Arguments, settings: Settings) -> int:
    """A lane's process; nice and with its thread limit already, from its parent."""
    from backend.bootstrap import build_services
    from backend.worker import stop_on_signals
    from backend.worker.lane import LaneServer

    services = build_services(settings)
    server = LaneServer(services, arguments.lane, name=arguments.name, requests=sys.stdin.fileno(),
                        answers=arguments.answers)
    stop_on_signals(server)
    server.run()
    services.close()
    return 0


COMMAND = Command(
    name="worker", help="run jobs only (reading, training, delivering)", arguments=_arguments, run=_run,
    description="Start a job process. `serve` has one built in; more of them, on this machine or on others that reach "
    "the same database and folders, share the work. With REDIS_URL it listens to RQ and keeps one process per kind of "
    "work. Ctrl-C ends it; an unfinished job is taken up again.",
)

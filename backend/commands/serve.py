"""`serve`: the web server and, unless switched off, the embedded job process.

gunicorn with one or several web processes and several threads in each behind an event loop (`backend.web_worker`):
threads share the loaded network and encoder, processes share the database, the checkpoints and the cache of encoded
contents. The application is built after the fork, so that torch's threads never meet one. Whatever answers depend on is
read from the database at each request, so no process has to tell another one; one of them keeps the job process.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from rich.console import Console

from backend.bootstrap import build_supervisor, keep_private, open_store
from backend.commands.base import Arguments, Command
from backend.errors import ClientError
from backend.exposure import require_guarded
from backend.queues import Supervisor
from backend.settings import Settings
from backend.telemetry import count_together

WORKER_CLASS = "backend.web_worker.FrontWorker"
TIMEOUT_S = 120
GRACE_S = 20


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1",
                        help="address to listen on; 0.0.0.0 is every one (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=9090, help="port to listen on (default: %(default)s)")
    parser.add_argument("--threads", type=_positive, default=8,
                        help="requests answered at the same time by each web process (default: %(default)s)")
    parser.add_argument("--processes", type=_positive, default=default_processes(os.cpu_count() or 1),
                        help="web processes of some 300 MB each (default: one for each four cores, here %(default)s)")
    parser.add_argument("--jobs", action="store_true", help="start a job process here although REDIS_URL is set")


def default_processes(cores: int) -> int:
    """One for each four cores, at most four: trainings and encoding want the others, and each holds an encoder."""
    return max(1, min(4, cores // 4))


def _port(text: str) -> int:
    if not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return int(text)


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from gunicorn.app.base import BaseApplication

    keep_private()
    require_guarded([arguments.host], settings)
    require_free(arguments.host, arguments.port)
    if arguments.processes > 1:
        count_together(settings.data_dir / "metrics" / str(arguments.port))
    open_store(settings).close()  # migrates, and what is wrong with the database is said here, once, as a sentence

    class Application(BaseApplication):  # type: ignore[misc]
        """gunicorn, configured here and not from its command line or environment."""

        def load_config(self) -> None:
            for name, value in gunicorn_options(arguments, settings, console).items():
                if name in self.cfg.settings:  # older ones have no control socket to switch off
                    self.cfg.set(name, value)

        def load(self) -> Callable[..., Any]:
            return _web_application(settings)

    Application().run()
    return 0


def require_free(host: str, port: int) -> None:
    """Raises ClientError with a sentence when nothing can listen there; gunicorn would try on for seconds."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        sentence = f"Polyvox cannot listen on {host}:{port} ({error.strerror}); choose another with --host and --port."
        raise ClientError(sentence) from error


def gunicorn_options(arguments: Arguments, settings: Settings, console: Console) -> dict[str, Any]:
    """Processes, threads, quiet logs, and the embedded job process tied to the life of one of the web processes."""
    supervisors: list[Supervisor] = []  # of this process

    def begin(worker: Any) -> None:
        if worker.age == 1:  # the first one, at the start
            say_where()
        if (supervisor := build_supervisor(settings, asked=arguments.jobs)) is not None:
            supervisors.append(supervisor)
            supervisor.start()

    def say_where() -> None:
        host = "127.0.0.1" if arguments.host in ("0.0.0.0", "::") else arguments.host
        console.print(f"Polyvox answers on http://{host}:{arguments.port}  (data: {settings.data_dir})", soft_wrap=True)
        if not (settings.label_studio_url and settings.label_studio_api_key):
            console.print("Label Studio is not connected: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY.")
        if settings.redis_url and not arguments.jobs:
            console.print("REDIS_URL is set: jobs are run by `python -m backend worker`; --jobs runs them here too.")

    def end(_: object, worker: Any) -> None:
        serves = worker.booted and worker.pid == os.getpid()  # gunicorn also calls this in its own process
        if serves:
            _ends(worker)
        for supervisor in supervisors:
            supervisor.stop()
        if serves:
            _leave()

    return {
        "bind": f"{arguments.host}:{arguments.port}", "worker_class": WORKER_CLASS, "workers": arguments.processes,
        "threads": arguments.threads, "timeout": TIMEOUT_S, "graceful_timeout": GRACE_S, "loglevel": "warning",
        "control_socket_disable": True, "proc_name": "polyvox",
        "post_worker_init": begin, "worker_int": _ends, "worker_exit": end, "on_exit": _ended,
    }


def _ends(_: object) -> None:
    """This process ends: a second Ctrl-C, or gunicorn's own signal after the terminal's, must not break that off. With
    SIG_IGN, Python would complain of a signal that had arrived just before."""
    for each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(each, lambda number, frame: None)


def _ended(_: object) -> None:
    """gunicorn's own process ends: while the interpreter is taken down it would die of one more Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave() -> None:
    """End this process: what could be answered in time has been, and a thread that still computes holds it up."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _web_application(settings: Settings) -> Callable[..., Any]:
    from backend.allocator import compute_in_one_thread, return_large_blocks
    from backend.app import create_app
    from backend.bootstrap import build_services

    return_large_blocks()
    compute_in_one_thread()
    return create_app(build_services(settings))


COMMAND = Command(
    name="serve", help="answer Label Studio, and train in the background", arguments=_arguments, run=_run,
    description="Start the web server that Label Studio talks to, and a job process beside it that reads annotations, "
    "trains and delivers (with REDIS_URL, job machines do that: see `worker`). Ctrl-C ends both within "
    "seconds; SIGTERM first lets requests be answered, for 20 seconds at most. Settings come from the environment; see "
    "docs/settings.md.",
)

"""`serve`: the web server and, unless switched off, the embedded job process.

gunicorn with one process and several threads: threads share the loaded network and encoder. The application is built
after the fork, so that torch's threads never meet one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from rich.console import Console

from backend.commands.base import Arguments, Command
from backend.queues import Supervisor
from backend.settings import Settings
from backend.telemetry import configure_logging

TIMEOUT_S = 120
GRACE_S = 20


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1",
                        help="address to listen on; 0.0.0.0 is every one (default: %(default)s)")
    parser.add_argument("--port", type=int, default=9090, help="port to listen on (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=8,
                        help="requests answered at the same time (default: %(default)s)")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    from gunicorn.app.base import BaseApplication

    class Application(BaseApplication):  # type: ignore[misc]
        """gunicorn, configured here and not from its command line or environment."""

        def load_config(self) -> None:
            for name, value in gunicorn_options(arguments, settings, console).items():
                self.cfg.set(name, value)

        def load(self) -> Callable[..., Any]:
            return _web_application(settings)

    Application().run()
    return 0


def gunicorn_options(arguments: Arguments, settings: Settings, console: Console) -> dict[str, Any]:
    """One process, threads, quiet logs, and the embedded job process tied to the life of the web process."""
    supervisors: list[Supervisor] = []

    def ready(_: object) -> None:
        host = "127.0.0.1" if arguments.host in ("0.0.0.0", "::") else arguments.host
        console.print(f"Polyvox answers on http://{host}:{arguments.port}  (data: {settings.data_dir})", soft_wrap=True)
        if not (settings.label_studio_url and settings.label_studio_api_key):
            console.print("Label Studio is not connected: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY.")

    def begin(_: object) -> None:
        configure_logging(settings)
        if settings.embedded_jobs:
            supervisors.append(Supervisor(settings))
            supervisors[0].start()

    def end(_: object, __: object) -> None:
        for supervisor in supervisors:
            supervisor.stop()

    return {
        "bind": f"{arguments.host}:{arguments.port}", "worker_class": "gthread", "workers": 1,
        "threads": arguments.threads, "timeout": TIMEOUT_S, "graceful_timeout": GRACE_S, "loglevel": "warning",
        "when_ready": ready, "post_worker_init": begin, "worker_exit": end, "proc_name": "polyvox",
    }


def _web_application(settings: Settings) -> Callable[..., Any]:
    from backend.app import create_app
    from backend.bootstrap import build_services

    return create_app(build_services(settings))


COMMAND = Command(
    name="serve", help="answer Label Studio, and train in the background", arguments=_arguments, run=_run,
    description="Start the web server that Label Studio talks to, and a job process beside it that reads annotations, "
    "trains and delivers. Ctrl-C ends both. Settings come from the environment; see the table in the README.",
)

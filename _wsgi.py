"""WSGI entry point: `gunicorn _wsgi:app` (settings from the environment), or `python _wsgi.py` for everything at once.

A job process runs beside it, one for a data folder however many web processes there are, unless POLYVOX_EMBEDDED_JOBS
is off or REDIS_URL is set (then `python -m backend worker` does the jobs). It is started by the web processes, never by
an import: under gunicorn when a worker is ready (see gunicorn.conf.py), elsewhere at the first request. So a master
that imports the app and forks (`--preload`) starts nothing. Do not `--preload` all the same: each process opens its own
database connections.
"""

from __future__ import annotations

import os
import sys

from flask import Flask

from backend.allocator import compute_in_one_thread, return_large_blocks
from backend.app import create_app
from backend.bootstrap import build_services, build_supervisor, keep_private
from backend.settings import Settings
from backend.telemetry import configure_logging


def make_app() -> Flask:
    """The app, serving a `PolyvoxBackend` on the services that the environment describes."""
    settings = Settings.from_env(os.environ)
    configure_logging(settings)
    return_large_blocks()
    compute_in_one_thread()
    keep_private()
    app = create_app(build_services(settings))
    supervisor = build_supervisor(settings)
    if supervisor is not None:
        app.extensions["polyvox-supervisor"] = supervisor
        app.before_request(supervisor.ensure_started)
    return app


if __name__ == "__main__":
    from backend.cli import main

    sys.exit(main(["serve", *sys.argv[1:]]))
else:
    app = make_app()

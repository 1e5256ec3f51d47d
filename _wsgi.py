"""WSGI entry point: `gunicorn _wsgi:app` (settings from the environment), or `python _wsgi.py` for everything at once.

Under gunicorn this is the web part only: a job process (`python -m backend worker`) runs beside it. Do not `--preload`:
each process opens its own database connections.
"""

from __future__ import annotations

import os
import sys

from flask import Flask

from backend.app import create_app
from backend.bootstrap import build_services
from backend.settings import Settings
from backend.telemetry import configure_logging


def make_app() -> Flask:
    """The app, serving a `PolyvoxBackend` on the services that the environment describes."""
    settings = Settings.from_env(os.environ)
    configure_logging(settings)
    return create_app(build_services(settings))


if __name__ == "__main__":
    from backend.cli import main

    sys.exit(main(["serve", *sys.argv[1:]]))
else:
    app = make_app()

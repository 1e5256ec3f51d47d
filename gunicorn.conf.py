"""Read by gunicorn when it is started in this folder (`gunicorn _wsgi:app`): the job process begins with the first
worker that is ready, not only with its first request."""

from __future__ import annotations

import os
import sys
from typing import Any

from backend.bootstrap import keep_private
from backend.errors import PolyvoxError
from backend.exposure import require_guarded
from backend.settings import Settings
from backend.telemetry import count_together

worker_class = "backend.web_worker.FrontWorker"  # a client that never finishes its request costs no thread
threads = 8
control_socket_disable = True  # it would be one in the home folder


def on_starting(server: Any) -> None:
    """Called before anything else: several web processes count their requests together, so that `/metrics` of each
    tells the sum of all."""
    if server.cfg.workers == 1:
        return
    ports = [str(address[1]) for address in server.cfg.address if isinstance(address, tuple)]
    keep_private()
    try:
        count_together(Settings.from_env(os.environ).data_dir / "metrics" / (ports[0] if ports else "socket"))
    except PolyvoxError as error:
        sys.exit(str(error))


def when_ready(server: Any) -> None:
    """Called before any worker: an address that others can reach, also one that systemd hands over, wants a login and a
    webhook secret."""
    names = [each.sock.getsockname() for each in server.LISTENERS]
    hosts = [name[0] for name in names if isinstance(name, tuple)]  # others are sockets of this machine
    try:
        require_guarded(hosts, Settings.from_env(os.environ))
    except PolyvoxError as error:
        sys.exit(str(error))


def post_worker_init(worker: Any) -> None:
    """Called in each worker, once it has the app; see `_wsgi` for what it starts."""
    supervisor = getattr(worker.wsgi, "extensions", {}).get("polyvox-supervisor")
    if supervisor is not None:
        supervisor.ensure_started()

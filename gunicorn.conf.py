"""Read by gunicorn when it is started in this folder (`gunicorn _wsgi:app`): the job process begins with the first
worker that is ready, not only with its first request."""

from __future__ import annotations

from typing import Any

worker_class = "backend.web_worker.FrontWorker"  # a client that never finishes its request costs no thread
threads = 8
control_socket_disable = True  # it would be one in the home folder


def post_worker_init(worker: Any) -> None:
    """Called in each worker, once it has the app; see `_wsgi` for what it starts."""
    supervisor = getattr(worker.wsgi, "extensions", {}).get("polyvox-supervisor")
    if supervisor is not None:
        supervisor.ensure_started()

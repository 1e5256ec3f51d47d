"""A handler that does nothing, behind the same web worker as `serve`: POST /noop. What HTTP itself costs.

    python -m benchmarks.noop_server PORT
"""

from __future__ import annotations

import sys
from typing import Any

from flask import Flask, request
from gunicorn.app.base import BaseApplication

from demo.processes import LOOPBACK


def main(port: int) -> None:
    """Serve until told to stop."""
    app = Flask(__name__)

    def noop() -> dict[str, Any]:
        request.get_data(cache=False)
        return {}

    app.add_url_rule("/noop", view_func=noop, methods=["GET", "POST"])

    class Application(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            for name, value in {
                "bind": f"{LOOPBACK}:{port}", "worker_class": "backend.web_worker.FrontWorker", "workers": 1,
                "threads": 8, "loglevel": "warning", "control_socket_disable": True,
            }.items():
                if name in self.cfg.settings:
                    self.cfg.set(name, value)

        def load(self) -> Flask:
            return app

    Application().run()


if __name__ == "__main__":
    main(int(sys.argv[1]))

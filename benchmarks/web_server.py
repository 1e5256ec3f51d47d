"""The web process of `serve`, with one more route that does nothing: POST and GET /noop.

    python -m benchmarks.web_server PORT        (settings from the environment, as `serve` takes them)
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from gunicorn.app.base import BaseApplication
from rich.console import Console

from backend.commands.serve import gunicorn_options
from backend.settings import Settings
from demo.processes import LOOPBACK


def main(port: int) -> None:
    settings = Settings.from_env(os.environ)
    arguments = Namespace(host=LOOPBACK, port=port, threads=8, processes=1, jobs=False)

    class Application(BaseApplication):  # type: ignore[misc]
        def load_config(self) -> None:
            for name, value in gunicorn_options(arguments, settings, Console()).items():
                if name in self.cfg.settings:
                    self.cfg.set(name, value)

        def load(self) -> Callable[..., Any]:
            from backend.allocator import compute_in_one_thread, return_large_blocks
            from backend.app import create_app
            from backend.bootstrap import build_services

            return_large_blocks()  # as `serve` does
            compute_in_one_thread()
            app = create_app(build_services(settings))
            app.add_url_rule("/noop", view_func=lambda: {}, methods=["GET", "POST"], endpoint="noop")
            return app

    Application().run()


if __name__ == "__main__":
    main(int(sys.argv[1]))

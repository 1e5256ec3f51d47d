"""A job process for tests, run as `python -m tests.backend.slow_worker FOLDER`: real worker, real store, and a training
that hangs at its first try and works at the second."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.bootstrap import build_queue
from backend.ports import Progress
from backend.worker import Worker, stop_on_signals, stop_with_parent
from tests.backend.small_services import small_services

LEASE_S = 1.0


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def main(folder: Path) -> None:
    def train(project: str, progress: Progress) -> Mapping[str, Any]:
        begun = folder / "begun"
        if begun.exists():
            return {"verdict": "rejected"}
        progress(0.3, "hangs")
        begun.touch()
        while True:
            time.sleep(0.05)
            progress(0.3, "hangs")

    services = small_services(folder, on_train=train, job_lease_s=float(option("--lease-s", str(LEASE_S))))
    worker = Worker(services, build_queue(services), name=option("--name", ""), tick_s=0.1)
    stop_on_signals(worker)
    if "--embedded" in sys.argv:
        stop_with_parent(worker, sys.stdin.fileno())
    (folder / "ready").touch()
    assert worker.run()
    services.store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""A job machine for tests, run as `python -m tests.backend.queues.machine FOLDER REDIS_URL`.

Everything is real (RQ, lane processes, store, claims, `run_job`) but the work: a training writes a line to `runs` and
publishes a version with nothing in it. Where the file `hang` exists it first hangs, at each attempt, until that file is
gone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend.bootstrap import Services, build_doorbell, open_store
from backend.ports import Progress, Store, utc_now
from backend.queues.children import child_environment
from backend.records import Verdict, Version
from backend.services.triggers import Triggers
from backend.settings import Settings
from backend.worker.lane import LaneServer
from backend.worker.lanes import stop_on_signals
from backend.worker.over_rq import LIMITS_S, RqWorker
from model.checkpoint import MANIFEST
from tests.backend.small_services import small_services


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("redis")
    parser.add_argument("--tick-s", type=float, default=0.2)
    parser.add_argument("--lane", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--answers", type=int)
    arguments = parser.parse_args()
    settings = Settings(data_dir=arguments.folder, redis_url=arguments.redis)
    lane(arguments, settings) if arguments.lane else machine(arguments, settings)


def machine(arguments: argparse.Namespace, settings: Settings) -> None:
    store = open_store(settings)
    worker = RqWorker(
        store.jobs, Triggers(store=store, settings=settings, clock=utc_now).tick,
        build_doorbell(settings, limits_s=LIMITS_S), env=child_environment(settings), tick_s=arguments.tick_s,
        grace_s=5,
        command=lambda lane: [sys.executable, "-m", "tests.backend.queues.machine", str(arguments.folder),
                              arguments.redis, "--lane", lane],
    )
    stop_on_signals(worker)
    assert worker.run()
    assert "torch" not in sys.modules
    store.close()


def lane(arguments: argparse.Namespace, settings: Settings) -> None:
    folder: Path = arguments.folder

    def train(project: str, progress: Progress) -> Mapping[str, Any]:
        begin(folder, project, progress)
        publish(services.store, services.settings.model_dir, project)
        return {"verdict": "published"}

    services: Services = small_services(folder, on_train=train)
    server = LaneServer(services, arguments.lane, name=arguments.name, requests=sys.stdin.fileno(),
                        answers=arguments.answers, grace_s=5)
    stop_on_signals(server)
    server.run()
    services.store.close()


def begin(folder: Path, project: str, progress: Progress) -> None:
    with (folder / "runs").open("a") as runs:
        runs.write(f"{project} {os.getpid()}\n")  # short enough to be written at once
    while (folder / "hang").exists():
        progress(0.3, "hangs")
        time.sleep(0.02)


def publish(store: Store, folder: Path, project: str) -> None:
    number = store.versions.next_number(project)
    checkpoint = folder / project / f"r{number}"
    checkpoint.mkdir(parents=True)
    (checkpoint / MANIFEST).write_text("{}")  # what /setup looks for
    store.versions.add(Version(
        project=project, name=f"r{number}", number=number, path=f"{project}/r{number}", verdict=Verdict.PUBLISHED,
        reason="A test.", figures={}, changes=0, created_at=utc_now()))


if __name__ == "__main__":
    main()

"""Ten thousand tasks whose files are missing: does encoding go on, is each failure named, is the host left in peace?

    python -m benchmarks.missing_media [--tasks 10000]

A file server on this machine has the picture of every hundredth task and answers 404 for all others. Encoding jobs run
over the project as a job process runs them, until they have seen every task, and then once more at once.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from backend.bootstrap import Services, build_services
from backend.jobs import RUNNERS
from backend.labeling import parse_config, read_task
from backend.records import JobKind
from backend.settings import Settings

KEY = "1.1700000000"
CONFIG = """<View><Image name="img" value="$image"/><Choices name="mood" toName="img"><Choice value="Warm"/>
<Choice value="Cold"/></Choices></View>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One look of encoding jobs at every task."""

    seconds: float
    jobs: int
    requests: int  # that the host got in this pass
    most: int  # requests for one and the same file
    left_out: int  # tasks that the jobs' figures name, with the reason
    ready: int  # tasks whose tokens are kept


def two_passes(services: Services, address: str, asked: Counter[str], *, tasks: int) -> list[Pass]:
    """Encoding jobs look at every task of a new project, twice; `asked` counts what the host is asked for."""
    contents = _fill(services, address, tasks)
    return [_pass(services, contents, asked) for _ in range(2)]


def _pass(services: Services, contents: list[str], asked: Counter[str]) -> Pass:
    asked.clear()
    begun, jobs, left_out = time.perf_counter(), 0, set[int]()
    after: dict[str, int] | None = {}
    while after is not None:
        services.store.jobs.enqueue(JobKind.ENCODE, KEY, payload=after)
        job = services.store.jobs.claim("benchmark", lease_s=3600, kinds=(JobKind.ENCODE,))
        if job is None:
            raise SystemExit("the encoding job cannot be claimed")
        figures = RUNNERS[JobKind.ENCODE](services, job, lambda done, note: None)
        services.store.jobs.finish(job.id, "benchmark", figures=figures)
        left_out.update(task for ids in figures.get("left_out", {}).values() for task in ids)
        last = figures.get("next_after_id")
        after = None if not last else {"after_id": int(last), "done": int(figures["done"])}
        jobs += 1
    return Pass(
        seconds=time.perf_counter() - begun, jobs=jobs, requests=asked.total(), most=max(asked.values(), default=0),
        left_out=len(left_out), ready=sum(services.features.cached(contents)),
    )


def _fill(services: Services, address: str, tasks: int) -> list[str]:
    """The contents of all tasks, once they are in the store as ingest puts them there."""
    config = parse_config(CONFIG)
    services.store.projects.ensure(KEY, title="Missing files", label_config=CONFIG)
    raw: list[dict[str, Any]] = [{"id": number, "data": {"image": f"{address}/{number}.png"}, "annotations": [],
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
           for number in range(1, tasks + 1)]
    services.store.tasks.take_over(KEY, [
        read_task(config, task, project_id=1, control_arm_percent=0, shown_since=None, known_annotators={})
        for task in raw
    ])
    return [config.content(task["data"], task=task["id"]) for task in raw]


@contextmanager
def host(every: int) -> Iterator[tuple[str, Counter[str]]]:
    """A file server and how often it was asked for what."""
    file = io.BytesIO()
    Image.fromarray(np.full((48, 48, 3), 180, np.uint8)).save(file, "PNG")
    asked: Counter[str] = Counter()
    counting = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with counting:
                asked[self.path] += 1
            there = int(Path(self.path).stem) % every == 0
            self.send_response(200 if there else 404)
            self.end_headers()
            if there:
                self.wfile.write(file.getvalue())

        def log_message(self, *args: object) -> None:
            """Nothing: requests are counted."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=10_000)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder, host(every=100) as (address, asked):
        services = build_services(Settings(
            data_dir=Path(folder), media_hosts="127.0.0.1", media_private=True, control_arm_percent=0.0,
        ))
        found = two_passes(services, address, asked, tasks=options.tasks)
        services.close()
        for number, each in enumerate(found, start=1):
            print(f"pass {number}: {each.seconds:.1f} s in {each.jobs} jobs; {each.requests} requests, at most "
                  f"{each.most} for one file; {each.left_out} tasks left out by name; {each.ready} tasks ready")


if __name__ == "__main__":
    main()

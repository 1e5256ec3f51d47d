"""What Label Studio waits for (/webhook, /health, /setup) while a training runs on the same cores, and memory.

The server is `serve` with its embedded job process (nice 10) plus a handler that does nothing, in the same process.
Requests take turns with that handler. Each opens a connection, as Label Studio does. Trainings are asked for one after
another throughout; the share of the requests that met one is told.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.bootstrap import open_store
from backend.ports import Store
from backend.records import JobKind, JobState
from backend.settings import Settings
from benchmarks.measure import REPEATS, Line, Result, interleaved, median, over_repeats, p99
from benchmarks.stand import ANNOTATORS, KEY, open_task, trained
from demo.processes import LOOPBACK, Service, clean_env, free_port
from demo.sample import LABEL_CONFIG
from tests.chaos.world import descendants

LIMITS_S = {"webhook": 1.0, "health": 1.0, "setup": 3.0}
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running web process."""

    port: int
    service: Service
    store: Store

    def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """One request on a connection of its own; anything but 2xx is an error of the benchmark."""
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=120)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, path, body=data, headers={"Content-Type": "application/json"})
            answer = connection.getresponse()
            read = answer.read()
            assert answer.status < 300, f"{path}: {answer.status} {read[:200]!r}"
            return read
        finally:
            connection.close()

    def trains(self) -> bool:
        job = self.store.jobs.pending(KEY, JobKind.TRAIN)
        return job is not None and job.state is JobState.RUNNING

    def keep_training(self) -> None:
        """Ask for a training where none runs or waits."""
        if self.store.jobs.pending(KEY, JobKind.TRAIN) is None:
            self.ask("POST", "/train", {"project": KEY})

    def web_process(self) -> int:
        """The process that answers: gunicorn's child."""
        return next(pid for pid in descendants(self.service.pid) if "--embedded" not in
                    Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0"))


@contextmanager
def server(folder: Path, *, jobs: bool) -> Iterator[Server]:
    """The server over a data folder; with `jobs` an embedded job process trains beside it."""
    port = free_port()
    env = clean_env(
        POLYVOX_DATA_DIR=str(folder), POLYVOX_ANNOTATORS_PER_TASK=str(ANNOTATORS), PYTHONUNBUFFERED="1",
        POLYVOX_EMBEDDED_JOBS="yes" if jobs else "no", LOG_LEVEL="WARNING", POLYVOX_CONTROL_ARM_PERCENT="0",
    )
    command = [sys.executable, "-m", "benchmarks.web_server", str(port)]
    service = Service("The server", command, env=env, log=folder / "web.log", health=f"http://{LOOPBACK}:{port}/health",
                      cwd=ROOT)
    with service:
        service.wait_until_up(120)
        store = open_store(Settings(data_dir=folder))
        try:
            yield Server(port=port, service=service, store=store)
        finally:
            store.close()


def latency(folder: Path, *, rounds: int) -> Result:
    """The three routes beside a training."""
    with trained(folder):
        pass
    copy = folder.with_name(folder.name + "-web")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    hook = {"action": "ANNOTATION_CREATED", "project": {"id": 1, "created_at": "2023-11-14T22:13:20Z"},
            "annotation": {"id": 1, "completed_by": 1, "task": 300, "result": []}, "task": {"id": 300}}
    setup = {"project": KEY, "schema": LABEL_CONFIG, "hostname": "", "access_token": "", "extra_params": None}
    share = max(1, rounds // REPEATS)
    with server(copy, jobs=True) as running:
        calls = {
            "noop": lambda: running.ask("POST", "/noop", hook),
            "webhook": lambda: running.ask("POST", "/webhook", hook),
            "health": lambda: running.ask("GET", "/health"),
            "setup": lambda: running.ask("POST", "/setup", setup),
        }
        interleaved(calls, rounds=20)
        repeats, met = [], 0
        for _ in range(REPEATS):
            taken: dict[str, list[float]] = {name: [] for name in calls}
            for _ in range(share):
                running.keep_training()
                while not running.trains():
                    time.sleep(0.02)
                    running.keep_training()
                for name, seconds in interleaved(calls, rounds=1).items():
                    taken[name] += seconds
                met += running.trains()
            repeats.append(taken)
    shutil.rmtree(copy)
    lines: list[Line] = []
    for name, limit in LIMITS_S.items():
        late = sum(second > limit for each in repeats for second in each[name])
        lines.append(over_repeats(f"/{name}: requests beyond {limit:g} s", [late], "requests", most=0))
        lines.append(over_repeats("... median", [1000 * median(each[name]) for each in repeats], "ms"))
        lines.append(over_repeats("... p99", [1000 * p99(each[name]) for each in repeats], "ms"))
        lines.append(over_repeats("... p99 / p99 of a handler that does nothing",
                                  [p99(each[name]) / p99(each["noop"]) for each in repeats], "x", most=5.0))
    lines.append(over_repeats("a handler that does nothing: median", [1000 * median(r["noop"]) for r in repeats], "ms"))
    lines.append(over_repeats("... p99", [1000 * p99(each["noop"]) for each in repeats], "ms"))
    return Result(
        name="web", title="Requests that Label Studio waits for, while a training runs", lines=lines,
        note=f"{REPEATS} x {share} requests to each route; {met} of {REPEATS * share} rounds ended inside a training.",
    )


def memory(folder: Path, *, rounds: int) -> Result:
    """Resident memory of the web process, after it has loaded encoder and network and answered a large request."""
    with trained(folder):
        pass
    with server(folder, jobs=False) as running:
        pid, body = running.web_process(), {"project": KEY, "label_config": LABEL_CONFIG, "params": {}}
        started = _resident_mb(pid, "VmRSS")
        text = "The reply that I was promised has still not come, and nobody seems to know who wrote it. " * 20
        for at in range(4):
            tasks = [{**open_task(0), "id": 10_000 + at * 32 + index, "data": {"text": f"{uuid.uuid4()} {text}"}}
                     for index in range(32)]
            answer = json.loads(running.ask("POST", "/predict", {**body, "tasks": tasks}))
            assert all(len(each) == ANNOTATORS + 1 for each in answer["results"]), "predictions are missing"
        for at in range(20):
            running.ask("POST", "/predict", {**body, "tasks": [open_task(at)]})
        now, peak = _resident_mb(pid, "VmRSS"), _resident_mb(pid, "VmHWM")
    lines = [
        over_repeats("after the start", [started], "MB"), over_repeats("after the requests", [now], "MB", most=800),
        over_repeats("highest", [peak], "MB", most=800),
    ]
    return Result(
        name="memory", title="Memory of the web process with the default encoder", lines=lines,
        note="Resident memory, after 4 requests of 32 unseen texts of 256 tokens and 20 requests of one task, for 20 "
        "annotators.",
    )


def _resident_mb(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no {field} of process {pid}")

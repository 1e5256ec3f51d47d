"""60 and 200 annotators at human pace while trainings run, beside a handler that does nothing under the same load.

    python -m benchmarks.load [--seconds 300] [--annotators 60 200] [--processes N] [--people 6] [--stand FOLDER]

The server is `python -m backend serve` with its job process; the handler that does nothing runs behind the same web
worker in a process of its own. By default one web process serves up to 100 annotators, two serve more. Trainings are
asked for one after another. Every submission is stored as a vote within a second, as the job process does when it has
read the task again, so that answers change. Before the load each kind of request is asked alone, for its processor
time. Processor time is user and system time of the web processes, in all threads; memory is proportional (pages that
processes share are counted once).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backend.bootstrap import open_store
from backend.labeling import parse_config, read_task
from backend.ports import Store
from backend.records import JobKind, JobState
from backend.settings import Settings
from benchmarks.load_clients import Servers, Taken, annotators, predict_body, tasks_there_are, webhook_body
from benchmarks.load_report import Cost, Run, report
from benchmarks.measure import machine
from benchmarks.stand import KEY, label, open_task, trained
from demo.processes import LOOPBACK, Service, clean_env, free_port
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from tests.chaos.world import descendants

ROOT = Path(__file__).resolve().parent.parent
ALONE = 100  # requests of each kind, one after another, before the load
TICK_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Stand:
    """A running server, the handler that does nothing, and the server's database."""

    servers: Servers
    service: Service
    noop: Service
    store: Store
    people: int

    def web_processes(self) -> list[int]:
        """The processes that answer: gunicorn's children, without the job process and what that starts."""
        jobs = [pid for pid in descendants(self.service.pid) if "worker" in _command(pid)]
        beside = {child for pid in jobs for child in descendants(pid)} | set(jobs)
        return [pid for pid in descendants(self.service.pid) if pid not in beside and "serve" in _command(pid)]

    def noop_processes(self) -> list[int]:
        return descendants(self.noop.pid)


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def processor_s(pids: Sequence[int]) -> float:
    """User and system time of processes, in seconds."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / TICK_S


def memory_mb(pids: Sequence[int]) -> float:
    """Proportional memory of processes."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


class Votes:
    """Stores submissions as votes, all of a second in one transaction."""

    def __init__(self, store: Store, people: int) -> None:
        self._store = store
        self._config = parse_config(LABEL_CONFIG)
        self._messages = load()
        self._people = people
        self._given: dict[int, dict[int, int]] = {}  # open task -> annotator -> how often
        self._fresh: set[int] = set()
        self._lock = threading.Lock()

    def voted(self, task: int, who: int) -> None:
        """Annotator `who` has labelled the open task of this number; who does so again may say something else."""
        with self._lock:
            given = self._given.setdefault(task, {})
            given[who] = given.get(who, 0) + 1
            self._fresh.add(task)

    def store(self) -> None:
        """Write what is fresh."""
        with self._lock:
            fresh, self._fresh = self._fresh, set()
            tasks = [self._json(task) for task in fresh]
        self._store.tasks.take_over(KEY, [
            read_task(self._config, task, project_id=1, control_arm_percent=0, shown_since=None, known_annotators={})
            for task in tasks
        ])

    def _json(self, task: int) -> dict[str, object]:
        raw = open_task(task)
        message = self._messages[raw["id"] - 1]
        annotations = [
            {"id": raw["id"] * 100 + who, "completed_by": who, "was_cancelled": False, "ground_truth": False,
             "lead_time": 4.0, "created_at": "2026-01-01T00:00:00Z", "updated_at": f"2026-01-02T00:{often % 60:02}:00Z",
             "result": [{"id": "r", "from_name": CONTROL, "to_name": OBJECT, "type": "choices", "origin": "manual",
                         "value": {"choices": [label(who + (often - 1) % 2, message)]}}]}
            for who, often in self._given[task].items()
        ]
        return {**raw, "annotations": annotations}


@contextmanager
def stand(folder: Path, *, people: int, processes: int) -> Iterator[Stand]:
    """Both servers over a copy of the trained data folder."""
    with trained(folder, people=people):
        pass
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "data"
        shutil.copytree(folder, data)
        port, noop_port = free_port(), free_port()
        env = clean_env(POLYVOX_DATA_DIR=str(data), POLYVOX_ANNOTATORS_PER_TASK=str(people), PYTHONUNBUFFERED="1",
                        LOG_LEVEL="WARNING", POLYVOX_CONTROL_ARM_PERCENT="0")
        serve = [sys.executable, "-m", "backend", "serve", "--port", str(port), "--processes", str(processes)]
        nothing = [sys.executable, "-m", "benchmarks.noop_server", str(noop_port)]
        with (
            Service("The server", serve, env=env, log=data / "web.log", health=f"http://{LOOPBACK}:{port}/health",
                    cwd=ROOT) as service,
            Service("The handler that does nothing", nothing, env=env, log=data / "noop.log",
                    health=f"http://{LOOPBACK}:{noop_port}/noop", cwd=ROOT) as noop,
        ):
            service.wait_until_up(120)
            noop.wait_until_up(120)
            store = open_store(Settings(data_dir=data))
            try:
                yield Stand(servers=Servers(port=port, noop_port=noop_port), service=service, noop=noop, store=store,
                            people=people)
            finally:
                store.close()


def alone(on: Stand, votes: Votes) -> list[Cost]:
    """Processor time of each kind of request while nothing else happens, `ALONE` of each one after another."""
    tasks = tasks_there_are()

    def ask(path: str, body: bytes) -> None:
        status, content = asyncio.run(on.servers.ask(path, body))
        assert 200 <= status < 300, f"{path}: {status} {content[:200]!r}"

    def cost(what: str, pids: Sequence[int], path: str, bodies: Sequence[bytes], *, change: bool = False) -> Cost:
        spent = 0.0
        for at, body in enumerate(bodies):
            if change:
                votes.voted(at % tasks, at // tasks % on.people + 1)
                votes.store()
            begun = processor_s(pids)
            ask(path, body)
            spent += processor_s(pids) - begun
        return Cost(what=what, ms=1000 * spent / len(bodies))

    predicts = [predict_body(task) for task in range(tasks)]
    for body in predicts:  # loads what is loaded at first use
        ask("/predict", body)
    web, noop, many = on.web_processes(), on.noop_processes(), range(ALONE)
    return [
        cost("no-op", noop, "/noop", [predicts[at % tasks] for at in many]),
        cost("webhook", web, "/webhook", [webhook_body(at % tasks, at % on.people + 1) for at in many]),
        cost("predict, nothing changed", web, "/predict", [predicts[at % tasks] for at in many]),
        cost("predict, after a vote on the task", web, "/predict", [predicts[at % tasks] for at in many], change=True),
    ]


def loaded(on: Stand, votes: Votes, *, count: int, seconds: float) -> tuple[Taken, int]:
    """The annotators, and how many trainings were begun meanwhile."""
    over = threading.Event()
    trainings: set[str] = set()

    def beside() -> None:
        while not over.wait(1.0):
            votes.store()
            job = on.store.jobs.pending(KEY, JobKind.TRAIN)
            if job is None:
                on.store.jobs.enqueue(JobKind.TRAIN, KEY)
            elif job.state is JobState.RUNNING:
                trainings.add(job.id)

    thread = threading.Thread(target=beside)
    thread.start()
    try:
        taken = asyncio.run(annotators(on.servers, count, seconds=seconds, people=on.people, voted=votes.voted))
    finally:
        over.set()
        thread.join()
    return taken, len(trainings)


def run(folder: Path, *, count: int, processes: int, people: int, seconds: float) -> Run:
    """One load on a fresh copy of the stand."""
    with stand(folder, people=people, processes=processes) as on:
        votes, where = Votes(on.store, people), machine()
        costs = alone(on, votes)
        web, noop = on.web_processes(), on.noop_processes()
        before, noop_before, started = processor_s(web), processor_s(noop), memory_mb(web)
        begun = time.monotonic()
        taken, trainings = loaded(on, votes, count=count, seconds=seconds)
        passed = time.monotonic() - begun
        assert sorted(on.web_processes()) == sorted(web), "a web process was started anew during the load"
        return Run(
            annotators=count, processes=len(web), people=people, seconds=passed, trainings=trainings, taken=taken,
            costs=costs, processor_s=processor_s(web) - before, noop_processor_s=processor_s(noop) - noop_before,
            memory_mb=(started, memory_mb(web)), machine=where,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the loads and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--annotators", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--processes", type=int, help="web processes; default: 1 for up to 100 annotators, else 2")
    parser.add_argument("--people", type=int, default=6, help="annotators that the project knows and predicts for")
    parser.add_argument("--stand", type=Path, help="keep what is trained in this folder for the next run")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "load.md")
    options = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.pop(name, None)  # the server is started as people start it
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.stand or Path(scratch) / "stand"
        runs = [run(folder, count=count, processes=options.processes or (1 if count <= 100 else 2),
                    people=options.people, seconds=options.seconds) for count in options.annotators]
    text = report(runs)
    options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

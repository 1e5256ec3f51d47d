"""What the parts stand on: a real `python -m backend serve`, a small Label Studio, and what its processes take.

Everything that Polyvox knows it read from the Label Studio: votes, a version that it trained and delivered.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from backend.bootstrap import open_store
from backend.ports import Store
from backend.records import JobKind
from backend.settings import Settings
from demo.processes import LOOPBACK, Service, clean_env, free_port
from tests.chaos.world import command_of, descendants
from tests.soak.label_studio import SmallLabelStudio, over_http

ROOT = Path(__file__).parents[2]
UP_S, READY_S, REST_S = 120.0, 300.0, 180.0
SETTINGS: Mapping[str, str] = {  # so that everything that Polyvox does happens often
    "POLYVOX_TRAIN_AFTER_QUIET_S": "3", "POLYVOX_CONSENSUS_EVERY_S": "10", "POLYVOX_RECONCILE_EVERY_S": "15",
    "POLYVOX_SWEEP_EVERY_S": "60", "POLYVOX_CONTROL_ARM_PERCENT": "0", "PYTHONUNBUFFERED": "1", "LOG_LEVEL": "WARNING",
}
Votes = dict[tuple[int, str], str]  # (task, annotator) -> label


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What a group of processes takes at one moment."""

    processes: int
    threads: int
    files: int
    rss_mb: float
    own_mb: float  # without pages of files, which the system may take back

    def about(self) -> dict[str, Any]:
        """As JSON."""
        return {"processes": self.processes, "threads": self.threads, "files": self.files,
                "rss_mb": round(self.rss_mb, 1), "own_mb": round(self.own_mb, 1)}


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What runs. Made by `ground`."""

    label_studio: SmallLabelStudio
    service: Service
    port: int
    folder: Path
    store: Store

    def groups(self) -> dict[str, list[int]]:
        """The processes that answer, and those that run jobs (with decoders and whatever else they start)."""
        everything = descendants(self.service.pid)
        jobs = [pid for pid in everything if " worker " in f"{command_of(pid)} "]
        jobs += [child for pid in jobs for child in descendants(pid)]
        return {"web": [self.service.pid, *(pid for pid in everything if pid not in jobs)], "jobs": sorted(set(jobs))}

    def taken(self) -> dict[str, Taken]:
        """What each group takes now."""
        return {name: taken(pids) for name, pids in self.groups().items()}

    def votes(self, key: str) -> Votes:
        """The current votes of a project of one control with classes."""
        votes = self.store.votes.current(key)
        rows = zip(votes.unit, votes.annotator, votes.value, strict=True)
        return {(int(votes.units[unit]), votes.annotators[who]): str(votes.values[value].data)
                for unit, who, value in rows}

    def errors(self) -> list[str]:
        """Lines of the log that tell of what should not be."""
        lines = self.service.log.read_text(errors="replace").splitlines()
        bad = (" ERROR ", "Traceback", " failed, reference")
        return [line[:300] for line in lines if any(each in line for each in bad)]

    def wait_for_rest(self, keys: Sequence[str], seconds: float = REST_S) -> str:
        """Until nothing is dirty and nothing is to be done; what still is, or ""."""
        end = time.monotonic() + seconds
        while (why := self._restless(keys)) and time.monotonic() < end:
            time.sleep(0.5)
        return why

    def _restless(self, keys: Sequence[str]) -> str:
        awaited = set(JobKind) - {JobKind.RECONCILE, JobKind.GAPS}
        for key in keys:
            if dirty := self.store.tasks.dirty_count(key):
                return f"{dirty} tasks of {key} are to be read"
            for kind in awaited:
                if self.store.jobs.pending(key, kind) is not None:
                    return f"{kind} of {key} is queued or runs"
        return ""


@contextmanager
def ground(
    folder: Path, projects: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], keys: Sequence[str],
    *, published: bool = True, **settings: str,
) -> Iterator[Ground]:
    """A server that has read these projects (each with its tasks) and, unless it need not have `published` anything,
    has a version of the first of the keys."""
    label_studio = SmallLabelStudio()
    for project, tasks in projects:
        label_studio.put(project, tasks)
    port, data = free_port(), folder / "data"
    with over_http(label_studio) as behind:
        env = clean_env(POLYVOX_DATA_DIR=str(data), LABEL_STUDIO_URL=behind.url, LABEL_STUDIO_API_KEY="a-key",
                        OMP_NUM_THREADS="1", **{**SETTINGS, **settings})
        command = [sys.executable, "-m", "backend", "serve", "--port", str(port)]
        with Service("The server", command, env=env, log=folder / "serve.log",
                     health=f"http://{LOOPBACK}:{port}/health", cwd=ROOT) as service:
            service.wait_until_up(UP_S)
            store = open_store(Settings(data_dir=data))
            try:
                made = Ground(label_studio=label_studio, service=service, port=port, folder=folder, store=store)
                _introduce(made, [project for project, _ in projects], keys)
                _wait_until_ready(made, keys, published)
                yield made
            finally:
                store.close()


def _introduce(on: Ground, projects: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
    """Label Studio connects its projects."""
    for project, key in zip(projects, keys, strict=True):
        about = {"project": key, "schema": project["label_config"]}
        answer = requests.post(f"http://{LOOPBACK}:{on.port}/setup", json=about, timeout=10)
        assert answer.status_code == 200, answer.text


def _wait_until_ready(on: Ground, keys: Sequence[str], published: bool) -> None:
    end = time.monotonic() + READY_S
    wanted = {key: on.label_studio.labels(int(key.split(".")[0])) for key in keys}
    while any(on.votes(key) != wanted[key] for key in keys) or (
            published and on.store.versions.published(keys[0]) is None):
        assert time.monotonic() < end and on.service.running, f"no version yet; {on.service.log_tail()}"
        time.sleep(0.3)
    on.wait_for_rest(keys)


def taken(pids: Sequence[int]) -> Taken:
    """Of processes; those that are gone count nothing."""
    found = [each for pid in pids if (each := _of_process(pid)) is not None]
    return Taken(processes=len(found), threads=sum(each[0] for each in found), files=sum(each[1] for each in found),
                 rss_mb=sum(each[2] for each in found) / 1024, own_mb=sum(each[3] for each in found) / 1024)


def _of_process(pid: int) -> tuple[int, int, int, int] | None:
    with contextlib.suppress(OSError, KeyError):
        lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        return int(lines["Threads"]), files, int(lines["VmRSS"].split()[0]), int(lines["RssAnon"].split()[0])
    return None

"""The machines of a chaos run: a real Label Studio, Polyvox in one of two set-ups, and how each part is killed.

- `embedded`  `serve` with its embedded job process
- `rq`        `serve`, a redis-server and a job machine (`worker`), whose lanes are processes of their own

Every kill is SIGKILL. Parts that somebody supervises (the embedded job process, a lane) come back by themselves; the
others are started again by `revive`, as a service manager would.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

from backend.bootstrap import open_store
from backend.ports import Store
from backend.settings import Settings
from demo.label_studio import REPOSITORY, START_TIMEOUT_S, url
from demo.processes import LOOPBACK, Service, clean_env, free_port
from tests.backend.queues.redis_server import RedisServer
from tests.e2e import server as running
from tests.e2e.server import OWNER, LabelStudio

CACHE = REPOSITORY / "local" / "e2e"
SECRET = "a-secret-of-the-chaos-tests"
CONTROL_ARM_PERCENT = 10.0
UP_S = 120.0


class Setup(StrEnum):
    EMBEDDED = "embedded"
    RQ = "rq"


class Victim(StrEnum):
    WEB = "web"
    JOBS = "job process"  # embedded, or the heavy lane of a job machine
    SYNC_LANE = "sync lane"
    MACHINE = "job machine"  # the process that listens to RQ
    REDIS = "Redis"
    LABEL_STUDIO = "Label Studio"
    EVERYTHING = "all of Polyvox"


# Quick reactions, so that a round takes a minute; what is tested does not depend on them.
SETTINGS: Mapping[str, str] = {
    "POLYVOX_TRAIN_AFTER_VOTES": "10", "POLYVOX_TRAIN_AFTER_QUIET_S": "3", "POLYVOX_CONSENSUS_EVERY_S": "1",
    "POLYVOX_RECONCILE_EVERY_S": "10", "POLYVOX_SWEEP_EVERY_S": "60", "POLYVOX_JOB_LEASE_S": "8",
    "POLYVOX_HELDOUT_PERCENT": "30", "POLYVOX_OWN_NEXT_TASKS": "30",
    "POLYVOX_CONTROL_ARM_PERCENT": str(CONTROL_ARM_PERCENT),
}


class World:
    """What runs. Made by `world`."""

    def __init__(self, setup: Setup, folder: Path, label_studio: LabelStudio) -> None:
        self.setup = setup
        self.label_studio = label_studio
        self.data = folder / "polyvox"
        self.port = free_port()
        self.url = url(self.port)
        self.redis = RedisServer(folder) if setup is Setup.RQ else None
        env = clean_env(
            LABEL_STUDIO_URL=label_studio.url, LABEL_STUDIO_API_KEY=OWNER.token, POLYVOX_URL=self.url,
            POLYVOX_WEBHOOK_SECRET=SECRET, POLYVOX_DATA_DIR=str(self.data), PYTHONUNBUFFERED="1", **SETTINGS,
            **({"REDIS_URL": self.redis.url} if self.redis is not None else {}),
        )
        serve = [sys.executable, "-m", "backend", "serve", "--host", LOOPBACK, "--port", str(self.port)]
        self.web = Service("Polyvox", serve, env=env, log=folder / "web.log", health=f"{self.url}/health",
                           cwd=REPOSITORY)
        self.machine = Service("The job machine", [sys.executable, "-m", "backend", "worker"], env=env,
                               log=folder / "machine.log", health="", cwd=REPOSITORY)
        self.store: Store = open_store(Settings(data_dir=self.data))

    def start(self) -> None:
        if self.redis is not None:
            self.redis.start()
            self.machine.start()
        self.web.start()
        self.web.wait_until_up(UP_S)

    def stop(self) -> None:
        self.web.stop()
        if self.redis is not None:
            self.machine.stop()
            self.redis.kill()
        self.store.close()

    def actor(self, lane: str) -> int | None:
        """Process id of what runs the jobs of a lane now; None while there is none."""
        wanted = "--embedded" if self.setup is Setup.EMBEDDED else f"--lane {lane}"
        parent = self.web if self.setup is Setup.EMBEDDED else self.machine
        if not parent.running:
            return None
        return next((pid for pid in descendants(parent.pid) if wanted in command_of(pid)), None)

    def kill(self, victim: Victim) -> None:
        """SIGKILL; returns when the process is gone."""
        if victim is Victim.REDIS:
            assert self.redis is not None
            self.redis.kill()
        elif victim is Victim.LABEL_STUDIO:
            kill_service(self.label_studio.service)
        elif victim is Victim.WEB:
            kill_service(self.web)
        elif victim is Victim.MACHINE:
            kill_service(self.machine)
        elif victim in (Victim.JOBS, Victim.SYNC_LANE):
            pid = self.actor("sync" if victim is Victim.SYNC_LANE else "heavy")
            assert pid is not None, f"there is no {victim} to kill"
            kill_processes([pid])
        else:
            services = [self.web] if self.redis is None else [self.web, self.machine]
            kill_processes([pid for service in services for pid in (service.pid, *descendants(service.pid))])
            for service in services:
                service.stop(grace_s=0.0)

    def revive(self, victim: Victim) -> None:
        """Start what nobody else starts again, and wait until it answers."""
        if victim is Victim.REDIS:
            assert self.redis is not None
            self.redis.start()
        elif victim is Victim.LABEL_STUDIO:
            self.label_studio.service.start()
            self.label_studio.service.wait_until_up(START_TIMEOUT_S)
        if victim in (Victim.MACHINE, Victim.EVERYTHING) and self.redis is not None:
            self.machine.start()
        if victim in (Victim.WEB, Victim.EVERYTHING):
            self.web.start()
            self.web.wait_until_up(UP_S)


@contextmanager
def world(setup: Setup, folder: Path) -> Iterator[World]:
    """A fresh Label Studio and a fresh Polyvox; both are stopped on leaving."""
    label_studio = running.start(CACHE, folder, {"POLYVOX_CONTROL_ARM_PERCENT": str(CONTROL_ARM_PERCENT)})
    try:
        made = World(setup, folder, label_studio)
        try:
            made.start()
            yield made
        finally:
            made.stop()
    finally:
        label_studio.service.stop()


def descendants(pid: int) -> list[int]:
    """Process ids of children, their children, and so on; Linux only."""
    parents: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                stat = Path(entry.path, "stat").read_text()
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found, frontier = [], [pid]
    while frontier:
        frontier = [child for parent in frontier for child in parents.get(parent, ())]
        found += frontier
    return found


def command_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return ""


def kill_service(service: Service) -> None:
    """Kill the service's own process group; children with a session of their own are left to notice it."""
    os.killpg(service.pid, signal.SIGKILL)
    service.stop(grace_s=0.0)


def kill_processes(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10.0
    while any(_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a killed process does not go away"
        time.sleep(0.01)


def _alive(pid: int) -> bool:
    """Zombies, whose parent has not asked for them yet, are gone for our purposes."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False

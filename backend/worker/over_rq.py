"""A job machine with REDIS_URL: hears RQ's rings, hands job ids to its lanes' processes, and rings for what is due.

The main thread ticks. Of all machines one leads: it looks at the triggers and rings for due rows (as long as they are
due, so a lost ring is one that comes later). The others look too, but seldom, in case the leader hangs. Several at once
do no harm: a wish for a job that is pending is dropped, and a claim is atomic.

Without Redis, each lane looks into the database by itself, and every machine ticks; this is noticed and ended within
seconds. This process loads no torch; its children do (see `backend.queues.lane_process`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from redis.exceptions import RedisError

from backend.ports import JobStore
from backend.queues.children import new_name
from backend.queues.doorbell import Doorbell
from backend.queues.lane_process import LaneProcess
from backend.queues.lane_worker import LaneWorker
from backend.records import Job, JobKind
from backend.worker.lanes import GRACE_S, LANES, TICK_S, LaneThreads, Outage, TickPace

logger = logging.getLogger(__name__)

# The last resort against a job that hangs while its lease is kept alive; generous, since what is stopped starts anew.
LIMITS_S: Mapping[str, float] = {"sync": 3600.0, "read": 6 * 3600.0, "heavy": 24 * 3600.0}
LEAD_S = 5.0  # who leads is missed this long after it died
SELDOM_S = 15.0  # how often the others look for new work
RINGS = 50  # due jobs rung for at a time and lane
POLL_S = 0.5  # how often a lane looks into the database while Redis is away
ASK_REDIS_S = 2.0  # and how often whether it is back


class RqWorker:
    """The loops of one job machine. `run` blocks until `stop` is called."""

    def __init__(
        self,
        jobs: JobStore,
        tick: Callable[[], Sequence[Job]],
        doorbell: Doorbell,
        *,
        command: Callable[[str], Sequence[str]],
        env: Mapping[str, str],
        limits_s: Mapping[str, float] = LIMITS_S,
        tick_s: float = TICK_S,
        grace_s: float = GRACE_S,
    ) -> None:
        """`tick` queues what is due; `command(lane)` starts a lane's process, `env` is its environment."""
        self._jobs = jobs
        self._tick = tick
        self._doorbell = doorbell
        self._tick_s = tick_s
        self._grace_s = grace_s
        self._name = new_name()
        self._ticked = float("-inf")  # when, on the monotonic clock
        self._pace = TickPace(tick_s)
        self._stop = threading.Event()
        self._processes = {
            lane: LaneProcess(lane, command(lane), env=env, release=self._release, stop=self._stop,
                              limit_s=limits_s[lane], grace_s=grace_s)
            for lane in LANES
        }

    def stop(self) -> None:
        """Ask the loops to end; safe from any thread and from a signal handler, returns at once."""
        self._stop.set()

    def run(self) -> bool:
        """Work until stopped; False when a lane could not be ended. Raises what a lane died of, if one did."""
        lanes = LaneThreads(self._lane, self._stop)
        lanes.start()
        self._tick_until_stopped()
        return lanes.join(2 * self._grace_s)  # a child that is killed takes the grace time and a moment

    def _tick_until_stopped(self) -> None:
        while not self._stop.wait(self._tick_s):
            with Outage("looking for work"):
                self._look()
        try:
            self._doorbell.resign(self._name)
        except RedisError:
            return  # the lead ends by itself

    def _look(self) -> None:
        try:
            leads = self._doorbell.leads(self._name, lease_s=LEAD_S)
            reachable = True
        except RedisError:
            leads, reachable = True, False
        since_s = time.monotonic() - self._ticked
        if not leads and since_s < SELDOM_S:
            return
        if since_s >= self._pace.wait_s:
            try:
                with self._pace.tick():
                    self._tick()
            finally:
                self._ticked = time.monotonic()
        if reachable:
            self._ring()

    def _ring(self) -> None:
        for lane, kinds in LANES.items():
            due = self._jobs.due(kinds, limit=RINGS)
            try:
                if due:
                    self._doorbell.ring(lane, due)
            except RedisError:
                return  # the lanes notice by themselves

    def _lane(self, lane: str, kinds: Sequence[JobKind]) -> None:
        process = self._processes[lane]
        try:
            while not self._stop.is_set():
                try:
                    LaneWorker(self._doorbell, process, name=self._name, stop=self._stop).work()
                except RedisError as error:
                    # Its message may quote the address.
                    logger.warning("lane %s: Redis is away (%s); it looks into the database meanwhile", lane,
                                   type(error).__name__)
                    self._poll(process, kinds)
        finally:
            process.end()

    def _poll(self, process: LaneProcess, kinds: Sequence[JobKind]) -> None:
        """Work without rings until Redis answers again."""
        asked = time.monotonic()
        while not self._stop.is_set():
            if time.monotonic() - asked >= ASK_REDIS_S:
                if self._doorbell.answers():
                    logger.info("lane %s: Redis is back", process.lane)
                    return
                asked = time.monotonic()
            due: list[str] = []
            process.keep_alive()
            with Outage("looking for a job"):
                due = self._jobs.due(kinds, limit=1)
            if not due or not process.run(due[0]):
                self._stop.wait(POLL_S)

    def _release(self, name: str, reason: str) -> None:
        with Outage("taking back the jobs of a dead process"):
            count = self._jobs.release(name, error=reason)
            if count:
                logger.warning("%d job(s) of a dead process are queued again", count)

"""RQ's worker of one lane: hears rings and hands them to the lane's own process.

It is RQ's `SpawnWorker` in what it promises (a fresh interpreter does the work, this process loads nothing) and to
everybody who looks (`rq info` shows it, busy or idle). It differs in that the spawned process stays (see
`lane_process`) and that a ring is only an id: no function that Redis names is imported or called here, so who can write
to Redis can make nothing run but the jobs in the database. RQ's time-outs, retries and registries of failed jobs are
not used: those of the row hold, whatever becomes of Redis.

It runs in a thread: no signal handlers, no SIGALRM. Errors of Redis leave `work`; the caller decides what to do then.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from typing import Any

from redis.exceptions import RedisError
from rq import Queue, SpawnWorker
from rq.exceptions import DequeueTimeout
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker import WorkerStatus

from backend.queues.doorbell import ANSWER_TIMEOUT_S, HEAR_S, Doorbell
from backend.queues.lane_process import LaneProcess

WORKER_TTL_S = 60  # a worker that was killed is listed this long (RQ adds a minute)
HEARTBEAT_S = 15.0
ROW_ID = re.compile(r"[0-9a-f-]{36}")


class LaneWorker(SpawnWorker):
    """One lane on one machine. Making one connects to Redis."""

    def __init__(self, doorbell: Doorbell, process: LaneProcess, *, name: str, stop: threading.Event) -> None:
        self._process = process
        self._stop = stop
        self._beaten = 0.0
        super().__init__(
            [doorbell.queue(process.lane)], connection=doorbell.redis,
            # RQ refuses a name that is still listed, and after an outage this machine's last one may be.
            name=f"{name}:{process.lane}:{uuid.uuid4().hex[:4]}",
            worker_ttl=WORKER_TTL_S, serializer=JSONSerializer,
        )

    @property
    def dequeue_timeout(self) -> int:
        """How long one wait for a ring is."""
        return HEAR_S

    @property
    def connection_timeout(self) -> int:
        """RQ raises the connection's own time-out to this."""
        return round(ANSWER_TIMEOUT_S)

    def work(self, *_: Any, **__: Any) -> bool:
        """Hear and hand on until told to stop. Raises RedisError."""
        heard = False
        self.register_birth()  # type: ignore[no-untyped-call]
        try:
            while not self._stop.is_set():
                self._process.keep_alive()
                self._beat()
                with contextlib.suppress(DequeueTimeout):
                    ring = self.queue_class.dequeue_any(
                        self.queues, self.dequeue_timeout, connection=self.connection, job_class=self.job_class,
                        serializer=self.serializer, death_penalty_class=self.death_penalty_class,
                    )
                    if ring is not None:
                        self.execute_job(*ring)
                        heard = True
        finally:
            with contextlib.suppress(RedisError):
                self.register_death()  # type: ignore[no-untyped-call]
        return heard

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Use the ring up, then have its job run. Whether there still is one to run is decided by the database."""
        # RQ's list of what was heard but not begun is of no use here: what got lost there is rung for again. Not
        # `job.delete()`: the job may have been rung for twice, and another machine may be doing the same.
        self.connection.delete(job.key, queue.intermediate_queue_key)
        if not ROW_ID.fullmatch(job.id):
            return  # not one of ours
        self.set_state(WorkerStatus.BUSY)
        self._process.run(job.id, waiting=self._beat_if_possible)
        self.set_state(WorkerStatus.IDLE)

    def _beat_if_possible(self) -> None:
        """While a job runs, Redis may come and go."""
        with contextlib.suppress(RedisError):
            self._beat()

    def _beat(self) -> None:
        if time.monotonic() - self._beaten >= HEARTBEAT_S:
            self._beaten = time.monotonic()  # also when it fails: a Redis that hangs is not asked every moment
            self.heartbeat()

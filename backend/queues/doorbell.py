"""Redis as a doorbell: which job a machine should look at, and which machine looks for new work.

A ring is an RQ job whose id is the id of a job row; nothing else is in it, and nothing depends on it: who loses all of
Redis loses no job, since due rows are rung again as long as they are due. A ring is used up when it is heard. What it
names as function is for people who look at the queue (`rq info`); nobody ever calls it.

The names of queues and keys carry a digest of the database's address, so that two installations may share a Redis.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from rq import Queue
from rq.serializers import JSONSerializer
from sqlalchemy.engine import make_url

from backend.errors import SettingsError
from backend.settings import Settings

HEAR_S = 1  # a listener waits this long for a ring, then looks whether to go on
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = HEAR_S + 2.0  # a Redis that hangs counts as gone after this long
RING_LIVES_S = 600  # a ring that nobody heard is forgotten; the row is rung again if it is still due
FUNCTION = "backend.jobs.run_job"


def open_redis(settings: Settings) -> Redis:
    """A client for REDIS_URL; connects at its first use. Raises SettingsError when the address cannot be read."""
    try:
        return Redis.from_url(
            settings.redis_url,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=ANSWER_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),  # once, for a connection that was closed while idle
        )
    except ValueError as error:
        raise SettingsError("REDIS_URL cannot be read; it takes redis://host:port/number and the like.") from error


def namespace_of(settings: Settings) -> str:
    """Prefix of everything that this installation keeps in Redis. Job machines agree on it when they name the database
    alike; where they do not, each hears its own rings only, which costs nothing but a second look for work."""
    address = make_url(settings.database_url).set(password=None).render_as_string()
    return f"polyvox-{hashlib.sha256(address.encode()).hexdigest()[:8]}"


class Doorbell:
    """Rings lanes, and keeps the job machines from all looking for new work. Methods raise RedisError when Redis is
    away. Safe for several threads."""

    def __init__(self, redis: Redis, *, namespace: str, limits_s: Mapping[str, float]) -> None:
        """`limits_s`: lane -> how long one of its jobs may take, shown as RQ's time-out."""
        self.redis = redis
        self._namespace = namespace
        self._limits_s = limits_s

    def queue(self, lane: str) -> Queue:
        """The queue of a lane's rings."""
        return Queue(f"{self._namespace}-{lane}", connection=self.redis, serializer=JSONSerializer)

    def ring(self, lane: str, job_ids: Iterable[str]) -> int:
        """Ring for jobs that are not rung for already; returns for how many."""
        queue = self.queue(lane)
        waiting = set(queue.job_ids)
        fresh = [job_id for job_id in job_ids if job_id not in waiting]
        for job_id in fresh:
            queue.enqueue_call(
                FUNCTION, args=(job_id,), job_id=job_id, description=f"{lane} {job_id}", ttl=RING_LIVES_S,
                timeout=round(self._limits_s[lane]), result_ttl=0,
            )
        return len(fresh)

    def leads(self, name: str, *, lease_s: float) -> bool:
        """Whether the process `name` is the one that looks for new work; it is for `lease_s` from now on, then the
        first to ask. Two may lead for a moment, and nobody may for one lease: the first does no harm, the second no
        more than a pause."""
        key, lease_ms = f"{self._namespace}-leader", max(round(lease_s * 1000), 1)
        if self.redis.set(key, name, nx=True, px=lease_ms):
            return True
        holder = self.redis.get(key)
        if holder != name.encode():
            return False
        self.redis.pexpire(key, lease_ms)
        return True

    def resign(self, name: str) -> None:
        """Let another lead at once."""
        key = f"{self._namespace}-leader"
        if self.redis.get(key) == name.encode():
            self.redis.delete(key)

    def answers(self) -> bool:
        """Whether Redis can be used."""
        try:
            return bool(self.redis.ping())
        except RedisError:
            return False

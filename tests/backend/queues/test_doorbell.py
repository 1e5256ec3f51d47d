"""Rings on a real Redis."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from backend.errors import SettingsError
from backend.queues.doorbell import Doorbell, namespace_of, open_redis
from backend.settings import Settings
from tests.backend.queues.redis_server import RedisServer, redis_server

LIMITS_S = {"heavy": 10.0}
ONE, TWO = (str(uuid.UUID(int=number)) for number in (1, 2))


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def doorbell(redis: RedisServer) -> Doorbell:
    made = Doorbell(open_redis(Settings(redis_url=redis.url)), namespace="polyvox-test", limits_s=LIMITS_S)
    made.redis.flushall()
    return made


def test_what_waits_is_not_rung_for_again(doorbell: Doorbell) -> None:
    assert doorbell.ring("heavy", [ONE, TWO]) == 2
    assert doorbell.ring("heavy", [ONE, TWO]) == 0
    assert doorbell.queue("heavy").job_ids == [ONE, TWO]
    doorbell.redis.flushall()
    assert doorbell.ring("heavy", [TWO]) == 1


def test_a_ring_is_json_and_says_what_it_is_for(doorbell: Doorbell) -> None:
    doorbell.ring("heavy", [ONE])
    (job,) = doorbell.queue("heavy").jobs
    assert (job.func_name, job.args, job.timeout, job.description) == (
        "backend.jobs.run_job", [ONE], 10, f"heavy {ONE}")
    assert b"pickle" not in job.data and job.data.startswith(b"[")
    assert doorbell.redis.ttl(f"rq:job:{ONE}") > 0  # nothing is left for ever


def test_one_leads_until_it_resigns_or_is_silent(doorbell: Doorbell) -> None:
    assert doorbell.leads("a", lease_s=60) and doorbell.leads("a", lease_s=60)
    assert not doorbell.leads("b", lease_s=60)
    doorbell.resign("b")
    assert not doorbell.leads("b", lease_s=60)
    doorbell.resign("a")
    assert doorbell.leads("b", lease_s=0.2)
    time.sleep(0.3)
    assert doorbell.leads("a", lease_s=60)


def test_each_database_has_its_own_name_which_tells_no_password() -> None:
    urls = ["postgresql://polyvox:secret@db/polyvox", "postgresql://polyvox:other@db/polyvox", "postgresql://db/other"]
    first, second, third = (namespace_of(Settings(database_url=url)) for url in urls)
    assert first == second != third


def test_an_address_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="REDIS_URL"):
        open_redis(Settings(redis_url="redis://localhost:port/x"))


def test_redis_that_is_away(tmp_path: Path) -> None:
    away = Doorbell(open_redis(Settings(redis_url=RedisServer(tmp_path).url)), namespace="x", limits_s=LIMITS_S)
    assert not away.answers()
    with pytest.raises(RedisError):
        away.ring("heavy", [ONE])

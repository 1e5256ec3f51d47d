"""Large bodies, a few at a time: what does not fit waits for a moment, then hears so; small ones never wait."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from backend.errors import Busy
from backend.json_cost import cost_of
from backend.routes.context import EXTENSION
from backend.routes.large_bodies import SMALL, LargeBodies

BODY = b'{"a": "' + b"x" * 10_000 + b'"}'
COST = cost_of(BODY)


def test_what_fits_is_read_at_once_and_the_rest_waits_until_there_is_room() -> None:
    bodies = LargeBodies(2 * COST + 10, wait_s=10.0)
    done = [bodies.read(lambda: BODY)[1] for _ in range(2)]
    with ThreadPoolExecutor(1) as pool:
        third = pool.submit(bodies.read, lambda: BODY)
        time.sleep(0.2)
        assert not third.done()
        done[0]()
        raw, finish = third.result(10)
    assert raw == BODY
    finish()
    done[1]()
    assert bodies._taken == 0


def test_who_waits_too_long_hears_so_and_leaves_no_trace() -> None:
    bodies = LargeBodies(COST, wait_s=0.1)
    _, done = bodies.read(lambda: BODY)
    for _ in range(3):
        with pytest.raises(Busy, match="try again in a moment"):
            bodies.read(lambda: BODY)
    done()
    bodies.read(lambda: BODY)[1]()
    assert bodies._taken == 0


def test_one_after_another_is_brought_into_memory_and_an_error_keeps_nobody_out() -> None:
    bodies, there, most = LargeBodies(100 * COST, wait_s=10.0), [0], [0]
    lock = threading.Lock()

    def read() -> bytes:
        with lock:
            there[0] += 1
            most[0] = max(most[0], there[0])
        time.sleep(0.02)
        with lock:
            there[0] -= 1
        return BODY

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: bodies.read(read)[1](), range(16)))
    assert most == [1]
    with pytest.raises(OSError):
        bodies.read(lambda: Path("/nowhere/at/all").read_bytes())
    bodies.read(read)[1]()
    assert bodies._taken == 0


def test_a_request_gives_its_room_back_and_small_ones_need_none(client: FlaskClient) -> None:
    bodies = client.application.extensions[EXTENSION].large
    large = json.dumps({"action": "NOTHING", "more": "x" * SMALL}).encode()
    for body in (large, large[:-1]):
        client.post("/webhook", data=body, content_type="application/json")
        assert bodies._taken == 0
    bodies._taken, bodies._wait_s = bodies._most, 0.05
    refused = client.post("/webhook", data=large, content_type="application/json")
    assert refused.status_code == 503 and refused.headers["Retry-After"] == "5"
    assert refused.json["error"].startswith("Other large requests take all the room;")
    assert client.post("/webhook", json={"action": "NOTHING"}).status_code != 503

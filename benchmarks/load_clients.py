"""Annotators at human pace, as Label Studio passes them on: a /predict when a task is opened, a /webhook when it is
submitted, each on a connection of its own; and as often a request to a handler that does nothing.

Every annotator begins at a moment of their own, takes `PACE_S` a task, a fifth more or less, and waits for each answer.
Times are from before the connection is opened to the last byte of the answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.stand import KEY, open_task
from demo.processes import LOOPBACK
from demo.sample import LABEL_CONFIG, load

PACE_S = 5.0
PATIENCE_S = 60.0
ROUTES = ("noop", "webhook", "predict")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What the requests of one load took."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {route: [] for route in ROUTES})
    failed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROUTES, 0))  # no answer, or none of 2xx
    empty: list[int] = field(default_factory=list)  # tasks that were answered without a prediction


@dataclass(frozen=True, kw_only=True)
class Servers:
    """Where requests go."""

    port: int
    noop_port: int

    async def ask(self, path: str, body: bytes) -> tuple[int, bytes]:
        """One request on a connection of its own: status, body."""
        port = self.noop_port if path == "/noop" else self.port
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        try:
            head = (f"POST {path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n")
            writer.write(head.encode() + body)
            answer = await reader.read(-1)
        finally:
            writer.close()
        top, _, content = answer.partition(b"\r\n\r\n")
        return int(top.split(b" ", 2)[1]), content


def predict_body(task: int) -> bytes:
    """What Label Studio asks when the open task of this number is opened."""
    return json.dumps({"tasks": [open_task(task)], "project": KEY, "label_config": LABEL_CONFIG, "params": {}}).encode()


def webhook_body(task: int, who: int) -> bytes:
    """What Label Studio tells when annotator `who` has submitted the open task of this number."""
    number = open_task(task)["id"]
    project = {"id": 1, "title": "Benchmark", "created_at": "2023-11-14T22:13:20Z", "label_config": LABEL_CONFIG}
    return json.dumps({
        "action": "ANNOTATION_CREATED", "project": project, "task": {"id": number, "data": open_task(task)["data"]},
        "annotation": {"id": number * 100 + who, "completed_by": who, "task": number, "result": []},
    }).encode()


def tasks_there_are() -> int:
    """How many open tasks the stand has."""
    return len(load()) - len(load()) * 4 // 5


async def annotators(
    servers: Servers, count: int, *, seconds: float, people: int, voted: Callable[[int, int], None],
) -> Taken:
    """`count` clients for `seconds`; `voted(task, who)` hears of each submission before its webhook is sent."""
    taken = Taken()
    predicts = [predict_body(task) for task in range(tasks_there_are())]
    webhooks = [[webhook_body(task, who + 1) for who in range(people)] for task in range(tasks_there_are())]
    until = time.monotonic() + seconds

    async def timed(route: str, body: bytes) -> bytes:
        begun = time.perf_counter()
        try:
            status, content = await asyncio.wait_for(servers.ask(f"/{route}", body), PATIENCE_S)
        except (OSError, TimeoutError, IndexError):
            status, content = 0, b""
        taken.seconds[route].append(time.perf_counter() - begun)
        taken.failed[route] += not 200 <= status < 300
        return content

    async def pause(rng: random.Random, share: float) -> None:
        await asyncio.sleep(PACE_S * share * rng.uniform(0.8, 1.2))

    async def annotator(number: int) -> None:
        rng = random.Random(number)
        who = number % people
        await asyncio.sleep(rng.uniform(0.0, PACE_S))
        while time.monotonic() < until:
            task = rng.randrange(len(predicts))
            content = await timed("predict", predicts[task])
            if not _predicted(content):
                taken.empty.append(task)
            await pause(rng, 0.3)
            await timed("noop", rng.choice((predicts[task], webhooks[task][who])))
            await pause(rng, 0.3)
            voted(task, who + 1)
            await timed("webhook", webhooks[task][who])
            await pause(rng, 0.4)

    await asyncio.gather(*(annotator(number) for number in range(count)))
    return taken


def _predicted(content: bytes) -> bool:
    try:
        answer: Any = json.loads(content)
    except ValueError:
        return False
    return bool(answer.get("results", [[]])[0])

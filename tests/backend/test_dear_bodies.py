"""What JSON takes in memory: told before it is parsed, and measured in the process that serves."""

from __future__ import annotations

import http.client
import json
import time
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backend.json_cost import cost_of, too_dear
from tests.backend.test_serve import free_port, healthy, processes_of, serving, until

SIZE = 64 * 2**20 - 1000
PARTS = {
    "lists": b"[],", "objects": b'{"":0},', "nested": b"[[0]],", "numbers": b"1.5,", "large numbers": b"70000,",
    "texts": b'"ab",', "Cyrillic": '"дом",'.encode(), "escapes": b'"\\u0431",', "emoji": '"ab😀",'.encode(),
    "wide objects": b'{"a":1000,"b":"cd","c":[],"d":0.5,"e":{}},',
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_the_estimate_is_never_below_what_parsing_takes(part: bytes) -> None:
    raw = b"[" + part * (400_000 // len(part)) + b"0]"
    tracemalloc.start()
    try:
        value = json.loads(raw.decode())
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert value and cost_of(raw) >= taken + len(raw)


def test_keys_of_their_own_count_as_texts() -> None:
    raw = json.dumps({f"k{at}": at for at in range(30_000)}).encode()
    tracemalloc.start()
    try:
        value = json.loads(raw.decode())
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert value and cost_of(raw) >= taken + len(raw)


def test_ordinary_bodies_are_far_from_the_limit() -> None:
    region = {"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["yes"]}, "origin": "manual"}
    task = {"id": 1, "data": {"text": "A remark, of ordinary length, that somebody wrote. " * 6},
            "annotations": [{"id": 5, "completed_by": 3, "result": [region]}] * 5}
    raw = json.dumps([task] * 9000).encode()
    assert len(raw) > 9 * 2**20 and not too_dear(raw, 256 * 2**20)


def test_the_look_before_parsing_costs_less_than_parsing_and_never_long_at_a_stretch() -> None:
    """64 MB of plain text are no dear body; while somebody looks for patterns in them, no other thread runs."""
    raw = b'"' + b"a" * (32 * 2**20) + b'"'

    def seconds(work: Callable[[], object]) -> float:
        took = []
        for _ in range(3):
            begun = time.thread_time()
            work()
            took.append(time.thread_time() - begun)
        return min(took)

    assert seconds(lambda: cost_of(raw)) < 4 * seconds(lambda: json.loads(raw))


def peak_kb(pid: int) -> int:
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1])


def test_a_body_of_64_mb_costs_at_most_four_times_its_size(tmp_path: Path) -> None:
    """Of the processes that serve, the one that grows most; and eight at once at most six times."""
    port = free_port()
    with serving(tmp_path, port) as process:
        until(lambda: healthy(port) or process.poll() is not None)
        before = {pid: peak_kb(pid) for pid in processes_of(tmp_path)}
        statuses = []
        for part in (b"[],", '"a😀",'.encode()):
            body = b'{"project": "1.1", "tasks": [' + part * (SIZE // len(part)) + b"0]}"
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            statuses.append((answer.status, "memory" in json.load(answer)["error"]))
            connection.close()
        assert statuses == [(413, True)] * 2
        whole = b'{"project": "1.1", "tasks": "' + b"w" * SIZE + b'"}'  # one long text is parsed
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("POST", "/predict", whole, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 400
        connection.close()
        grown = max(peak_kb(pid) - before[pid] for pid in before)
        assert 64_000 < grown < 4 * 64 * 1024
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: posted(port, whole), range(8)))
        assert {status for status, _ in answers} <= {400, 503} and 400 in {status for status, _ in answers}
        assert all("try again in a moment" in sentence for status, sentence in answers if status == 503)
        grown = max(peak_kb(pid) - before[pid] for pid in before)
        assert grown < 6 * 64 * 1024, [status for status, _ in answers]


def posted(port: int, body: bytes) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = answer.status, json.load(answer)["error"]
    connection.close()
    return found

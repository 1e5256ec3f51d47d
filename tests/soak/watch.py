"""Asks for /health, each time on a connection of its own, until its input ends; then prints what it took as JSON.

    python -m tests.soak.watch PORT

A process of its own, so that nothing else that a test does delays it; what it oversleeps tells how long the machine
kept it from running.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PAUSE_S, PATIENCE_S = 0.05, 10.0
ROOT = Path(__file__).parents[2]


def main(port: int) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    begun, waits, failed, overslept = time.monotonic(), list[tuple[float, float]](), 0, 0.0
    while not over.is_set():
        asked = time.monotonic()
        if answered(port):
            waits.append((asked - begun, time.monotonic() - asked))
        else:
            failed += 1
        slept = time.monotonic()
        over.wait(PAUSE_S)
        overslept = max(overslept, time.monotonic() - slept - PAUSE_S)
    slowest = max(waits, key=lambda each: each[1], default=(0.0, 0.0))
    print(json.dumps({"waits": [wait for _, wait in waits], "failed": failed, "overslept_s": overslept,
                      "slowest_at_s": slowest[0]}))


def answered(port: int) -> bool:
    """Whether /health answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def watching(port: int) -> Iterator[dict[str, Any]]:
    """The process for as long as the block; the dict is filled at its end."""
    found: dict[str, Any] = {}
    with subprocess.Popen([sys.executable, "-m", "tests.soak.watch", str(port)], cwd=ROOT, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield found
        finally:
            said, _ = process.communicate(timeout=3 * PATIENCE_S)
        found.update(json.loads(said))


if __name__ == "__main__":
    main(int(sys.argv[1]))

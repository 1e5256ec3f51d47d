"""Whether Label Studio answers right now, for pages and commands: one short request, its answer kept for seconds.

Invariants: at most one request at a time and one in `EVERY_S` seconds; who asks meanwhile gets the last answer; no
token is sent, no retry is made, nothing is raised.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import requests

EVERY_S = 4.0
TIMEOUT_S = 2.0
FIRST_SERVER_ERROR = 500  # a proxy in front of a Label Studio that is down answers with 502, 503 or 504


class Alive:
    """Asks one Label Studio. Safe for threads."""

    def __init__(self, url: str, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._address = f"{url.rstrip('/')}/health" if url else ""
        self._seconds = seconds
        self._one = threading.Lock()
        self._asked: float | None = None
        self._answers = True

    def answers(self) -> bool:
        """False when it did not answer within `TIMEOUT_S`; True where no address is set."""
        if not self._address or not self._due():
            return self._answers
        if self._one.acquire(blocking=self._asked is None):  # the first answer is waited for, later ones by one caller
            try:
                if self._due():
                    self._answers = _asks(self._address)
                    self._asked = self._seconds()
            finally:
                self._one.release()
        return self._answers

    def _due(self) -> bool:
        return self._asked is None or self._seconds() - self._asked >= EVERY_S


def _asks(address: str) -> bool:
    try:
        found = requests.get(address, timeout=TIMEOUT_S, allow_redirects=False, stream=True)
    except (requests.exceptions.RequestException, ValueError):  # ValueError: an address that is none
        return False
    found.close()
    return found.status_code < FIRST_SERVER_ERROR

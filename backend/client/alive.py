"""Whether Label Studio answers right now, for pages and commands: one short request, its answer kept for seconds.

What counts is that Label Studio itself answers: a JSON object from `/health/`, or from `/api/version/` where a proxy
hides the first. A login page, a proxy's error, another server, or an answer that drips are none.

Invariants: at most one look at a time and one in `EVERY_S` seconds, each of at most `TIMEOUT_S` to the last byte; no
token is sent, no retry is made, nothing is raised.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import requests

from backend.client.deadline import DeadlineAdapter, within
from backend.seldom import Seldom

EVERY_S = 4.0
TIMEOUT_S = 2.0
MOST_BYTES = 64 * 1024
REDIRECTS = 3
FIRST_SERVER_ERROR = 500  # a proxy in front of a Label Studio that is down answers with 502, 503 or 504
PATHS = ("/health/", "/api/version/")

SILENT = "does not answer: start it again, or check LABEL_STUDIO_URL"
SLOW = ("did not finish a short answer within two seconds: it is overloaded, or what stands in front of it drips; "
        "restart it, or check the proxy")
ELSEWHERE = "redirects to another address: set LABEL_STUDIO_URL to the one that answers itself"
FOREIGN = ("does not answer, something else does (no JSON came, but a page, as of a login or a proxy): check "
           "LABEL_STUDIO_URL, and let Polyvox through to Label Studio there")


class Alive:
    """Asks one Label Studio. Safe for threads."""

    def __init__(self, url: str, *, seconds: Callable[[], float] = time.monotonic) -> None:
        self._url = url.rstrip("/")
        self._looked = Seldom(self._look, every_s=EVERY_S, seconds=seconds)

    def problem(self) -> str:
        """What is wrong with its answers and what to do, as the rest of a sentence that begins with Label Studio; ""
        when it answers, and where no address is set."""
        return self._looked() if self._url else ""

    def _look(self) -> str:
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, DeadlineAdapter())
            session.trust_env = True
            with within(TIMEOUT_S) as watch:
                try:
                    found = _first(session, self._url)
                except (requests.exceptions.RequestException, ValueError) as error:  # ValueError: no address
                    late = watch.over or isinstance(error, requests.exceptions.Timeout)
                    return SLOW if late else SILENT
                return SLOW if watch.over else found  # a body without a length that was cut looks like one that ended


def _first(session: requests.Session, url: str) -> str:
    """"" when one of the paths answers as Label Studio does, else what is wrong with the first."""
    problems = []
    for path in PATHS:
        problem = _ask(session, url + path)
        if not problem:
            return ""
        problems.append(problem)
    return problems[0]


def _ask(session: requests.Session, address: str) -> str:
    for _ in range(REDIRECTS + 1):
        with session.get(address, timeout=TIMEOUT_S, allow_redirects=False, stream=True) as answer:
            if answer.is_redirect:
                target = urljoin(address, answer.headers["Location"])
                if urlsplit(target)[:2] != urlsplit(address)[:2]:
                    return ELSEWHERE
                address = target
                continue
            if answer.status_code >= FIRST_SERVER_ERROR:
                return (f"answers with an error ({answer.status_code}): start it again, or check the proxy in front of "
                        "it")
            return "" if answer.status_code == 200 and _is_object(answer) else FOREIGN
    return FOREIGN


def _is_object(answer: requests.Response) -> bool:
    content = bytearray()
    for chunk in answer.iter_content(4096):
        content += chunk
        if len(content) > MOST_BYTES:
            return False
    try:
        return isinstance(json.loads(content), dict)
    except (ValueError, RecursionError):
        return False

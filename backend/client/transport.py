"""HTTP to one Label Studio: pooled connections, time-outs, retries of what may be repeated, and honest errors.

GET, PATCH and DELETE are repeated with back-off (they have the same effect twice); POST is not, since a repeated import
would store everything twice. What is not answered in time is never repeated: Label Studio still works on it, and a
second deletion of a version would only make both slower; the job queue tries again later. Redirects are followed
within the same origin only, so the token never leaves it. Each exchange has a limit of time, repeats and redirects
included, and each answer one of size: one that drips, or never ends, holds nobody up.
Messages of errors name method, path and status, never bodies: these may carry label text.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import requests
from urllib3 import BaseHTTPResponse, Retry
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import ReadTimeoutError

from backend.client.auth import TokenAuth
from backend.client.deadline import DeadlineAdapter, is_over, within
from backend.errors import LabelStudioError
from backend.json_cost import too_dear

CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 60.0
WAITING_S = 15.0  # an exchange that takes longer is told of
SLOW_TIMEOUT_S = 600.0  # bulk imports and deletions of versions: minutes on a busy SQLite
MOST_BYTES = 256 * 1024 * 1024  # of one answer, unpacked; a page of 200 tasks with all their annotations is far below
TIMES = 4  # an answer may take that many times as much memory, parsed
RETRIES = 3
REDIRECTS = (301, 302, 303, 307, 308)
NO_ADDRESS = (
    requests.exceptions.MissingSchema, requests.exceptions.InvalidSchema, requests.exceptions.InvalidURL,
)  # fmt: skip
REPEATABLE = frozenset({"GET", "PATCH", "DELETE"})
REFUSED = (
    "Label Studio refused the token (401): check LABEL_STUDIO_API_KEY. It takes a personal access token, or a legacy"
    " token where the organisation allows legacy tokens."
)
NOT_SET = "Label Studio is not connected: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """An answer that was read to its end."""

    status: int
    location: str
    content: bytearray


class Transport:
    """Requests with JSON bodies and answers. Safe for several threads."""

    def __init__(
        self, url: str, key: str, *, seconds: Callable[[], float] = time.monotonic, backoff_s: float = 0.5,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._base = url.rstrip("/")
        self._connected = bool(url and key)
        self._sendable = _fits_a_header(key.strip())
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._under_way: dict[int, tuple[float, str]] = {}  # thread -> since when, method and path of its exchange
        self._session = requests.Session()
        retry = _Retry(
            total=RETRIES,
            redirect=False,
            backoff_factor=backoff_s,
            status_forcelist=(429, 500, 502, 503),  # not 504, a proxy's way to say that no answer came in time
            allowed_methods=REPEATABLE,
            raise_on_status=False,
            respect_retry_after_header=False,  # an hour's pause belongs to the job queue, not into a request
        )
        adapter = DeadlineAdapter(max_retries=retry, pool_maxsize=16)
        self._session.mount("http://", adapter)
        self._session.mount("https://", adapter)
        self._auth = TokenAuth(key, refresh=self._refresh, seconds=seconds)

    def json(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        body: Any = None,
        timeout_s: float = READ_TIMEOUT_S,
    ) -> Any:
        """Send a request and decode its answer; None for an empty one. Raises LabelStudioError.

        `timeout_s` is for the whole exchange, to the last byte of the answer.
        """
        if not self._connected:
            raise LabelStudioError(NOT_SET, retry=False)
        if not self._sendable:
            raise LabelStudioError(REFUSED, retry=False)
        self._under_way[threading.get_ident()] = (self._seconds(), f"{method} {path}")
        try:
            response = self._send(method, path, params, body, timeout_s, self._auth)
            if response.status == 401 and self._auth.refused():
                response = self._send(method, path, params, body, timeout_s, self._auth)
        finally:
            self._under_way.pop(threading.get_ident(), None)
        return _decoded(response, method, path, TIMES * self._most_bytes)

    def waits_for(self, thread: int | None) -> tuple[str, float] | None:
        """What a thread (by its ident) asked that is not answered whole yet, and for how many seconds; None while that
        is less than `WAITING_S`."""
        begun, what = self._under_way.get(thread or 0, (self._seconds(), ""))
        waited_s = self._seconds() - begun
        return (what, waited_s) if waited_s >= WAITING_S else None

    def authorization(self) -> str:
        """The value of the Authorization header, for files that are fetched elsewhere. Raises LabelStudioError."""
        return self._auth.header()

    def _send(
        self, method: str, path: str, params: dict[str, Any] | None, body: Any, timeout_s: float, auth: TokenAuth | None
    ) -> _Answer:
        url = self._base + path
        with within(timeout_s) as watch:
            for _ in range(4):
                try:
                    answer = self._ask(method, url, params, body, timeout_s, auth or _no_auth)
                except NO_ADDRESS as error:
                    raise LabelStudioError("LABEL_STUDIO_URL is not a web address.", retry=False) from error
                except requests.exceptions.InvalidHeader as error:
                    raise LabelStudioError(REFUSED, retry=False) from error
                except requests.exceptions.RequestException as error:
                    late = watch.over or _is_late(error)
                    what = "did not answer {} {} in time" if late else "cannot be reached for {} {}"
                    raise LabelStudioError(f"Label Studio {what.format(method, path)}.", retry=True) from error
                except ValueError as error:  # `requests` looks at where a redirect leads, and lets this through
                    message = f"Label Studio answered {method} {path} with a redirect to no address."
                    raise LabelStudioError(message, retry=False) from error
                if watch.over:  # a body without a length that was cut looks like one that ended
                    raise LabelStudioError(f"Label Studio did not answer {method} {path} in time.", retry=True)
                if answer.status not in REDIRECTS:
                    return answer
                url, params = _same_origin(url, answer, method), None
        raise LabelStudioError(f"Label Studio redirects {method} {path} in circles.", retry=False)

    def _ask(
        self, method: str, url: str, params: dict[str, Any] | None, body: Any, timeout_s: float, auth: Any
    ) -> _Answer:
        """One request, read to the end of its answer. Raises what `requests` raises, and LabelStudioError."""
        with self._session.request(
            method, url, params=params, json=body, auth=auth, timeout=(min(CONNECT_TIMEOUT_S, timeout_s), timeout_s),
            allow_redirects=False, stream=True,
        ) as response:
            content = bytearray()
            for chunk in response.iter_content(1 << 16):
                content += chunk
                if len(content) > self._most_bytes:
                    message = f"Label Studio answered {method} {urlsplit(url).path} with more than "
                    raise LabelStudioError(f"{message}{self._most_bytes // 2**20} MB.", retry=False)
            location = response.headers.get("Location", "")
            return _Answer(status=response.status_code, location=location, content=content)

    def _refresh(self, personal_token: str) -> str:
        path = "/api/token/refresh/"
        response = self._send("POST", path, None, {"refresh": personal_token}, READ_TIMEOUT_S, None)
        answer = _decoded(response, "POST", path, TIMES * self._most_bytes)
        access = answer.get("access") if isinstance(answer, dict) else None
        if not isinstance(access, str) or not _fits_a_header(access):
            raise LabelStudioError("Label Studio gave no access token for LABEL_STUDIO_API_KEY.", retry=False)
        return access


class _Retry(Retry):
    """As urllib3's, which also repeats what was sent and not answered in time."""

    def increment(
        self, method: str | None = None, url: str | None = None, response: BaseHTTPResponse | None = None,
        error: Exception | None = None, _pool: ConnectionPool | None = None, _stacktrace: TracebackType | None = None,
    ) -> Self:  # fmt: skip
        if error is not None and (isinstance(error, ReadTimeoutError) or is_over()):
            raise error
        return super().increment(method, url, response, error, _pool, _stacktrace)


def _fits_a_header(token: str) -> bool:
    """Whether a token can be sent at all; what cannot is no token, and HTTP's library would quote it in its error."""
    return token.isascii() and token.isprintable()


def _is_late(error: requests.exceptions.RequestException) -> bool:
    """Whether there was no answer in time; `requests` has another name for an answer that stopped half-way."""
    inner = error.args[0] if error.args else None
    return isinstance(error, requests.exceptions.Timeout) or isinstance(inner, ReadTimeoutError)


def _no_auth(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Given instead of nothing, since `requests` would then look for a .netrc file."""
    return request


def _same_origin(url: str, answer: _Answer, method: str) -> str:
    target = urljoin(url, answer.location)
    here, there = urlsplit(url), urlsplit(target)
    if (here.scheme, here.netloc) != (there.scheme, there.netloc):
        message = "Label Studio redirects to another address; set LABEL_STUDIO_URL to the one that answers itself."
        raise LabelStudioError(message, retry=False, http_status=answer.status)
    if method != "GET":
        message = f"Label Studio redirects {method} {here.path}, which would lose its body; check LABEL_STUDIO_URL."
        raise LabelStudioError(message, retry=False, http_status=answer.status)
    return target


def _decoded(answer: _Answer, method: str, path: str, most_memory: int) -> Any:
    status = answer.status
    if status == 401:
        raise LabelStudioError(REFUSED, retry=False, http_status=status)
    if status >= 400:
        hint = " The owner of LABEL_STUDIO_API_KEY may not do this." if status == 403 else ""
        raise LabelStudioError(
            f"Label Studio answered {status} to {method} {path}.{hint}",
            retry=status >= 500 or status in (408, 425, 429),
            http_status=status,
        )
    if not answer.content:
        return None
    if too_dear(answer.content, most_memory):
        message = f"Label Studio answered {method} {path} with more than {most_memory // 2**20} MB of memory can hold."
        raise LabelStudioError(message, retry=False, http_status=status)
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        message = f"Label Studio answered {method} {path} with something that is not JSON; check LABEL_STUDIO_URL."
        raise LabelStudioError(message, retry=False, http_status=status) from error

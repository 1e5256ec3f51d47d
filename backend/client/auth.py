"""The two kinds of Label Studio tokens.

A legacy token (40 hex digits) is sent as it is: `Authorization: Token ...`. A personal access token is a JWT *refresh*
token, which no endpoint but one accepts: POST /api/token/refresh/ gives an access token that lives for 300 s and is
sent as `Authorization: Bearer ...`. It is renewed a minute before its end, or at once when Label Studio refuses it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from requests import PreparedRequest
from requests.auth import AuthBase

RENEW_AFTER_S = 240.0  # of the 300 s that an access token lives


class TokenAuth(AuthBase):
    """Puts the right Authorization header on every request; safe for several threads.

    Being set as the session's `auth` it also keeps `requests` from replacing the header by what a .netrc file says.
    """

    def __init__(
        self, key: str, *, refresh: Callable[[str], str], seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._key = key.strip()
        self._refresh = refresh  # personal access token -> access token
        self._seconds = seconds
        self._lock = threading.Lock()
        self._access = ""
        self._renew_at: float | None = None
        self.personal = self._key.count(".") == 2

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        request.headers["Authorization"] = self.header()
        return request

    def header(self) -> str:
        """The value of the Authorization header now."""
        return f"Bearer {self._access_token()}" if self.personal else f"Token {self._key}"

    def refused(self) -> bool:
        """Label Studio answered 401. True when a fresh token will be made, so that trying again makes sense."""
        with self._lock:
            had_one = self._renew_at is not None
            self._renew_at = None
        return self.personal and had_one

    def _access_token(self) -> str:
        with self._lock:
            now = self._seconds()
            if self._renew_at is None or now >= self._renew_at:
                self._access = self._refresh(self._key)
                self._renew_at = now + RENEW_AFTER_S
            return self._access

"""Tokens, retries, time-outs, redirects, and what errors say."""

import contextlib
import socket
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backend.client.transport import Transport
from backend.errors import LabelStudioError
from tests.backend.client.server import Answer, Request, serving

LEGACY = "0123456789abcdef0123456789abcdef01234567"
PERSONAL = "header.payload.signature"


class FakeClock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 27, tzinfo=UTC)

    def seconds(self) -> float:
        return self.now.timestamp()


def transport(url: str, key: str = LEGACY, clock: FakeClock | None = None) -> Transport:
    return Transport(url, key, seconds=(clock or FakeClock()).seconds, backoff_s=0.001)


def error_of(made: Transport, method: str = "GET", path: str = "/api/x", timeout_s: float = 5.0) -> LabelStudioError:
    with pytest.raises(LabelStudioError) as caught:
        made.json(method, path, timeout_s=timeout_s)
    assert LEGACY not in str(caught.value) and PERSONAL not in str(caught.value)
    return caught.value


def test_a_legacy_token_is_sent_as_it_is_whatever_a_netrc_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with serving(lambda request: Answer(body={"ok": True})) as server:
        assert transport(server.url + "/prefix/").json("POST", "/api/x", body={"a": 1}) == {"ok": True}
    request = server.requests[0]
    assert (request.authorization, request.path, request.body) == (f"Token {LEGACY}", "/prefix/api/x", {"a": 1})


class TokenServer:
    """Gives out access tokens that live for 300 s of the fake clock."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.made: dict[str, datetime] = {}

    def __call__(self, request: Request) -> Answer:
        if request.path == "/api/token/refresh/":
            if request.body != {"refresh": PERSONAL}:
                return Answer(status=401, body={"detail": "wrong"})
            access = f"access{len(self.made)}"
            self.made[access] = self.clock.now
            return Answer(body={"access": access})
        kind, _, token = request.authorization.partition(" ")
        alive = token in self.made and self.clock.now < self.made[token] + timedelta(seconds=300)
        return Answer(body={"ok": 1}) if kind == "Bearer" and alive else Answer(status=401, body={})


def test_a_personal_token_is_exchanged_and_renewed_before_it_ends() -> None:
    clock = FakeClock()
    began, script = clock.now, TokenServer(clock)
    with serving(script) as server:
        made = transport(server.url, PERSONAL, clock)
        for seconds in (0, 100, 139, 1, 200, 39, 3600):
            clock.now += timedelta(seconds=seconds)
            assert made.json("GET", "/api/x") == {"ok": 1}
    assert [(moment - began).total_seconds() for moment in script.made.values()] == [0, 240, 4079]
    assert server.paths().count("POST /api/token/refresh/") == 3
    assert server.requests[0].authorization == ""


def test_a_refused_access_token_is_renewed_once() -> None:
    clock = FakeClock()
    script = TokenServer(clock)
    with serving(script) as server:
        made = transport(server.url, PERSONAL, clock)
        made.json("GET", "/api/x")
        script.made.clear()  # Label Studio was restarted with another secret
        script.made["other"] = clock.now
        assert made.json("GET", "/api/x") == {"ok": 1}
    assert server.paths().count("POST /api/token/refresh/") == 2


@pytest.mark.parametrize("key", [LEGACY, PERSONAL, "wrong.personal.token"])
def test_a_refused_token_says_which_setting_to_check(key: str) -> None:
    def script(request: Request) -> Answer:
        if request.path == "/api/token/refresh/" and request.body == {"refresh": PERSONAL}:
            return Answer(body={"access": "access"})
        return Answer(status=401, body={"detail": "Invalid token."})

    with serving(script) as server:
        error = error_of(transport(server.url, key))
    assert "LABEL_STUDIO_API_KEY" in str(error) and not error.retry and error.http_status == 401
    assert len(server.requests) <= 4


@pytest.mark.parametrize("token", ["half a \u20ac", "two\nlines", "\udc80"])
def test_a_token_that_no_header_can_hold_is_refused_in_a_sentence(token: str) -> None:
    """Pasted with something else, or given by a server that is none."""
    with serving(lambda request: Answer(body={"access": token})) as server:
        for key in (token, PERSONAL):
            error = error_of(transport(server.url, key))
            assert "LABEL_STUDIO_API_KEY" in str(error) and not error.retry and token not in str(error)


@pytest.mark.parametrize("where", ["http://[::1", "http://[nonsense]/api/x", ""])
def test_a_redirect_to_no_address_is_an_error_with_a_sentence(where: str) -> None:
    with serving(lambda request: Answer(status=302, headers={"Location": where})) as server:
        error = error_of(transport(server.url))
    assert not error.retry and "redirect" in str(error)


def test_what_may_be_repeated_is_and_what_may_not_is_not() -> None:
    def script(request: Request) -> Answer:
        tries = sum(each.method == request.method for each in server.requests)
        return Answer(status=503) if tries < 3 else Answer(body=[tries])

    with serving(script) as server:
        made = transport(server.url)
        for method in ("GET", "PATCH", "DELETE"):
            assert made.json(method, "/api/x") == [3]
        error = error_of(made, "POST")
    assert error.retry and error.http_status == 503
    assert [request.method for request in server.requests].count("POST") == 1


@pytest.mark.parametrize(("status", "retry"), [(400, False), (403, False), (404, False), (429, True), (500, True)])
def test_errors_name_the_request_and_say_whether_to_try_again(status: int, retry: bool) -> None:
    with serving(lambda request: Answer(status=status, body={"secret": "label text"})) as server:
        error = error_of(transport(server.url))
    assert (error.retry, error.http_status) == (retry, status)
    assert f"{status} to GET /api/x" in str(error) and "label text" not in str(error)


def test_no_answer_in_time_and_nobody_there() -> None:
    with serving(lambda request: Answer(body={}, delay_s=0.4)) as server:
        slow = error_of(transport(server.url), "POST", timeout_s=0.1)
    assert slow.retry and "in time" in str(slow)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        down = error_of(transport(f"http://127.0.0.1:{unused.getsockname()[1]}"))
    assert down.retry and "cannot be reached" in str(down)


@pytest.mark.parametrize("answer", [
    Answer(body={}, delay_s=0.3), Answer(body={}, body_delay_s=0.3), Answer(status=504, body={}),
], ids=["nothing", "headers only", "a proxy's word"])
@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE", "POST"])
def test_what_is_not_answered_in_time_is_sent_once(method: str, answer: Answer) -> None:
    """Label Studio still works on it: four deletions of a version at once help nobody."""
    with serving(lambda request: answer) as server:
        error = error_of(transport(server.url), method, timeout_s=0.1)
        assert error.retry and ("in time" in str(error) or error.http_status == 504)
        time.sleep(0.1)
        assert len(server.requests) == 1


def test_the_token_never_follows_a_redirect_to_another_host() -> None:
    with serving(lambda request: Answer(body={"got": "it"})) as other:
        with serving(lambda request: Answer(status=302, headers={"Location": other.url + "/api/x"})) as server:
            error = error_of(transport(server.url))
        assert other.requests == []
    assert not error.retry and "LABEL_STUDIO_URL" in str(error)


def test_redirects_at_home_are_followed_for_reading_only() -> None:
    def script(request: Request) -> Answer:
        if request.path == "/api/x":
            return Answer(status=301, headers={"Location": "/api/x/"})
        if request.path == "/api/round":
            return Answer(status=302, headers={"Location": "/api/round"})
        return Answer(body={"ok": request.authorization})

    with serving(script) as server:
        made = transport(server.url)
        assert made.json("GET", "/api/x") == {"ok": f"Token {LEGACY}"}
        assert not error_of(made, "POST").retry
        assert "circles" in str(error_of(made, "GET", "/api/round"))


def test_a_page_that_is_not_json_is_named() -> None:
    with serving(lambda request: Answer(body="<html>Log in</html>")) as server:
        error = error_of(transport(server.url))
    assert not error.retry and "not JSON" in str(error)


@pytest.mark.parametrize(("url", "key"), [("", LEGACY), ("http://127.0.0.1:1", ""), ("nonsense", LEGACY)])
def test_without_usable_settings_there_is_a_sentence(url: str, key: str) -> None:
    error = error_of(transport(url, key))
    assert "LABEL_STUDIO_URL" in str(error) and not error.retry


def test_an_empty_answer_is_none() -> None:
    with serving(lambda request: Answer(status=204)) as server:
        assert transport(server.url).json("DELETE", "/api/x") is None


class Dripping:
    """A server that sends its answer byte by byte, for ever: in the headers, in a body with or without a length."""

    def __init__(self, head: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._serve, args=[head], daemon=True)
        self.thread.start()

    def _serve(self, head: bytes) -> None:
        while not self.ended.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.requests += 1
            threading.Thread(target=self._drip, args=[connection, head], daemon=True).start()

    def _drip(self, connection: socket.socket, head: bytes) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(head)
            while not self.ended.wait(0.05):
                connection.sendall(b"a")

    def close(self) -> None:
        self.ended.set()
        self.listener.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("head", [
    HEAD + b"X-Long: ", HEAD + b"Content-Length: 100000\r\n\r\n", HEAD + b"Connection: close\r\n\r\n[",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFF\r\n",
], ids=["headers", "length", "no-length", "chunked"])
def test_an_answer_that_drips_is_cut_when_its_time_is_over(method: str, head: bytes) -> None:
    server = Dripping(head)
    try:
        begun = time.monotonic()
        error = error_of(transport(server.url), method, timeout_s=0.5)
        assert time.monotonic() - begun < 3.0
        assert error.retry and str(error) == f"Label Studio did not answer {method} /api/x in time."
        assert server.requests == 1
    finally:
        server.close()


def test_an_answer_that_is_too_large_is_not_read_to_its_end() -> None:
    with serving(lambda request: Answer(body=["x" * 4_000_000])) as server:
        error = error_of(Transport(server.url, LEGACY, most_bytes=2**20))
    assert "more than 1 MB" in str(error) and not error.retry


def test_an_answer_that_grows_when_it_is_parsed_is_refused() -> None:
    with serving(lambda request: Answer(body=[[]] * 250_000)) as server:  # 1 MB, 18 MB as lists
        error = error_of(Transport(server.url, LEGACY, most_bytes=2**20))
    assert "4 MB of memory" in str(error) and not error.retry


def test_a_deadline_ends_with_its_exchange() -> None:
    """The connection stays in the pool: the watch of an answered request must not cut the next one."""
    with serving(lambda request: Answer(body=1, delay_s=0.4)) as server:
        made = transport(server.url)
        for _ in range(3):
            assert made.json("GET", "/api/x", timeout_s=0.6) == 1

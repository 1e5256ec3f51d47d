"""Logs and metrics: one line each, no secret, nobody's text; a registry of one's own."""

from __future__ import annotations

import io
import logging
import socket
from datetime import UTC, datetime

import pytest

from backend.client.transport import Transport
from backend.errors import LabelStudioError
from backend.settings import Settings
from backend.telemetry import (
    VERSION,
    Redactor,
    configure_logging,
    one_line,
    safe_message,
)

KEY = "0123456789abcdef0123456789abcdef01234567"
NOW = datetime(2026, 11, 27, tzinfo=UTC)


@pytest.fixture
def log(tmp_path):
    """What a process with secrets would write."""
    stream = io.StringIO()
    root, changed = logging.getLogger(), ("", "backend", "model", "urllib3")
    levels = {name: logging.getLogger(name).level for name in changed}
    configure_logging(Settings(
        data_dir=tmp_path, label_studio_api_key=KEY, basic_auth_user="me", basic_auth_pass="pa55word",
        log_level="DEBUG"), stream)
    yield stream
    root.removeHandler(next(each for each in root.handlers if each.get_name() == "polyvox"))
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def test_a_record_is_one_line(log):
    logging.getLogger("backend.x").info("a\nFAKE %s", "b\r\nc")
    lines = log.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(r"INFO    backend.x: a\nFAKE b\r\nc")


@pytest.mark.parametrize("text, secret", [
    (f"key is {KEY}", KEY),
    ("Authorization: Token abcdefabcdefabcdefabcdef", "abcdefabcdefabcdefabcdef"),
    ('{"access_token": "hush", "x": 1}', "hush"),
    ("task_data_password=hush2, more", "hush2"),
    ("{'password': 'hush3'}", "hush3"),
    ("postgresql://me:hush4@db/x", "hush4"),
    ("eyJhbGciOi.eyJ0b2tlbl90eXBl.c2lnbmF0dXJl", "eyJ0b2tlbl90eXBl"),
])
def test_secrets_are_replaced(text, secret):
    assert secret not in Redactor([KEY])(text)


def test_ordinary_sentences_stay():
    text = "The token is missing; basic authentication was expected. password required"
    assert Redactor([])(text) == text


def test_known_secrets_do_not_get_through_in_any_part_of_a_record(log):
    try:
        raise LabelStudioError(f"refused {KEY}", retry=False)
    except LabelStudioError:
        logging.getLogger("backend.y").exception("with pa55word and %s", KEY)
    written = log.getvalue()
    assert KEY not in written and "pa55word" not in written
    assert "LabelStudioError: refused ***" in written and "test_telemetry.py" in written


def test_foreign_exceptions_lose_the_values_they_repeat(log):
    try:
        try:
            {}["a very private label"]
        except KeyError as error:
            raise ValueError("could not convert string to float: 'private text'") from error
    except ValueError:
        logging.getLogger("backend").exception("failed")
    written = log.getvalue()
    assert "private" not in written.replace('{}["a very private label"]', "")
    assert "KeyError: '...'" in written and "ValueError: could not convert string to float: '...'" in written


def test_sql_parameters_are_cut_off():
    error = RuntimeError("(sqlite3.OperationalError) locked\n[SQL: INSERT ...]\n[parameters: (Positive,)]")
    assert safe_message(error) == "(sqlite3.OperationalError) locked"
    assert "/no/such" in safe_message(FileNotFoundError(2, "No such file", "/no/such"))


def test_foreign_loggers_stay_quiet_below_warnings(log):
    logging.getLogger("sqlalchemy.engine").info("INSERT private text")
    logging.getLogger("urllib3").debug("header")
    logging.getLogger("backend").debug("ours")
    assert "private" not in log.getvalue() and "header" not in log.getvalue() and "ours" in log.getvalue()


def test_retries_of_requests_are_not_logged_with_their_addresses(log):
    """Label Studio is down: urllib3 would write each address thrice."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # does not listen
        transport = Transport(f"http://127.0.0.1:{taken.getsockname()[1]}", KEY, backoff_s=0.001)
        with pytest.raises(LabelStudioError, match="cannot be reached"):
            transport.json("GET", "/api/tasks/", params={"query": "private"})
    assert log.getvalue() == ""


def test_configuring_twice_writes_once(log, tmp_path):
    again = io.StringIO()
    configure_logging(Settings(data_dir=tmp_path), again)
    logging.getLogger("backend").warning("once")
    assert again.getvalue().count("once") == 1 and "once" not in log.getvalue()


def test_long_messages_are_cut():
    assert len(one_line("x" * 10_000)) < 2100


def test_the_version_is_that_of_the_package(pyproject):
    assert pyproject["project"]["version"] == VERSION

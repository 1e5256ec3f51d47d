"""Sends one mutated request and says in words what is wrong with the answer, the log or the database afterwards."""

from __future__ import annotations

import io
import json
import logging
import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import Any

from flask import Flask
from werkzeug.test import EnvironBuilder, run_wsgi_app
from werkzeug.wrappers import Response

from backend.telemetry import exception_lines
from tests.backend.matrix.mutations import Sent
from tests.backend.matrix.values import PLANTED

TRACES = ("Traceback", 'File "', "sqlalchemy", "site-packages", ".py:", "backend.")
LONGEST_SENTENCE = 400


class Bench:
    """An app, its database, and its log."""

    def __init__(self, app: Flask, database: sqlite3.Connection) -> None:
        self._app = app
        self._live = database
        self._kept = sqlite3.connect(":memory:")
        self._live.backup(self._kept)
        self._seen = self._version()
        self.log = _Log()

    def close(self) -> None:
        self._live.close()
        self._kept.close()

    def complaints(self, request: Sent) -> list[str]:
        """Everything that should not be; [] for a good answer. The database is as before afterwards."""
        self.log.records.clear()
        found, statuses = [], []
        for _ in range(request.times):
            answer = self.open(request)
            statuses.append(answer.status_code)
            found += list(_of_answer(request, answer))
            if answer.status_code >= 400 and self._changed():
                found.append(f"answered {answer.status_code}, but wrote into the database: {self._differences()}")
            elif answer.status_code < 400 and len(set(statuses)) > 1:
                found.append(f"the same request was answered differently: {statuses}")
            self.restore() if request.times == 1 else self._note()
        self.restore(always=request.times > 1)
        return found + list(self._of_log())

    def open(self, request: Sent) -> Response:
        builder = EnvironBuilder(
            method=request.method, path=request.path, query_string=request.query, headers=request.headers,
            input_stream=io.BytesIO(request.body))
        environ = builder.get_environ()
        builder.close()
        if request.chunked:
            environ.pop("CONTENT_LENGTH", None)
            environ |= {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
        else:
            environ["CONTENT_LENGTH"] = str(len(request.body))
        content, status, headers = run_wsgi_app(self._app, environ, buffered=True)  # the test client wants tidy headers
        return Response(content, status, headers)

    def _of_log(self) -> Iterator[str]:
        for record in self.log.records:
            text = record.getMessage() + (str(record.exc_info[1]) if record.exc_info and record.exc_info[1] else "")
            if record.levelno >= logging.ERROR:
                error = record.exc_info[1] if record.exc_info else None
                where = list(exception_lines(error, error.__traceback__))[-3:] if error else []
                yield f"logged an error: {record.getMessage()} {where}"
            elif PLANTED in text:
                yield f"logged what was in the request: {record.name}"

    def _version(self) -> int:
        """A number that changes when another connection has committed a change."""
        return int(self._live.execute("PRAGMA data_version").fetchone()[0])

    def _changed(self) -> bool:
        return self._version() != self._seen

    def _note(self) -> None:
        self._seen = self._version()

    def restore(self, *, always: bool = False) -> None:
        if always or self._changed():
            self._kept.backup(self._live)
            self._seen = self._version()

    def _differences(self) -> str:
        before, after = set(self._kept.iterdump()), set(self._live.iterdump())
        return f"{len(after - before)} new rows, such as {sorted(after - before)[:1]!r:.300}"


def _of_answer(request: Sent, answer: Response) -> Iterator[str]:
    text = answer.get_data(as_text=True)
    if answer.status_code >= 500:
        yield f"answered {answer.status_code}: {text:.200}"
    if request.path != "/static/status.css" and any(trace in text for trace in TRACES) and answer.status_code >= 400:
        yield f"shows its insides: {text:.200}"
    harmless = request.path == "/validate" or (answer.status_code < 400 and request.path == "/predict")
    if PLANTED in text and not harmless:
        yield f"repeats what was in the request: {text:.200}"
    if request.method == "HEAD":
        return
    if answer.status_code >= 400:
        yield from of_refusal(answer)
    elif answer.is_json:
        json.loads(text, parse_constant=_no_constant)
        yield from of_results(request, answer)


def of_refusal(answer: Response) -> Iterator[str]:
    """What is wrong with an answer of 4xx: it is JSON with one sentence."""
    about: Any = answer.get_json(silent=True)
    if not isinstance(about, dict) or set(about) != {"error"}:
        yield f"a refusal that is no JSON with a sentence: {answer.get_data(as_text=True):.200}"
        return
    sentence = about["error"]
    one = sentence.endswith((".", ")")) and not any(unicodedata.category(each) == "Cc" for each in sentence)
    if not (one and 15 < len(sentence) < LONGEST_SENTENCE):
        yield f"a refusal that is not one sentence: {sentence[:500]!r}"


def of_results(request: Sent, answer: Response) -> Iterator[str]:
    """Label Studio drops everything when the number of results is not that of tasks."""
    if request.path == "/predict" and request.method == "POST":
        asked = json.loads(request.body.decode("utf-8-sig"))["tasks"]
        results = answer.get_json()["results"]
        if len(results) != len(asked) or not all(isinstance(each, list) for each in results):
            yield f"{len(results)} results for {len(asked)} tasks"
    if request.path == "/setup" and not isinstance(answer.get_json().get("model_version", ""), str):
        yield "a version that is no text"


def _no_constant(name: str) -> Any:
    raise AssertionError(f"the answer has {name} in it, which is no JSON")


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

"""What Polyvox tells about itself: log lines and metrics, neither of which carries secrets or anybody's text.

Logs: one line per record, `2026-11-28T12:00:00Z INFO  backend.app: sentence`; a traceback follows as indented lines.
`RedactingFormatter` works on the finished text, so that nothing gets around it: known secrets and everything that looks
like a token or password is replaced; line breaks inside messages are escaped (no forged records); of foreign exceptions
the quoted parts of the message, where Python and SQLAlchemy repeat values, are left out. Only Polyvox's own loggers
follow LOG_LEVEL: at DEBUG others would write request bodies and SQL parameters.

Metrics: a `Metrics` object belongs to one app and has its own registry. Requests are counted in the process, or, where
there are several web processes, in files of a folder (`count_together`), so that each of them tells the sum of all, of
those that have ended too. What is read from the database at each scrape (jobs, queue depth, versions, votes) is the
same whichever process answers.
"""

from __future__ import annotations

import base64
import importlib
import logging
import os
import re
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, values
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from backend.errors import PolyvoxError
from backend.masking import HIDDEN, masked
from backend.ports import Store
from backend.records import JobKind, JobState
from backend.settings import Settings

VERSION = "0.1.0"  # of Polyvox; a test keeps it in step with pyproject.toml
OWN_LOGGERS = ("backend", "model", "polyvox")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
LONGEST_MESSAGE = 2000
JOB_STATES = (JobState.QUEUED, JobState.RUNNING, JobState.FAILED)  # those that are done are history, and many

_SHAPES = (
    (re.compile(r"(?i)\b(token|bearer|basic)\s+[A-Za-z0-9+/=_.\-]{16,}"), r"\1 " + HIDDEN),
    (re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*"), HIDDEN),  # JSON web tokens
    (re.compile(r"(?i)([\"']?\b[\w-]*(?:token|password|passwd|secret|api_?key|authorization)[\"']?\s*[:=]\s*)"
                r"(\"[^\"]*\"|'[^']*'|[^\s,;&})]+)"), r"\1" + HIDDEN),
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


class Redactor:
    """Takes secrets out of text: the known ones by value, others by their shape."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # Longest first: one secret may contain another. Short ones would blank out ordinary words.
        self._secrets = sorted({each for each in secrets if len(each) >= 4}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        for shape, instead in _SHAPES:
            text = shape.sub(instead, text)
        return masked(text)


class RedactingFormatter(logging.Formatter):
    """See the module's docstring."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
        self._redact = redact

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """UTC, whatever the machine's zone."""
        return time.strftime(datefmt or "%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The message on one line."""
        record.message = one_line(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        """The chain of an exception, without the values in its messages."""
        _, error, trace = ei
        if error is None:
            return ""
        return "\n".join(f"    {line}" for line in exception_lines(error, trace))

    def format(self, record: logging.LogRecord) -> str:
        """The whole entry, redacted."""
        record.exc_text = None  # another handler may have cached its own, unredacted text
        text = self._redact(super().format(record))
        record.exc_text = None
        return text


def one_line(message: str) -> str:
    """Line breaks and other control characters are escaped, very long messages are cut."""
    shown = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + " ..."
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in shown)


def exception_lines(error: BaseException, trace: TracebackType | None) -> Iterator[str]:
    """The chain of an exception, outermost last, as places in the code and messages without values."""
    earlier = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if earlier is not None:
        yield from exception_lines(earlier, earlier.__traceback__)
        yield "which led to"
    for frame in traceback.extract_tb(trace):
        yield f"at {frame.filename}:{frame.lineno} in {frame.name}"
    yield f"{type(error).__name__}: {safe_message(error)}"


def safe_message(error: BaseException) -> str:
    """The message of our own exceptions and of the operating system's; of others without what is in quotes."""
    if isinstance(error, PolyvoxError | OSError):
        return one_line(str(error))
    # SQLAlchemy and database drivers repeat values from the second line on.
    first_line = str(error).strip().partition("\n")[0]
    return one_line(_QUOTED.sub("'...'", first_line))[:300]


def configure_logging(settings: Settings, stream: TextIO | None = None) -> None:
    """Send everything to one stream (stderr by default) in one format. May be called again."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(RedactingFormatter(Redactor(secrets_of(settings))))
    handler.set_name("polyvox")
    root = logging.getLogger()
    for old in [each for each in root.handlers if each.get_name() == "polyvox"]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    # Each retry of a request would be logged with its whole URL; what becomes of the request is ours to tell.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    for name in OWN_LOGGERS:
        logging.getLogger(name).setLevel(settings.log_level)


def secrets_of(settings: Settings) -> list[str]:
    """Values that must never be seen in a log, also as they look in a header."""
    in_urls = [urlsplit(url).password or "" for url in (settings.database_url, settings.redis_url)]
    login = f"{settings.basic_auth_user}:{settings.basic_auth_pass}".encode()
    header = base64.b64encode(login).decode() if settings.basic_auth_pass else ""
    return [settings.label_studio_api_key, settings.basic_auth_pass, settings.webhook_secret, header, *in_urls]


COUNTED_IN = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client, when it is loaded


def count_together(folder: Path) -> None:
    """The processes that are forked from this one from now on count requests together, from 0, in this folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    os.environ[COUNTED_IN] = str(folder)
    importlib.reload(values)  # it chose where to count when it was loaded


class Metrics:
    """Prometheus metrics of one app."""

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        self._together = COUNTED_IN in os.environ
        self._requests = Counter(
            "polyvox_requests", "HTTP requests answered", ["route", "method", "status"],
            registry=self.registry)
        self._seconds = Histogram(
            "polyvox_request_seconds", "Time to answer an HTTP request", ["route"], registry=self.registry,
            buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 100))
        self._predictions = Counter(
            "polyvox_predictions", "Predictions handed to Label Studio in answers of /predict", registry=self.registry)
        self._of_store = StoreCollector(store)

    def request(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """`route` is the pattern, never the path, and methods are the known ones: what callers choose freely would make
        the counters grow without bound."""
        self._requests.labels(route, method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def predictions(self, count: int) -> None:
        """Count predictions that were handed out."""
        self._predictions.inc(count)

    def render(self) -> bytes:
        """The Prometheus text format."""
        requests = self.registry
        if self._together:
            MultiProcessCollector(requests := CollectorRegistry())  # type: ignore[no-untyped-call]
        stored = CollectorRegistry()
        stored.register(self._of_store)
        return generate_latest(requests) + generate_latest(stored)


class StoreCollector(Collector):
    """Reads the database when it is scraped: a few counts per project."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering asks nothing of the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Counts of now."""
        yield from self._jobs()
        yield from self._projects()

    def _jobs(self) -> Iterator[Metric]:
        counts = self._store.jobs.counts(JOB_STATES)
        jobs = GaugeMetricFamily(
            "polyvox_jobs", "Jobs that wait, run, or failed for good, by kind and state", labels=["kind", "state"])
        for kind in JobKind:
            for state in JOB_STATES:
                jobs.add_metric([kind, state], counts.get((kind, state), 0))
        yield jobs
        depth = sum(count for (_, state), count in counts.items() if state is JobState.QUEUED)
        yield GaugeMetricFamily("polyvox_queue_depth", "Jobs that wait", value=depth)

    def _projects(self) -> Iterator[Metric]:
        version = GaugeMetricFamily("polyvox_version", "Number of the published version", labels=["project"])
        votes = GaugeMetricFamily("polyvox_votes", "Current votes", labels=["project"])
        dirty = GaugeMetricFamily("polyvox_dirty_tasks", "Tasks that wait to be read again", labels=["project"])
        failures = GaugeMetricFamily(
            "polyvox_sync_failures", "Readings of Label Studio that failed in a row", labels=["project"])
        for project in self._store.projects.all():
            published = self._store.versions.published(project.key)
            version.add_metric([project.key], published.number if published else 0)
            votes.add_metric([project.key], self._store.votes.counts(project.key).total)
            dirty.add_metric([project.key], self._store.tasks.dirty_count(project.key))
            failures.add_metric([project.key], self._store.projects.sync_state(project.key).failures)
        yield from (version, votes, dirty, failures)

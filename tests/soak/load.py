"""`load`: annotators at human pace for half an hour, with trainings, against a server that reads a small Label Studio.

Every submission is in Label Studio before its webhook is sent. Held: every vote that Label Studio has is in the store
at the end, nothing failed, and the memory of the processes is flat: in the last third of the time not above that of the
first (the first fifth of it, while models are loaded, left out).
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend.commands.progress import progress_bar
from benchmarks.load_clients import ROUTES, Servers, Taken, annotators
from benchmarks.load_report import LATE_S
from benchmarks.measure import median, p99
from benchmarks.stand import KEY, label, open_task, task_json
from demo.processes import LOOPBACK, Service, clean_env, free_port
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from tests.soak.ground import ROOT, Ground, ground
from tests.soak.ground import Taken as Held
from tests.soak.report import Judged, Part, table

PEOPLE = 6  # accounts; annotators share them
FLAT, FLAT_MB = 1.1, 32.0  # of the first third, and what may be more in any case
PROJECT = {"id": 1, "title": "Soak", "label_config": LABEL_CONFIG, "created_at": "2023-11-14T22:13:20Z"}
Sample = tuple[float, dict[str, Held]]  # seconds from the beginning, what each group takes


@dataclass(kw_only=True)
class Submissions:
    """Annotations that annotators gave to Label Studio; who labels a task again may say something else."""

    on: Ground
    given: dict[tuple[int, int], int]

    def voted(self, task: int, who: int) -> None:
        """Annotator `who` submits the open task of this number."""
        often = self.given[task, who] = self.given.get((task, who), 0) + 1
        number = open_task(task)["id"]
        said = label(who + (often - 1) % 2, load()[number - 1])
        self.on.label_studio.submit(number, who, result(said))


def result(said: str) -> list[dict[str, Any]]:
    """Of an annotation."""
    return [{"id": "r", "from_name": CONTROL, "to_name": OBJECT, "type": "choices", "origin": "manual",
             "value": {"choices": [said]}}]


def projects() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The one of the benchmarks: the last fifth of its tasks is open."""
    messages = load()
    opened = len(messages) * 4 // 5
    return [(PROJECT, [task_json(number, message, people=PEOPLE, share=0.4 if number <= opened else 0.0)
                       for number, message in enumerate(messages, start=1)])]


def run(*, minutes: float, count: int, trainings: bool = True) -> Part:
    """A server of its own, with `count` annotators; without trainings it is ready at once."""
    settings = {} if trainings else {"POLYVOX_MIN_VOTES": "1000000"}
    port = free_port()
    nothing = [sys.executable, "-m", "benchmarks.noop_server", str(port)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        ground(Path(scratch), projects(), [KEY], published=trainings, POLYVOX_ANNOTATORS_PER_TASK=str(PEOPLE),
               **settings) as on,
        Service("The handler that does nothing", nothing, env=clean_env(), log=Path(scratch) / "noop.log",
                health=f"http://{LOOPBACK}:{port}/noop", cwd=ROOT) as noop,
    ):
        noop.wait_until_up(60.0)
        return part(on, port, minutes=minutes, count=count)


def part(on: Ground, noop_port: int, *, minutes: float, count: int) -> Part:
    """The annotators, and the judgement."""
    versions = len(on.store.versions.recent(KEY, limit=10_000))
    submissions, over, samples = Submissions(on=on, given={}), threading.Event(), list[Sample]()
    begun = time.monotonic()

    def look() -> None:
        with progress_bar("load") as tell:
            while not over.wait(min(10.0, 3 * minutes)):
                samples.append((time.monotonic() - begun, on.taken()))
                tell(min(1.0, samples[-1][0] / 60 / minutes), f"{sum(submissions.given.values()):,} submissions")

    before, thread = on.taken(), threading.Thread(target=look)
    thread.start()
    try:
        servers = Servers(port=on.port, noop_port=noop_port)
        taken = asyncio.run(annotators(servers, count, seconds=60 * minutes, people=PEOPLE, voted=submissions.voted))
    finally:
        over.set()
        thread.join()
    seconds = time.monotonic() - begun
    restless = on.wait_for_rest([KEY])
    lost = _lost(on)
    trained = len(on.store.versions.recent(KEY, limit=10_000)) - versions
    return _judge(on, taken, samples, before, lost, restless, trained, submissions, seconds, count)


def _lost(on: Ground, patience_s: float = 60.0) -> int:
    """Votes that Label Studio has and the store does not; a comparison, which comes now and then, may still be due."""
    end = time.monotonic() + patience_s
    while True:
        wanted, there = on.label_studio.labels(PROJECT["id"]), on.votes(KEY)
        lost = sum(there.get(pair) != value for pair, value in wanted.items()) + len(there.keys() - wanted.keys())
        if not lost or time.monotonic() > end:
            return lost
        time.sleep(1.0)


def _judge(
    on: Ground, taken: Taken, samples: Sequence[Sample], before: dict[str, Held], lost: int, restless: str,
    trained: int, submissions: Submissions, seconds: float, count: int,
) -> Part:
    after, errors, failed = on.taken(), on.errors(), sum(taken.failed.values())
    judged = [
        Judged.of("requests that failed", failed, "0", not failed),
        Judged.of("votes of Label Studio that are not in the store, or are others there", lost, "0", not lost),
        Judged.of("at rest afterwards", restless or "yes", "yes", not restless),
        Judged.of("errors in the server's log", len(errors), "0", not errors),
        Judged.of("trainings that ended meanwhile", trained, "at least 1", trained > 0),
        *(_flat(group, samples, seconds) for group in before),
        *(Judged.of(f"threads of {group} that stay", f"{after[group].threads - _settled(samples, seconds, group):+}",
                    "at most 0", after[group].threads <= _settled(samples, seconds, group)) for group in before),
    ]
    routes = [(route, len(each), taken.failed[route], round(1000 * median(each)), round(1000 * p99(each)),
               sum(one > LATE_S for one in each)) for route in ROUTES if (each := taken.seconds[route])]
    given = sum(submissions.given.values())
    return Part.made_now("load", judged, seconds=seconds, about=(
        f"{count} annotators (one task in 5 s each, {PEOPLE} accounts) for {seconds / 60:.0f} minutes: {given:,} "
        f"submissions on {len(submissions.given):,} pairs of task and annotator; {trained} versions were tried. The "
        "Label Studio is a small one in memory, asked over HTTP. `noop`: a handler that does nothing, in a process of "
        "its own."),
        tables=[table(("", "requests", "failed", "p50 ms", "p99 ms", "beyond 1 s"), routes), _minutes(samples),
                *([table(("log",), [(line,) for line in errors[:20]])] if errors else [])])


def _thirds(samples: Sequence[Sample], seconds: float, group: str) -> tuple[list[float], list[float]]:
    """Memory in the first third of the time after its first fifth, and in the last third."""
    first, last = seconds / 5 + (seconds * 4 / 5) / 3, seconds - (seconds * 4 / 5) / 3
    return ([each[group].own_mb for at, each in samples if seconds / 5 <= at < first],
            [each[group].own_mb for at, each in samples if at >= last])


def _flat(group: str, samples: Sequence[Sample], seconds: float) -> Judged:
    early, late = (statistics.median(each or [0.0]) for each in _thirds(samples, seconds, group))
    most = max(FLAT * early, early + FLAT_MB)
    return Judged.of(f"memory of {group} in the last third", f"{late:.0f} MB", f"at most {most:.0f} MB (first third "
                     f"{early:.0f} MB)", 0.0 < late <= most)


def _settled(samples: Sequence[Sample], seconds: float, group: str) -> int:
    """The most threads that were seen in the first half: decoders and pools start when they are needed."""
    return max((each[group].threads for at, each in samples if at < seconds / 2), default=0)


def _minutes(samples: Sequence[Sample]) -> str:
    by_minute: dict[int, list[dict[str, Held]]] = {}
    for at, each in samples:
        by_minute.setdefault(int(at // 60), []).append(each)
    rows = [(minute + 1, *(round(statistics.median(getattr(each[group], name) for each in found))
                           for group in ("web", "jobs") for name in ("rss_mb", "own_mb", "threads")))
            for minute, found in by_minute.items()]
    return table(("minute", "web MB", "of these own", "threads", "jobs MB", "of these own", "threads"), rows)



"""Pages of the QA site over HTTP, beside a handler that does nothing in the same process: 10,000 tasks of 20
annotators, and 20,000 tasks of 200.

Each page is asked for once first (then it is rendered), and after that in turns with the empty handler, as it is when
several people look at figures that did not change. What the first rendering takes is told beside it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.store import open_store
from benchmarks.measure import REPEATS, Line, Result, interleaved, median, over_repeats, timed
from benchmarks.web import server
from tests.backend.web.site_documents import NUMBER, Writer

TASKS, ANNOTATORS = 10_000, 20
MANY_TASKS, MANY_ANNOTATORS = 20_000, 200
PAGES = ("overview", "annotators", "annotators/3", "tasks", "tasks?list=divided", "flags", "gaps")
MOST_BYTES = 300_000
MOST_TIMES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the pages of one project took; in the order of `PAGES`."""

    ratios: Sequence[float]  # median page / page that does nothing, of each repeat
    slowest: Sequence[float]  # the same of the slowest page
    noops: Sequence[float]  # milliseconds
    sizes: Mapping[str, int]  # bytes
    first: Mapping[str, float]  # seconds


def run(folder: Path, *, rounds: int) -> Result:
    """Median page, slowest page, largest page, first rendering."""
    few = _measured(folder.with_name(folder.name + "-site"), TASKS, ANNOTATORS, rounds)
    many = _measured(folder.with_name(folder.name + "-site-many"), MANY_TASKS, MANY_ANNOTATORS, rounds)
    size = f"{MANY_ANNOTATORS} annotators x {MANY_TASKS:,} tasks"
    largest = max(few.sizes.values())
    return Result(
        name="site", title="Pages of the QA site",
        note=f"{TASKS:,} tasks x {ANNOTATORS} annotators where nothing else is said, {len(PAGES)} pages, without the "
             "browser's own cache.",
        lines=[
            over_repeats("median page / page that does nothing", few.ratios, "x", most=MOST_TIMES),
            over_repeats(f"the same, {size}", many.ratios, "x", most=MOST_TIMES),
            over_repeats(f"slowest page / page that does nothing, {size}", many.slowest, "x", most=MOST_TIMES),
            over_repeats("page that does nothing, median", few.noops, "ms"),
            Line(what="largest page", measured=largest / 1000, unit="kB", target=f"at most {MOST_BYTES // 1000} kB",
                 hit=largest < MOST_BYTES),
            Line(what="first rendering of a page, median", measured=median(list(few.first.values())) * 1000, unit="ms"),
            Line(what=f"the same, {size}", measured=median(list(many.first.values())) * 1000, unit="ms"),
        ],
        raw={"sizes": dict(few.sizes), "first_s": dict(few.first), "sizes_many": dict(many.sizes),
             "first_many_s": dict(many.first)},
    )


def _measured(place: Path, tasks: int, annotators: int, rounds: int) -> Taken:
    """Write the figures of a project of this size into an empty folder, serve it, and ask."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    store = open_store(f"sqlite:///{place / 'polyvox.sqlite3'}")
    Writer(tasks=tasks, annotators=annotators).write(store, gaps=True)
    store.close()
    addresses = [f"/projects/{NUMBER}/{page}" for page in PAGES]
    ratios, slowest, noops = [], [], []
    with server(place, jobs=False) as running:
        running.ask("GET", "/noop")
        first = [timed(lambda address=address: running.ask("GET", address)) for address in addresses]  # type: ignore[misc]
        sizes = [len(running.ask("GET", address)) for address in addresses]
        calls = {address: (lambda address=address: running.ask("GET", address)) for address in ("/noop", *addresses)}
        for _ in range(REPEATS):
            taken = interleaved(calls, rounds=max(1, rounds // (REPEATS * len(calls))))
            noop = median(taken.pop("/noop"))
            pages = [median(seconds) for seconds in taken.values()]
            noops.append(noop * 1000)
            ratios.append(median(pages) / noop)
            slowest.append(max(pages) / noop)
    return Taken(ratios=ratios, slowest=slowest, noops=noops, sizes=dict(zip(PAGES, sizes, strict=True)),
                 first=dict(zip(PAGES, first, strict=True)))

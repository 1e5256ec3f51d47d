"""Pages of the QA site over HTTP, beside a handler that does nothing in the same process: 10,000 tasks, 20 annotators.

Each page is asked for once first (then it is rendered), and after that in turns with the empty handler, as it is when
several people look at figures that did not change. What the first rendering takes is told beside it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from backend.store import open_store
from benchmarks.measure import REPEATS, Line, Result, interleaved, median, over_repeats, timed
from benchmarks.web import server
from tests.backend.web.site_documents import NUMBER, Writer

TASKS, ANNOTATORS = 10_000, 20
PAGES = ("overview", "annotators", "annotators/3", "tasks", "tasks?list=divided", "flags", "gaps")
MOST_BYTES = 300_000


def run(folder: Path, *, rounds: int) -> Result:
    """Median page, largest page, first rendering."""
    place = folder.with_name(folder.name + "-site")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    store = open_store(f"sqlite:///{place / 'polyvox.sqlite3'}")
    Writer(tasks=TASKS, annotators=ANNOTATORS).write(store, gaps=True)
    store.close()
    addresses = [f"/projects/{NUMBER}/{page}" for page in PAGES]
    with server(place, jobs=False) as running:
        running.ask("GET", "/noop")
        first = [timed(lambda address=address: running.ask("GET", address)) for address in addresses]  # type: ignore[misc]
        sizes = [len(running.ask("GET", address)) for address in addresses]
        calls = {address: (lambda address=address: running.ask("GET", address)) for address in ("/noop", *addresses)}
        ratios, noops = [], []
        for _ in range(REPEATS):
            taken = interleaved(calls, rounds=max(1, rounds // (REPEATS * len(calls))))
            noop = median(taken.pop("/noop"))
            noops.append(noop * 1000)
            ratios.append(median([median(seconds) for seconds in taken.values()]) / noop)
    largest = max(sizes)
    return Result(
        name="site", title="Pages of the QA site",
        note=f"{TASKS:,} tasks x {ANNOTATORS} annotators, {len(PAGES)} pages, without the browser's own cache.",
        lines=[
            over_repeats("median page / page that does nothing", ratios, "x", most=10),
            over_repeats("page that does nothing, median", noops, "ms"),
            Line(what="largest page", measured=largest / 1000, unit="kB", target=f"at most {MOST_BYTES // 1000} kB",
                 hit=largest < MOST_BYTES),
            Line(what="first rendering of a page, median", measured=median(first) * 1000, unit="ms"),
        ],
        raw={"sizes": dict(zip(PAGES, sizes, strict=True)), "first_s": dict(zip(PAGES, first, strict=True))},
    )

"""`requests`: a million mutated requests against a real server, from several clients that keep their connections.

Held: no answer of 500 and none that shows insides or is no sentence, every request answered, the votes of both projects
as Label Studio has them, and at rest no more threads, files or memory than after the warm-up. 503 in a sentence, where
the database is locked, and 501 for a transfer encoding that is none are counted apart.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from werkzeug.wrappers import Response

from backend.commands.progress import progress_bar
from demo.processes import LOOPBACK
from tests.backend.matrix.bench import TRACES, of_refusal, of_results
from tests.backend.web.trained import KEY
from tests.soak import framing
from tests.soak.cases import BYSTANDER, Case, Cases, projects
from tests.soak.ground import Ground, Taken, ground
from tests.soak.report import Judged, Part, table
from tests.soak.wire import Connection, Got

SEED = 20261130
SETTLE_S = 15.0  # at rest, before it is measured what stays
LOOK_S = 5.0
KEPT_FAULTS, KEPT_BYTES = 200, 20_000  # of each client; more are counted
MOST_MB = 64.0  # that may stay, with arenas of threads
MAX_BODY_MB = "2"  # so that bodies over the limit are quick to send


@dataclass(kw_only=True)
class Tally:
    """What one client has seen."""

    done: int = 0  # cases
    asked: int = 0  # requests
    statuses: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)  # by route
    routes: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    faults: int = 0

    def saw(self, case: Case, got: Got) -> None:
        self.asked += 1
        self.statuses["no answer" if not got.status else str(got.status)] += 1
        self.routes[case.route] += 1
        self.seconds[case.route] += got.seconds  # type: ignore[assignment]
        self.slowest[case.route] = max(self.slowest.get(case.route, 0.0), got.seconds)

    def merged(self, other: Tally) -> Tally:
        """Of two clients."""
        slowest = {route: max(self.slowest.get(route, 0.0), other.slowest.get(route, 0.0))
                   for route in self.slowest.keys() | other.slowest.keys()}
        return Tally(done=self.done + other.done, asked=self.asked + other.asked, faults=self.faults + other.faults,
                     statuses=self.statuses + other.statuses, seconds=self.seconds + other.seconds,
                     routes=self.routes + other.routes, slowest=slowest)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a client is told."""

    port: int
    seed: int
    job: str
    flag: str
    folder: Path
    until: float  # on the monotonic clock, which all processes share


def complaints(case: Case, got: Got) -> Iterator[str]:
    """What is wrong with an answer."""
    text = got.body.decode(errors="replace")
    if not got.status:
        if not case.framed or got.body:
            yield f"no answer after {got.seconds:.1f} s"
        return
    if got.status >= 500 and not excused(case, got):
        yield f"answered {got.status}: {text:.300}"
    if got.status >= 400 and any(trace in text for trace in TRACES):
        yield f"shows its insides: {text:.300}"
    answer = Response(got.body, got.status, list(got.headers.items()))
    if got.status >= 400 and case.sent.method != "HEAD" and answer.mimetype != "text/html":
        yield from of_refusal(answer)
    if got.status < 300 and answer.is_json and not case.framed and case.sent.method == "POST":
        yield from of_results(case.sent, answer)


def excused(case: Case, got: Got) -> bool:
    """A locked database, in a sentence; a transfer encoding that nobody has."""
    return (got.status == 503 and b"database" in got.body) or (got.status in (501, 505) and case.framed)


def client(plan: Plan, number: int, numbers: range) -> None:
    """Send the cases of these numbers, as far as there is time; what was seen lies in the folder, a second old."""
    cases, connection = Cases(seed=plan.seed, port=plan.port, job=plan.job, flag=plan.flag), Connection(plan.port)
    tally, told = Tally(), 0.0
    for at in numbers:
        if time.monotonic() > plan.until:
            break
        case = cases.case(at)
        for _ in range(case.times):
            got = framing.send(plan.port, case.raw) if case.framed else connection.ask(
                case.raw, head=case.sent.method == "HEAD")
            tally.saw(case, got)
            if found := list(complaints(case, got)):
                tally.faults += 1
                if tally.faults <= KEPT_FAULTS:
                    _keep(plan.folder / f"faults-{number}.jsonl", case, got, found)
        tally.done += 1
        if time.monotonic() > told + 1.0:
            told = time.monotonic()
            _write(plan.folder / f"tally-{number}.json", tally)
    _write(plan.folder / f"tally-{number}.json", tally)
    connection.close()


def _keep(path: Path, case: Case, got: Got, found: list[str]) -> None:
    row = {"case": case.about(), "number": case.number, "status": got.status, "found": found,
           "request": base64.b64encode(case.raw[:KEPT_BYTES]).decode(),
           "answer": got.body[:2000].decode(errors="replace")}
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


def _write(path: Path, tally: Tally) -> None:
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(vars(tally)))
    aside.rename(path)


def _read(folder: Path) -> Tally:
    whole = Tally()
    for path in folder.glob("tally-*.json"):
        raw = json.loads(path.read_text())
        counted = {name: Counter(raw[name]) for name in ("statuses", "seconds", "routes")}
        whole = whole.merged(Tally(**{**raw, **counted}))
    return whole


def run(
    *, count: int, clients: int, seed: int = SEED, keep: Path | None = None, within_s: float = float("inf"),
) -> Part:
    """A server of its own; `keep` is a folder in which faults and the log stay. What is not sent when the time is over
    is not sent."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with ground(folder, projects(), [KEY, BYSTANDER], POLYVOX_MAX_BODY_MB=MAX_BODY_MB) as on:
            return part(on, count=count, clients=clients, seed=seed, folder=folder, within_s=within_s)


def part(
    on: Ground, *, count: int, clients: int, seed: int, folder: Path, within_s: float = float("inf"),
) -> Part:
    """Send them, and judge."""
    begun = time.monotonic()
    job, flag = on.store.jobs.recent(KEY, limit=1)[0].id, _flag(on.port)
    warm = max(min(count // 10, 20_000), clients)
    samples: list[tuple[int, dict[str, Taken]]] = []
    states = []
    for phase, numbers, share in (("warm", range(warm), 0.25), ("sent", range(warm, count), 1.0)):
        place = folder / phase
        place.mkdir(exist_ok=True)
        plan = Plan(port=on.port, seed=seed, job=job, flag=flag, folder=place, until=begun + share * within_s)
        _send(on, plan, numbers, clients, count, samples)
        restless = on.wait_for_rest([KEY, BYSTANDER])
        time.sleep(min(SETTLE_S, count / 100))
        states.append(on.taken())
    tally = _read(folder / "warm").merged(_read(folder / "sent"))
    return _judge(on, tally, states, samples, restless, count, seed, clients, time.monotonic() - begun, folder)


def _send(
    on: Ground, plan: Plan, numbers: range, clients: int, count: int, samples: list[tuple[int, dict[str, Taken]]],
) -> None:
    """All clients to their end; what the server takes is looked at meanwhile."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=client, args=(plan, at, numbers[at::clients])) for at in range(clients)]
    for process in processes:
        process.start()
    looked = 0.0
    try:
        with progress_bar("requests") as tell:
            while any(process.is_alive() for process in processes):
                time.sleep(0.2)
                assert on.service.running, on.service.log_tail()
                if time.monotonic() > looked + LOOK_S:
                    looked = time.monotonic()
                    done = numbers.start + _read(plan.folder).done
                    samples.append((done, on.taken()))
                    tell(done / count, f"{done:,} of {count:,}")
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        for process in processes:
            process.join()
    assert all(process.exitcode == 0 for process in processes), "a client failed; its traceback is above"


def _flag(port: int) -> str:
    """The id of a flag of the project, where there is one."""
    rows: Any = requests.get(f"http://{LOOPBACK}:{port}/api/projects/1/flags?state=all", timeout=30).json()
    return str(next((row["id"] for row in rows.get("rows", []) if "id" in row), "0" * 16))


def _judge(
    on: Ground, tally: Tally, states: Sequence[dict[str, Taken]], samples: Sequence[tuple[int, dict[str, Taken]]],
    restless: str, count: int, seed: int, clients: int, seconds: float, folder: Path,
) -> Part:
    before, after = states
    unequal = [key for key in (KEY, BYSTANDER) if on.votes(key) != on.label_studio.labels(int(key.split(".")[0]))]
    answered = Counter({status: number for status, number in tally.statuses.items() if status.isdigit()})
    bad = sum(number for status, number in answered.items() if status >= "500" and status not in ("501", "503", "505"))
    more = {group: after[group].own_mb - before[group].own_mb for group in after}
    errors = on.errors()
    judged = [
        Judged.of("requests sent", tally.asked, f"at least {count}", tally.asked >= count),
        Judged.of("answers of 500 or more, but 501 and 503 in a sentence", bad, "0", bad == 0),
        Judged.of("answers with a fault (shows insides, is no sentence, does not come)", tally.faults, "0",
                  not tally.faults),
        Judged.of("errors in the server's log", len(errors), "0", not errors),
        Judged.of("projects whose votes are not those of Label Studio", len(unequal), "0", not unequal),
        Judged.of("at rest afterwards", restless or "yes", "yes", not restless),
        Judged.of("still the same processes", "yes" if on.service.running else "no", "yes", on.service.running),
        *(Judged.of(f"{name} of {group} that stay", f"{getattr(after[group], name) - getattr(before[group], name):+}",
                    "at most 0", getattr(after[group], name) <= getattr(before[group], name))
          for group in after for name in ("threads", "processes")),
        *(Judged.of(f"memory of {group} that stays", f"{more[group]:+.0f} MB", f"under {MOST_MB:g} MB",
                    more[group] < MOST_MB) for group in after),
    ]
    slow = sorted(tally.routes, key=lambda route: -tally.slowest[route])[:10]
    return Part.made_now("requests", judged, seconds=seconds, about=(
        f"{tally.asked:,} requests of {tally.done:,} cases (seed {seed}) from {clients} clients in {seconds / 60:.0f} "
        f"minutes, {tally.asked / max(seconds, 1):.0f} a second, {len(tally.routes)} routes; limit of bodies "
        f"{MAX_BODY_MB} MB; faults are sent again by `python -m tests.soak replay NUMBER --seed {seed}`."),
        tables=[
            table(("status", "answers"), sorted(tally.statuses.items())),
            table(("slowest routes", "requests", "mean ms", "slowest ms"), [
                (route, tally.routes[route], round(1000 * tally.seconds[route] / tally.routes[route]),
                 round(1000 * tally.slowest[route])) for route in slow]),
            _memory(samples, before, after),
            *([table(("log",), [(line,) for line in errors[:20]])] if errors else []),
            *_faults(folder),
        ])


def _memory(samples: Sequence[tuple[int, dict[str, Taken]]], before: dict[str, Taken], after: dict[str, Taken]) -> str:
    chosen = [samples[round(at * (len(samples) - 1) / 10)] for at in range(11)] if samples else []
    rows = [(f"{done:,}", *_row(each)) for done, each in dict(chosen).items()]
    rows += [("at rest after the warm-up", *_row(before)), ("at rest at the end", *_row(after))]
    return table(("requests", "web MB", "of these own", "threads", "files", "jobs MB", "of these own", "threads"), rows)


def _row(each: dict[str, Taken]) -> tuple[Any, ...]:
    web, jobs = each["web"], each["jobs"]
    return (round(web.rss_mb), round(web.own_mb), web.threads, web.files, round(jobs.rss_mb), round(jobs.own_mb),
            jobs.threads)


def _faults(folder: Path) -> list[str]:
    files = sorted(folder.glob("*/faults-*.jsonl"))
    rows = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    if not rows:
        return []
    return [table(("case", "status", "what is wrong"),
                  [(row["case"], row["status"], "; ".join(row["found"])[:200]) for row in rows[:40]])]


def replay(numbers: Sequence[int], seed: int) -> None:
    """Send cases again to a server of their own and print the answers."""
    with tempfile.TemporaryDirectory() as scratch, ground(
            Path(scratch), projects(), [KEY, BYSTANDER], POLYVOX_MAX_BODY_MB=MAX_BODY_MB) as on:
        job = on.store.jobs.recent(KEY, limit=1)[0].id
        cases, connection = Cases(seed=seed, port=on.port, job=job, flag=_flag(on.port)), Connection(on.port)
        for number in numbers:
            case = cases.case(number)
            got = framing.send(on.port, case.raw) if case.framed else connection.ask(case.raw)
            print(f"{case.about()}\n{case.raw[:1000]!r}\n-> {got.status} {got.body[:1000]!r}")
            print("\n".join(complaints(case, got)) or "nothing is wrong")
        print("\n".join(on.errors()))

"""Who is named for a fault: projects without faults, planted faults, and real sets, beside the rule before.

    python -m benchmarks.faults [--projects 200] [--grown 60] [--data FOLDER] [--before FILE] [--jobs 16]

Projects without faults hold people who label sensibly each in their own way (see `benchmarks.faults_crowds`): the share
that names anybody, once and, for projects that grow and are looked at `LOOKS` times, at any look. With planted faults:
recall and precision by kind. Real sets of --data: every finding, with its figures. --before is the file of an older
`model/quality/faults.py`, whose findings on the very same votes stand beside.

Thresholds were set while looking at seeds below 10,000; those that are measured begin at 40,000, 10,000 and 20,000.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv

from benchmarks.faults_crowds import FAULTY, NAMED, Crowd, draw, faulty, sensible
from benchmarks.faults_real import REAL, real
from benchmarks.measure import machine
from model.quality.faults import Fault, FaultFinder, Findings, Witness

LOOKS = 15
Row = dict[str, Any]


def find(crowd: Crowd, *, watched: bool = False) -> Findings:
    """What the present rule says."""
    return FaultFinder(watched=watched).find(crowd.answers, Witness(gain=crowd.gain()))


def before(path: str, crowd: Crowd) -> list[str] | None:
    """What the older rule said of everybody; None without it."""
    if not path:
        return None
    spec = importlib.util.spec_from_file_location("faults_before", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["faults_before"] = module
    spec.loader.exec_module(module)
    return [each.value for each in module.FaultFinder().find(crowd.answers).fault]


def without_faults(seed: int, path: str = "") -> Row:
    """One project in which nothing is wrong, looked at once."""
    rng = np.random.default_rng([seed, 1])
    crowd = draw(sensible(rng), rng)
    found = find(crowd)
    older = before(path, crowd)
    return {
        "kind": crowd.kind, "people": len(crowd.roles), "content": crowd.features is not None,
        "named": [[role, fault.value] for role, fault in zip(crowd.roles, found.fault, strict=True)
                  if fault is not Fault.NONE],
        "before": None if older is None else [[role, fault] for role, fault in zip(crowd.roles, older, strict=True)
                                              if fault != "none"],
        "roles": Counter(crowd.roles), "judged": int(found.grounds.enough.sum()),
        "described": Counter(
            role for role, habits, quiet in zip(crowd.roles, found.habits, found.unrelated, strict=True)
            if habits or quiet
        ),
    }


def grown(seed: int) -> Row:
    """One such project, looked at again and again: who is named at any look, at the level of a live project."""
    rng = np.random.default_rng([seed, 1])
    crowd = draw(sensible(rng), rng)
    named = set()
    for share in np.linspace(0.05, 1.0, LOOKS):
        part = crowd.until(float(share))
        named |= {(role, fault.value) for role, fault in zip(part.roles, find(part, watched=True).fault, strict=True)
                  if fault is not Fault.NONE}
    return {"kind": crowd.kind, "named": sorted(named)}


def planted(seed: int, path: str = "") -> Row:
    """One project with a fault of each kind, as a file and as a live project: [role, named, named live, before]."""
    rng = np.random.default_rng([seed, 1])
    crowd = draw(faulty(rng), rng)
    once, live = find(crowd), find(crowd, watched=True)
    older = before(path, crowd) or [""] * len(crowd.roles)
    return {"classes": len(crowd.answers.classes), "people": [
        [role, one.value, often.value, old]
        for role, one, often, old in zip(crowd.roles, once.fault, live.fault, older, strict=True)
    ]}  # fmt: skip


def interval(hits: int, n: int) -> str:
    """"3 of 200: 1.5 % (0.3 to 4.3)", by Clopper and Pearson."""
    low = betaincinv(hits, n - hits + 1, 0.025) if hits else 0.0
    high = betaincinv(hits + 1, n - hits, 0.975) if hits < n else 1.0
    return f"{hits} of {n}: {100 * hits / max(n, 1):.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def report(found: Mapping[str, Any]) -> str:
    """Markdown with everything that was measured."""
    null, growing = found["without"], found["grown"]
    some = [row for row in null if row["named"]]
    old = [row for row in null if row["before"] is not None]
    lines = [
        "# Who is named for a fault", "",
        f"`python -m benchmarks.faults {found['command']}`, {found['machine']['made'][:16].replace('T', ' ')} UTC. "
        "95 % intervals by Clopper and Pearson.", "", "## Projects without faults: share that names anybody", "",
        "Target: at most 5 %. A mix of ordinary, careless, lenient, severe, shifted and rule-following people and "
        "newcomers whose tasks nobody else has; 1 or 5 to 40 people, 2 to 5 classes, 6 to 400 votes each, 2 to 6 votes "
        "a task; a model's predictions in 60 % of them.", "", "| | |", "|---|---|",
        f"| now, looked at once | {interval(len(some), len(null))} |",
        f"| now, looked at {LOOKS} times as it grows | "
        f"{interval(sum(bool(row['named']) for row in growing), len(growing))} |",
        f"| the rule before, looked at once | "
        f"{interval(sum(bool(row['before']) for row in old), len(old)) if old else 'not measured'} |", "",
        "Named: " + (_counted(pair for row in (*null, *growing) for pair in row["named"]) or "nobody") + ".", "",
        "| who | people | described (a habit, or unrelated to the others) | named before |", "|---|---|---|---|",
    ]
    roles, described = Counter[str](), Counter[str]()
    for row in null:
        roles.update(row["roles"])
        described.update(row["described"])
    earlier = Counter(role for row in old for role, _ in row["before"])
    lines += [f"| {role} | {n} | {described[role]} | {earlier[role] if old else ''} |"
              for role, n in sorted(roles.items())]
    return "\n".join([*lines, "", *_planted(found["planted"], bool(old)), "", *real_lines(found["real"]), ""])


def _counted(pairs: Any) -> str:
    return ", ".join(f"{n} x {role} as {fault}" for (role, fault), n in Counter(map(tuple, pairs)).most_common())


def _planted(rows: Sequence[Row], older: bool) -> list[str]:
    people = [each for row in rows for each in row["people"]]
    lines = [
        "## Planted faults", "",
        f"{len(rows)} projects of 12 to 20 sensible people and one of each fault; 200 to 400 votes each, 3 to 6 votes "
        "a task, 2 to 5 classes, with content. Constant: 97 % one class; inverter: first and last class swapped in "
        "90 %; drifter: random from 35 to 65 % on. Recall: named for a fault (in brackets: for the very one). "
        "Precision: of those named, those with a fault.", "",
        "| planted | once | live | before |", "|---|---|---|---|",
    ]
    for role in FAULTY:
        mine = [each for each in people if each[0] == role]
        cells = []
        for column in (1, 2, 3):
            if column == 3 and not older:
                cells.append("")
                continue
            right = sum(each[column] == NAMED[role] for each in mine)
            cells.append(f"{interval(sum(each[column] not in ('', 'none') for each in mine), len(mine))} [{right}]")
        lines.append(f"| {role} | {' | '.join(cells)} |")
    recall, precision = [], []
    for column in (1, 2, 3) if older else (1, 2):
        hit = [each[column] not in ("", "none") for each in people if each[0] in NAMED]
        right = [each[0] in NAMED for each in people if each[column] not in ("", "none")]
        recall.append(interval(sum(hit), len(hit)))
        precision.append(interval(sum(right), len(right)))
    return [*lines, f"| recall of all | {' | '.join(recall)} |", f"| precision | {' | '.join(precision)} |"]


def real_lines(found: Mapping[str, Any]) -> list[str]:
    """Every finding of the real sets, gained and lost."""
    lines = ["## Real sets", "", "Votes alone, as `identify` has them. Lost are findings of the rule before.", "",
             "| set | annotators with grounds | described | named | by chance | before | evidence |",
             "|---|---|---|---|---|---|---|"]
    for name, item in found.items():
        lines.append(f"| {name} | {item['enough']} of {item['people']} | {item['described']} | {item['named']} | | "
                     f"{item['before_named']} | {item['unrelated']} unrelated |")
        lines += [f"| | | | {row['annotator']}: {row['fault']} | {row['false_alarm']} | {row['before']} | "
                  f"{row['evidence']} |" for row in item["rows"]]
    return lines if found else ["## Real sets", "", "Not measured: no --data."]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=200)
    parser.add_argument("--grown", type=int, default=60, help="projects that are looked at as they grow")
    parser.add_argument("--data", type=Path, help="folder of the real sets")
    parser.add_argument("--before", default="", help="an older model/quality/faults.py")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args(arguments)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    where = machine()
    with get_context("spawn").Pool(options.jobs) as pool:
        found = {
            "without": pool.map(partial(without_faults, path=options.before), range(40_000, 40_000 + options.projects),
                                chunksize=1),
            "grown": pool.map(grown, range(10_000, 10_000 + options.grown), chunksize=1),
            "planted": pool.map(partial(planted, path=options.before), range(20_000, 20_000 + options.projects // 2),
                                chunksize=1),
        }
    sets = REAL if options.data else ()
    older = None if not options.before else partial(before, options.before)
    found["real"] = {name: real(options.data / name, older) for name in sets}
    found |= {"machine": where, "command": f"--projects {options.projects} --grown {options.grown}"
              + (" --data FOLDER" if options.data else "") + (" --before FILE" if options.before else "")}
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "faults.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    (options.out / "faults.md").write_text(report(found), encoding="utf-8")
    print(report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`faults` and `chaos`: the tests that the table of findings names, and rounds in which parts are killed. `images`: the
built container images.

Each runs in processes of its own, as by hand; what they say is read.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.neighbours import table as findings
from tests.soak.report import ROOT, Judged, Part

IMAGES = "POLYVOX_IMAGES"  # the folder of scripts/build_images.sh


def run_findings(only: Sequence[str] = ()) -> Part:
    """The tests of all findings, or of those with these ids."""
    begun = time.monotonic()
    chosen = [each for each in findings.read() if not only or each.id in only]
    names = sorted({name for finding in chosen for name in finding.tests})
    results = pytest_results(names)
    rows = []
    for each in chosen:
        mine = Counter[str]()
        for name in each.tests:
            mine += results.get(name, Counter({"did not run": 1}))
        rows.append((each.id, each.does, ", ".join(f"{count} {what}" for what, count in sorted(mine.items())),
                     set(mine) == {"passed"}))
    judged = [Judged.of(f"{name}: {does}", said, "all passed", held) for name, does, said, held in rows]
    return Part.made_now("faults", judged, seconds=time.monotonic() - begun, tables=[], about=(
        f"The {len(names)} tests that the table of findings in docs/reliability.md names."))


def pytest_results(names: Sequence[str], *options: str) -> dict[str, Counter[str]]:
    """Test -> how often it passed, failed or was left out (once for each set of its arguments)."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", f"--junitxml={report}"]
        subprocess.run([*command, *options, *names], cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"},
                       stdout=sys.stderr)
        cases = list(ET.parse(report).getroot().iter("testcase")) if report.exists() else []
    found: dict[str, Counter[str]] = {}
    for case in cases:
        path = case.get("classname", "").replace(".", "/") + ".py"
        name = f"{path}::{case.get('name', '').partition('[')[0]}"
        bad = {child.tag for child in case} & {"failure", "error", "skipped"}
        what = "failed" if bad & {"failure", "error"} else "left out" if bad else "passed"
        found.setdefault(name, Counter())[what] += 1
    return found


def run_chaos(*, rounds: int, seed: int = 3) -> Part:
    """`python -m tests.chaos`, whose report is taken over."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "chaos.md"
        command = [sys.executable, "-m", "tests.chaos", "--rounds", str(rounds), "--seed", str(seed)]
        done = subprocess.run([*command, "--out", str(out)], cwd=ROOT, stdout=sys.stderr)
        text = out.read_text(encoding="utf-8") if out.exists() else ""
    lines = re.findall(r"^\|.*\|$", text, re.MULTILINE)
    summed = re.search(r"(\d+) of (\d+) rounds held", text)
    said = summed[0] if summed else f"no report (exit code {done.returncode})"
    held = summed is not None and summed[1] == summed[2] == str(rounds)
    return Part.made_now("chaos", [Judged.of("rounds that came right", said, f"{rounds} of {rounds}", held)],
                         seconds=time.monotonic() - begun, tables=["\n".join(lines)] if lines else [],
                         about=f"{rounds} rounds of kills at seeded moments (`make chaos`).")


def run_images() -> Part:
    """The built images, where POLYVOX_IMAGES names their folder."""
    begun = time.monotonic()
    if not os.environ.get(IMAGES):
        judged = [Judged.of("images", f"not run: {IMAGES} names no folder of scripts/build_images.sh", "run", False)]
        return Part.made_now("images", judged, seconds=0.0, tables=[], about="Container images.")
    results = pytest_results(["tests/e2e/test_images.py"], "-m", "images")
    judged = [Judged.of(name.partition("::")[2].removeprefix("test_").replace("_", " "),
                        ", ".join(f"{count} {what}" for what, count in counts.items()), "passed",
                        set(counts) == {"passed"}) for name, counts in results.items()]
    return Part.made_now("images", judged, seconds=time.monotonic() - begun, tables=[], about=(
        "The three images of scripts/build_images.sh, run on a read-only root as user 10001."))



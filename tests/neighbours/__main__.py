"""Write the table of findings into a document, or check that it is there.

    python -m tests.neighbours --write docs/reliability.md
    python -m tests.neighbours --check docs/reliability.md
    python -m tests.neighbours --run            the tests that the table names
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tests.neighbours import table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE")
    what.add_argument("--check", type=Path, metavar="FILE")
    what.add_argument("--run", action="store_true")
    options = parser.parse_args()
    findings = table.read()
    if options.run:
        names = sorted({name for finding in findings for name in finding.tests})
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-n0", *names], cwd=table.ROOT).returncode
    wrong = table.mistakes(findings)
    path = options.write or options.check
    old = path.read_text(encoding="utf-8")
    new = table.renewed(old, findings)
    if options.write and not wrong:
        path.write_text(new, encoding="utf-8")
    elif old != new:
        wrong.append(f"{path} is stale: run `python -m tests.neighbours --write {path}`.")
    print("\n".join(wrong) or f"{len(findings)} findings, {path}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

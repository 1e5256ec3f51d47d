"""The page of `benchmarks.crowd_quality`: tables of accuracies, the best of each set, and the audit of real crowds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.crowd_audit import lines
from benchmarks.crowd_report import table

CROWDLAB = "crowdlab (a simulated classifier helps)"
Found = Mapping[str, Sequence[float] | str]
SHORT = {
    "independent": "independent", "imbalance_nofb": "imbalance", "imbalance": "imbalance, 10 votes",
    "student_teacher": "student-teacher", "discrete_difficulty": "difficulty", "hammer_spammer": "hammer-spammer",
    "bluebirds_labels": "bluebirds", "product_match": "product_match",
}
# The best that peers were known to reach (peerannot, crowd-kit); on the two real sets Dawid-Skene's.
BAR = {"independent": 0.890, "imbalance_nofb": 0.895, "imbalance": 0.667, "student_teacher": 0.815,
       "discrete_difficulty": 0.865, "hammer_spammer": 1.0, "bluebirds_labels": 0.898, "product_match": 0.939}


def page(found: Mapping[str, Any]) -> str:
    """The parts that were measured so far."""
    made = ", ".join(f"{part} {each['machine']['made'][:16].replace('T', ' ')}" for part, each in found.items())
    got = {part: each["found"] for part, each in found.items()}
    ours, peers = got.get("ours", {}), {**got.get("peers", {}), **got.get("slow-peers", {})}
    parts = [
        "# Accuracy of the aggregators beside their peers",
        f"Made by `python -m benchmarks.crowd_quality` (UTC: {made}). Share of tasks whose label is the true one; "
        "tasks without a label count as wrong (two-third and plantnet abstain). ± is the standard deviation over "
        "seeds: 20 for our methods that draw (mace, dswc; 5 on product_match), for the classifier that CROWDLAB gets, "
        "and for peerannot's majority vote, 5 for its IWMV and Wawa; crowd-kit's MACE has its default seed. An error's "
        "name stands where a peer ended with it, OutOfTimeError after a minute of the processor; a dash where a method "
        "does not suit the set or was not tried.",
        "## Six simulated settings and two real sets", grid({**ours, **peers}, list(SHORT)),
        "### Best of each set", _best({k: v for k, v in ours.items() if k != CROWDLAB}, peers),
        "The best method is picked with the truth at hand, so this says that a method is there, not that one would "
        "pick it. CROWDLAB is left out: it sees a classifier. Some defaults, the smoothing and trust of Dawid-Skene "
        "and of dswc among them, were chosen with these eight sets in view; the nearly unsmoothed row shows what they "
        "bring here.",
    ]
    missing = [part for part in ("fresh", "peers", "slow-peers") if part not in got]
    if missing:
        parts.append(f"Not measured yet: {', '.join(missing)}.")
    if "fresh" in got:
        parts += [
            "## Twenty fresh crowds of each setting",
            "Drawn by `model.crowd.simulate` with the options of the six sets; mean over crowds ± standard error.",
            grid({**got["fresh"], **got.get("fresh-peers", {})}, list(SHORT)[:6], error=True),
        ]
    return "\n\n".join(parts + (_audit(got["audit"]) if "audit" in got else [])) + "\n"


def _audit(found: Mapping[str, Any]) -> list[str]:
    return [
        "## What the audit finds on real crowds",
        "Gold labels and the guideline of each annotator are the yardsticks; the audit does not see them. The bars of "
        "the yardsticks were set after a first look at these sets, so the tables list everybody near them as well.",
        table(lines(found)),
        "bluebirds, annotators called inverted or below chance against gold by two standard errors:",
        _rows(found["bluebirds_labels"]["rows"]),
        "product_match, annotators called constant or constant by gold:",
        _rows(found["product_match"]["rows"]),
    ]


def grid(rows: Mapping[str, Found], sets: Sequence[str], *, error: bool = False) -> str:
    out = ["| | " + " | ".join(SHORT[name] for name in sets) + " |", "|---" * (len(sets) + 1) + "|"]
    out += [f"| {label} | " + " | ".join(_cell(row.get(name), error) for name in sets) + " |"
            for label, row in rows.items()]
    return "\n".join(out)


def _cell(values: Sequence[float] | str | None, error: bool) -> str:
    if isinstance(values, str):
        return values
    if not values:
        return "–"
    spread = float(np.std(values)) / (np.sqrt(len(values)) if error else 1.0)
    return f"{np.mean(values):.3f}" + (f" ± {spread:.3f}" if len(values) > 1 else "")


def _top(rows: Mapping[str, Found], name: str) -> tuple[float, str]:
    """The highest mean and who has it; methods that failed have none."""
    values = [(row.get(name), label) for label, row in rows.items()]
    means = [(float(np.mean(each)), label) for each, label in values if each and not isinstance(each, str)]
    return max(means, default=(float("nan"), ""))


def _best(ours: Mapping[str, Found], peers: Mapping[str, Found]) -> str:
    out = ["| set | ours | peers, in this run | bar | |", "|---|---|---|---|---|"]
    for name, short in SHORT.items():
        mine, other = _top(ours, name), _top(peers, name)
        said = f"{other[0]:.3f} {other[1]}" if other[1] else "–"
        verdict = "hit" if round(mine[0], 3) >= BAR[name] else "**miss**"
        out.append(f"| {short} | {mine[0]:.3f} {mine[1]} | {said} | {BAR[name]:.3f} | {verdict} |")
    return "\n".join(out)


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as they are, a column a key."""
    if not rows:
        return "None."
    out = ["| " + " | ".join(key.replace("_", " ") for key in rows[0]) + " |", "|---" * len(rows[0]) + "|"]
    out += ["| " + " | ".join(" / ".join(map(str, cell)) if isinstance(cell, list) else str(cell)
                              for cell in row.values()) + " |" for row in rows]
    return "\n".join(out)

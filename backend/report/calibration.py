"""Whether the confidence of the consensus is true, in sentences."""

from __future__ import annotations

from backend.report.words import count, decimal, percent
from backend.services.statistics.documents import Calibration, CalibrationBin

FEW = 30  # tasks below which nothing is said of how far the confidence is true


def calibration(found: Calibration | None) -> str:
    """One sentence: what the check found where most tasks are, or that there are too few to check."""
    if found is None or found.tasks < FEW:
        tasks = count(found.tasks if found else 0, "task")
        return (f"Too few to check: whether this confidence is true shows on tasks with four votes or more, and "
                f"{tasks} could be used of the {FEW} that it takes.")
    most = max(found.bins, key=lambda each: each.tasks)
    return (f"{of_bin(most)} This was checked on {count(found.tasks, 'task')} with {found.votes} votes or more by "
            "hiding some of the votes: the panel’s majority is that of all votes, the label and its confidence come "
            f"from those that were left. On average, stated and true lie "
            f"{decimal((found.gap or 0.0) * 100, 1)} points apart.")


def of_bin(each: CalibrationBin) -> str:
    """One step of confidence."""
    return (f"Of labels stated at {percent(each.low)} to {percent(each.high)}, {percent(each.right.value)} were the "
            f"panel’s majority ({count(each.tasks, 'task')}).")

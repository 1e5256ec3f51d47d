"""The control arm: (task, annotator) pairs from which pre-annotations are withheld, so that votes can score the model.

A pure function of its arguments, for ever: changing it would move pairs between the arms. The same lines stand in
`labelstudio/control_arm.py`, which may import nothing from here; a test holds the two together.
"""

from __future__ import annotations

import hashlib


def in_control_arm(project_id: int, task_id: int, annotator: str, percent: float) -> bool:
    """Whether this annotator sees no pre-annotation on this task; true for `percent` in 100 pairs (0 to 100)."""
    digest = hashlib.sha256(f"{project_id}:{task_id}:{annotator}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 10_000 < round(percent * 100)


def task_in_control_arm(project_id: int, task_id: int, percent: float) -> bool:
    """Whether nobody sees a pre-annotation on this task: the arm where Label Studio cannot tell annotators apart."""
    return in_control_arm(project_id, task_id, "", percent)

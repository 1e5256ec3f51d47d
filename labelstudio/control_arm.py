"""The control arm: which (task, annotator) pairs never see a pre-annotation, so that the model can be scored honestly.

    in_control_arm = first 8 bytes of sha256("<project id>:<task id>:<annotator>") mod 10000 < round(percent * 100)

A pure function, so that nothing has to be stored or agreed on at run time. `backend/labeling/control_arm.py` has the
same lines (this package must not import it); a test holds the two together.
"""

from __future__ import annotations

import hashlib


def in_control_arm(project_id: int, task_id: int, annotator: str, percent: float) -> bool:
    """Whether pre-annotations are withheld from `annotator` (Label Studio's user id) on this task.

    `percent` is the size of the arm, 0 to 100 (0 switches it off), with a resolution of 0.01. The arm of a smaller
    percentage is part of the arm of a larger one.
    """
    digest = hashlib.sha256(f"{project_id}:{task_id}:{annotator}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 10_000 < round(percent * 100)

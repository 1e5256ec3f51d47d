"""The names under which predictions lie in Label Studio: `consensus@r12`, and `annotator:7@r12` for somebody's own.

Label Studio calls this name `model_version`. Any account can store predictions under any name, so what is read back is
parsed by one bounded grammar; everything else belongs to another tool. `labelstudio.choice` has the same grammar in
Label Studio's own process, which imports nothing of ours; a test holds the two together.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"(consensus|annotator:([^\x00-\x1f]{1,200}))@r([0-9]{1,9})")


class PredictionName(NamedTuple):
    """A name that was read."""

    annotator: str | None  # None: the consensus
    number: int  # of the version


def consensus_version(name: str | None) -> str:
    """Label Studio's model_version of the consensus of a version ("r12"); "consensus@r0" before the first."""
    return f"consensus@{name or 'r0'}"


def own_version(annotator: str, name: str) -> str:
    """Label Studio's model_version of one annotator's own predictions."""
    return f"annotator:{annotator}@{name}"


def parse(version: object) -> PredictionName | None:
    """PredictionName("7", 12) for "annotator:7@r12"; None for whatever is none of ours."""
    match = _NAME.fullmatch(version) if isinstance(version, str) else None
    return PredictionName(match[2], int(match[3])) if match else None

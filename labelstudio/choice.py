"""Which predictions of a task one annotator gets to see. Pure: no Django, no requests.

Version names (written by the Polyvox server): `annotator:<id>@r<number>` for an annotator's own predicted label,
`consensus@r<number>` for the consensus; numbers have nine digits at most. Every other name belongs to another tool (any
account can store predictions under any name). `backend.prediction_names` has the same grammar.

Rules, the first that applies:
1. Polyvox has something for this annotator (an own prediction, else a consensus), but it is withheld -> nothing at all.
2. Polyvox has something -> exactly that prediction: the newest own one, else the newest consensus.
3. Polyvox has nothing for this annotator -> Label Studio's own list without other annotators' predicted labels, so
   predictions of other tools stay visible there and only there.

Exactly one prediction, because Label Studio's front-end preselects the first in the stream, but in the quick view the
one named like the project's selected version (the consensus) and only else the last of the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

CONSENSUS = "consensus"
ANNOTATOR_PREFIX = "annotator:"
_VERSION = re.compile(r"(consensus|annotator:[^\x00-\x1f]{1,200})@r([0-9]{1,9})")


class Candidate(NamedTuple):
    """A stored prediction, as far as the choice needs it."""

    id: int
    version: str  # model_version; "" where Label Studio has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to serve: ids of predictions, in order, and why (for the Server-Timing header)."""

    ids: tuple[int, ...]
    reason: str  # "own" | "consensus" | "withheld" | "none"


def parse_version(version: str) -> tuple[str, int] | None:
    """("annotator:7", 12) for "annotator:7@r12"; None for a version that is not Polyvox's."""
    match = _VERSION.fullmatch(version)
    return (match[1], int(match[2])) if match else None


def own_name(annotator: str) -> str:
    """The part of an own prediction's version that stands before "@"."""
    return ANNOTATOR_PREFIX + annotator


def newest(candidates: Iterable[Candidate], name: str) -> Candidate | None:
    """The candidate called `name` with the highest version number, then the highest id; names are compared whole."""
    best: tuple[int, int] | None = None
    chosen = None
    for candidate in candidates:
        parsed = parse_version(candidate.version)
        if parsed is not None and parsed[0] == name and (best is None or (parsed[1], candidate.id) > best):
            best = (parsed[1], candidate.id)
            chosen = candidate
    return chosen


def decide(
    served: Sequence[Candidate], stored: Sequence[Candidate], annotator: str, *, withheld: bool, all_tabs: bool = False
) -> Decision:
    """What `annotator` sees of a task.

    `served` is Label Studio's own answer, in its order; `stored` holds at least the annotator's own predictions and
    the consensus ones of the task (they may be missing in `served`: the label stream selects one version). `all_tabs`
    keeps the newest prediction of every other annotator and those of other tools, where Label Studio served them.
    """
    mine = newest(stored, own_name(annotator))
    chosen = mine or newest(stored, CONSENSUS)
    if chosen is None:
        others = [candidate.id for candidate in served if all_tabs or not _is_own_of_someone(candidate)]
        return Decision(ids=tuple(others), reason="none")
    if withheld:
        return Decision(ids=(), reason="withheld")
    # The chosen one stands last: that is the one which the quick view preselects. No consensus may stand beside an own
    # prediction, since the front-end would prefer it whenever its version is the selected one.
    tabs = _tabs(served, chosen) if all_tabs else []
    return Decision(ids=(*tabs, chosen.id), reason="own" if mine else CONSENSUS)


def _tabs(served: Sequence[Candidate], chosen: Candidate) -> list[int]:
    """Ids of the predictions to keep beside the chosen one: newest of each other annotator, and other tools'."""
    names = {parsed[0] for candidate in served if (parsed := parse_version(candidate.version))}
    chosen_name = (parse_version(chosen.version) or ("", 0))[0]
    kept = {best.id for name in names - {CONSENSUS, chosen_name} if (best := newest(served, name))}
    kept |= {candidate.id for candidate in served if parse_version(candidate.version) is None}
    return [candidate.id for candidate in served if candidate.id in kept]


def _is_own_of_someone(candidate: Candidate) -> bool:
    """An annotator's predicted label; never true of a consensus or of another tool's prediction."""
    parsed = parse_version(candidate.version)
    return parsed is not None and parsed[0] != CONSENSUS

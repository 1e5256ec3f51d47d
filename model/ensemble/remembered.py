"""Further questions of the gate: is a candidate worse than the best of the last published, or for a single annotator?

*The best of the last*: each version leaves its answers to held-out votes (`model.quality.evidence`), and a candidate is
compared with each of the last `LAST` published ones on the votes that both answered. Held against it is the one that
it falls furthest behind, with an interval that allows for having looked at so many. So a run of versions that each lose
what counts as no difference comes to its end.

*A single annotator*: of everybody with enough held-out votes the loss against the published version, with an interval
that allows for having asked so many people. Somebody is worse off when all of it lies beyond a limit.

Shape legend: n votes, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.data.dataset import Dataset
from model.data.metrics import Interval, paired_interval
from model.data.spaces import ValueKind
from model.ensemble.scoring import Scored, renormalised
from model.quality.evidence import Evidence

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
LAST = 10  # published versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The earlier version that a candidate falls furthest behind, or leads by least."""

    version: str
    interval: Interval  # nats a vote; above 0 the candidate is worse
    votes: int
    among: int  # versions that could be compared


def best_of(
    heldout: Mapping[str, Scored], earlier: Sequence[tuple[str, Evidence]], dataset: Dataset, tasks: Codes,
    config: LadderConfig,
) -> Best | None:
    """Of earlier versions by name; None where none of them answered enough of the same votes. `tasks` (U,)."""
    compared = []
    for version, evidence in earlier[:LAST]:
        difference, task = _against(heldout, evidence, dataset, tasks)
        if len(difference) >= config.min_heldout_votes and len(np.unique(task)) >= config.min_heldout_tasks:
            compared.append((float(difference.mean()), version, difference, task))
    if not compared:
        return None
    _, version, difference, task = max(compared, key=lambda each: each[0])
    level = 1.0 - (1.0 - config.gate_level) / len(compared)
    return Best(version=version, interval=paired_interval(difference, task, level=level), votes=len(difference),
                among=len(compared))


def _against(
    heldout: Mapping[str, Scored], evidence: Evidence, dataset: Dataset, tasks: Codes
) -> tuple[Floats, Codes]:
    """Loss of the candidate minus that of an earlier version on the votes that both answered, and their tasks."""
    units = {unit: at for at, unit in enumerate(dataset.units)}
    people = {name: at for at, name in enumerate(dataset.annotators)}
    parts: list[tuple[Floats, Codes]] = []
    for name in sorted(heldout.keys() & evidence.controls.keys()):
        item, scored = evidence.controls[name], heldout[name]
        targets = scored.targets
        new = [at for at, label in enumerate(targets.space.classes) if label in item.classes]
        if not new or not len(targets) or not len(item.unit):
            continue
        place = item.align(units, people, evidence)
        key = np.where((place >= 0).all(1), place[:, 0] * (len(people) + 1) + place[:, 1], -1)
        order = np.argsort(key, kind="stable")
        wanted = targets.unit * (len(people) + 1) + targets.annotator
        at = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
        here = key[at] == wanted
        if targets.space.kind is ValueKind.CLASS:
            here &= targets.y[:, new].sum(-1) > 0.0
        p = np.zeros(targets.y.shape)
        common = np.asarray(item.served[at][:, [item.classes.index(targets.space.classes[k]) for k in new]], np.float64)
        p[:, new] = renormalised(common) if targets.space.kind is ValueKind.CLASS else common
        here &= np.isfinite(p).all(-1)
        old = Scored(targets=targets, p={"served": p}).select(here)
        parts.append((scored.select(here).losses_among("served", new) - old.losses_among("served", new),
                      tasks[targets.unit[here]]))
    if not parts:
        return np.empty(0), np.empty(0, np.int64)
    return np.concatenate([each[0] for each in parts]), np.concatenate([each[1] for each in parts])


def worse_for(
    difference: Floats, task: Codes, annotator: Codes, names: Sequence[str], config: LadderConfig
) -> dict[str, Interval]:
    """Annotator -> interval of their loss (n,), of those whose whole interval is beyond the limit."""
    count = np.bincount(annotator, minlength=len(names))[: len(names)]
    asked = [at for at in np.flatnonzero(count >= config.person_votes).tolist()
             if len(np.unique(task[annotator == at])) >= config.person_votes // 2]
    level = 1.0 - (1.0 - config.gate_level) / max(len(asked), 1)
    found = {}
    for at in asked:
        mine = annotator == at
        interval = paired_interval(difference[mine], task[mine], level=level)
        if interval.low > config.person_margin:
            found[names[at]] = interval
    return found

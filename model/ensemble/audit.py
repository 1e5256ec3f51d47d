"""What a fit leaves for the audit of votes (`model.quality.evidence`), from its out-of-sample predictions."""

from __future__ import annotations

import numpy as np

from model.data.scores import to_probabilities, to_scores
from model.ensemble.fitting import Fit
from model.ensemble.scoring import Scored
from model.quality.duplicates import near_duplicates
from model.quality.evidence import ControlEvidence, Evidence
from model.quality.query_map import query_map


def audit_evidence(fit: Fit) -> Evidence:
    """Served and prior probabilities of all votes that have some, near-duplicates among the units, and the map."""
    people = len(fit.ladder.annotators)
    pairs, likeness = near_duplicates(fit.features)
    queries = fit.ladder.committee.network.queries().cpu().numpy()[:, 0, :people]  # (M, A, d)
    position, explained = query_map(queries)
    return Evidence(
        units=fit.units, annotators=fit.ladder.annotators,
        controls={name: _control(item, fit.heldout[name], people) for name, item in fit.out_of_sample.items()},
        near_duplicates=pairs.astype(np.int32), likeness=likeness, position=position, explained=explained,
    )


def _control(training: Scored, heldout: Scored, people: int) -> ControlEvidence:
    """Training votes and held-out votes of one control; votes of somebody anonymous have no model of their own."""
    parts = [item.select(item.targets.annotator < people) for item in (training, heldout)]
    space = training.targets.space
    return ControlEvidence(
        classes=tuple(space.classes),
        unit=np.concatenate([part.targets.unit for part in parts]).astype(np.int32),
        annotator=np.concatenate([part.targets.annotator for part in parts]).astype(np.int32),
        served=np.concatenate([part.p["served"] for part in parts]).astype(np.float32),
        # Kept off 0 and 1, as base models are wherever they speak.
        prior=np.concatenate([to_probabilities(space, to_scores(space, part.p["prior"])) for part in parts])
        .astype(np.float32),
    )

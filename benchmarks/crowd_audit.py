"""What the audit says of annotators on real crowds, measured against gold labels and known groups of annotators.

Nothing here is planted: the yardsticks are the gold labels (never shown to the audit) and, for the groups, which
guideline each annotator was given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Line
from model.crowd import AnswerMatrix
from model.quality.annotators import against_labels
from model.quality.clusters import group_annotators
from model.quality.faults import Fault, FaultFinder

ONE_ANSWER = 0.9  # of an annotator's votes for one class
FEW, MANY = 2.0, 3.0  # standard errors


def audit(data: Path) -> dict[str, Any]:
    """Lines of figures by set, as JSON."""
    return {"bluebirds_labels": inverted(data / "bluebirds_labels"), "product_match": constant(data / "product_match"),
            "annotation_paradigms": groups(data / "annotation_paradigms")}


def _read(path: Path) -> tuple[AnswerMatrix, np.ndarray]:
    from backend.formats import open_dataset  # the rest needs numpy and scipy only

    dataset = open_dataset(path)
    control = dataset.control()
    answers = AnswerMatrix.from_votes(dataset.votes, control, classes=dataset.classes_of(control))
    return answers, answers.gold_codes(dataset.gold.get(control))


def inverted(path: Path) -> dict[str, Any]:
    """Who is called inverted, beside those who are right less often than by chance against gold."""
    answers, gold = _read(path)
    findings = FaultFinder().find(answers)
    against = against_labels(answers, gold)
    recall = np.diagonal(against.table, axis1=1, axis2=2) / against.table.sum(axis=2)
    called = [fault is Fault.INVERTER for fault in findings.fault]
    return {
        "called": sum(called),
        "rows": [
            {"annotator": answers.annotators[a], "recalls": np.round(recall[a], 2).tolist(),
             "standard_errors": round(float(against.kappa[a] / against.kappa_se[a]), 1),
             "fault": findings.fault[a].value}
            for a in np.flatnonzero(called | (against.kappa < -FEW * against.kappa_se))
        ],
    }


def constant(path: Path) -> dict[str, Any]:
    """Who is called constant, beside those who give one answer far more often than their tasks' gold labels have it."""
    answers, gold = _read(path)
    findings = FaultFinder().find(answers)
    n_annotators, n_classes = len(answers.annotators), len(answers.classes)
    given = np.bincount(answers.key, minlength=n_annotators * n_classes).reshape(n_annotators, n_classes)
    votes, top = np.maximum(given.sum(axis=1), 1), given.argmax(axis=1)
    due = np.bincount(answers.annotator, gold[answers.unit] == top[answers.annotator], minlength=n_annotators) / votes
    share = given.max(axis=1) / votes
    beyond = (share - due) / np.sqrt(np.maximum(due * (1.0 - due), 1e-4) / votes)  # standard errors
    suspect = (share >= ONE_ANSWER) & (beyond > MANY)
    right = against_labels(answers, gold).accuracy
    called = np.array([fault is Fault.CONSTANT for fault in findings.fault])
    rows = [
        {"annotator": answers.annotators[a], "votes": int(votes[a]), "share": round(float(share[a]), 3),
         "share_by_gold": round(float(due[a]), 3), "standard_errors": round(float(beyond[a]), 1),
         "accuracy": round(float(right[a]), 3), "fault": findings.fault[a].value}
        for a in np.flatnonzero(suspect | called)
    ]
    wrong = suspect & (right < 0.5) & findings.grounds.enough
    return {
        "suspect": int(suspect.sum()), "suspect_called": int((suspect & called).sum()), "called": int(called.sum()),
        "wrong": int(wrong.sum()), "wrong_called": int((wrong & called).sum()),
        "inverters": findings.fault.count(Fault.INVERTER), "rows": sorted(rows, key=lambda row: -row["votes"]),
    }


def groups(path: Path) -> dict[str, Any]:
    """The tightest group that is found beside the guideline groups that are known."""
    answers, _ = _read(path)
    found = group_annotators(answers)
    known = json.loads((path / "annotator_groups.json").read_text(encoding="utf-8"))
    real = np.array([known[name] for name in answers.annotators])
    tight = found.member == 0
    overlap = {str(name): int((tight & (real == name)).sum()) for name in np.unique(real)}
    best = max(overlap, key=lambda name: overlap[name])
    return {
        "tight": int(tight.sum()), "overlap": overlap, "group": best, "size": int((real == best).sum()),
        "precision": overlap[best] / int(tight.sum()), "recall": overlap[best] / int((real == best).sum()),
        "within": found.within.round(3).tolist(), "between": found.between.round(3).tolist(),
    }


def lines(found: Mapping[str, Any]) -> list[Line]:
    """The figures with what they should be."""
    blue, product, paradigms = found["bluebirds_labels"], found["product_match"], found["annotation_paradigms"]
    clear = [row for row in blue["rows"] if row["standard_errors"] < -MANY]
    agreed = sum(row["fault"] == Fault.INVERTER for row in clear)
    return [
        Line(what=f"bluebirds: below chance against gold by {MANY:g} standard errors, called inverted", measured=agreed,
             unit=f"of {len(clear)}", target="all", hit=agreed == len(clear) > 0),
        Line(what="... called inverted in all", measured=blue["called"], unit="annotators"),
        Line(what="product_match: one answer nearly always, right in less than half, 20 common tasks: called constant",
             measured=product["wrong_called"], unit=f"of {product['wrong']}", target="all",
             hit=product["wrong_called"] == product["wrong"] > 0),
        Line(what="... called inverted", measured=product["inverters"], unit="annotators", target="none",
             hit=product["inverters"] == 0),
        Line(what=f"... one answer by {MANY:g} standard errors more often than gold has it: called constant",
             measured=product["suspect_called"], unit=f"of {product['suspect']}"),
        Line(what="... called constant although gold has that answer about as often",
             measured=product["called"] - product["suspect_called"], unit=f"of {product['called']}"),
        Line(what=f"annotation_paradigms: of guideline group {paradigms['group']}, in the tightest group found",
             measured=paradigms["recall"], unit="", target="at least 0.9", hit=paradigms["recall"] >= 0.9),
        Line(what="... of the tightest group, from that guideline", measured=paradigms["precision"], unit=""),
    ]

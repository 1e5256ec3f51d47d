"""Findings on real crowds for `benchmarks.faults`: who is named, who was, and on what evidence, in figures alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults_crowds import Crowd
from model.crowd.answers import AnswerMatrix
from model.quality.faults import FaultFinder

REAL = ("bluebirds_labels", "product_match", "annotation_paradigms", "convabuse", "paraphrase_par", "affective_text",
        "toxicity_spans", "politeness_wiki", "popquorn_offensiveness")


def real(path: Path, before: Callable[[Crowd], list[str] | None] | None) -> dict[str, Any]:
    """Every annotator of a set who is named, or was."""
    from backend.formats import open_dataset  # the rest needs numpy and scipy only

    dataset = open_dataset(path)
    control = dataset.control()
    answers = AnswerMatrix.from_votes(dataset.votes, control, classes=dataset.classes_of(control))
    found = FaultFinder().find(answers)
    people = len(answers.annotators)
    older = (before(Crowd(answers=answers, features=None, roles=("",) * people, kind="real")) if before else None) or \
        ["none"] * people
    rows = []
    for a, (fault, was) in enumerate(zip(found.fault, older, strict=True)):
        if fault != "none" or was != "none":
            against, ground = found.against, found.grounds
            z = against.kappa[a] / against.kappa_se[a] if against.kappa_se[a] > 0 else np.nan
            habits = ", ".join(f"{each.count} of {each.of} renamed" for each in found.habits[a])
            rows.append({
                "annotator": answers.annotators[a], "fault": fault.value, "before": was,
                "false_alarm": f"{found.p_value[a]:.2g}" if np.isfinite(found.p_value[a]) else "",
                "evidence": f"{ground.common[a]} common tasks, {ground.others[a]} others; commonest label "
                f"{found.top_share[a]:.2f} of votes, {found.expected_share[a]:.2f} expected; kappa {z:.1f} standard "
                "errors" + (f"; {habits}" if habits else "") + ("; unrelated" if found.unrelated[a] else ""),
            })
    return {
        "people": people, "enough": int(found.grounds.enough.sum()), "described": sum(map(bool, found.habits)),
        "unrelated": int(found.unrelated.sum()), "named": sum(each != "none" for each in found.fault),
        "before_named": sum(each != "none" for each in older) if before else "", "rows": rows,
    }

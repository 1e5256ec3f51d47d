"""A small project for tests: 60 short texts and three annotators who judge how polite they are.

Annotator 1 calls what has "please" or "kindly" polite, annotator 2 everything else, annotator 3 goes by "team". So the
three differ by content, and each can be learned from the word hashes of `tests.backend.encoders`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from backend.ports import Store
from backend.records import Annotation, StoredVote, Task, TaskSnapshot
from model.data.spaces import Value
from model.data.votes import Provenance

KEY = "7.1764288000"
LABEL_STUDIO_ID = 7
CONFIG = """<View><Text name="text" value="$text"/>
<Choices name="politeness" toName="text"><Choice value="polite"/><Choice value="rude"/></Choices></View>"""
START = datetime(2026, 11, 1, tzinfo=UTC)
ANNOTATORS = ("1", "2", "3")


def texts(count: int = 60) -> list[str]:
    """Distinct short texts; half with a polite word, half with "team", independent of each other."""
    fill = ["send", "report", "now", "file", "call", "later", "bring", "today"]
    sentences = []
    for number in range(count):  # at most 224 differ
        words = [fill[number // 4 % 8], fill[(number // 4 % 8 + 1 + number // 32) % 8]]
        words += ["please" if number // 4 % 2 else "kindly"] * (number % 2) + ["team"] * (number // 2 % 2)
        sentences.append(" ".join(words))
    return sentences


def answer(annotator: str, text: str) -> str:
    """What an annotator says about a text."""
    kind = "please" in text or "kindly" in text
    polite = {"1": kind, "2": not kind, "3": "team" in text}[annotator]
    return "polite" if polite else "rude"


def vote(task_id: int, annotator: str, label: str, **changes: object) -> StoredVote:
    fields: dict[str, object] = {
        "unit": str(task_id), "task_id": task_id, "annotation_id": task_id * 100 + int(annotator.rpartition(":")[2]),
        "annotator": annotator, "control": "politeness", "value": Value.of_class(label),
        "updated_at": START + timedelta(minutes=task_id), "lead_time_s": 4.0, "provenance": Provenance.MANUAL,
        "shown": False, "control_arm": False,
    }
    return StoredVote(**{**fields, **changes})  # type: ignore[arg-type]


def annotation(given: StoredVote) -> Annotation:
    return Annotation(
        id=given.annotation_id, task_id=given.task_id, annotator=given.annotator, result=[], was_cancelled=False,
        ground_truth=False, created_at=given.updated_at, updated_at=given.updated_at, lead_time_s=given.lead_time_s,
        imported=False, parent_prediction=None,
    )


def snapshot(task_id: int, text: str, votes: Iterable[StoredVote] = ()) -> TaskSnapshot:
    votes = tuple(votes)
    task = Task(id=task_id, data={"text": text}, updated_at=START + timedelta(minutes=task_id))
    return TaskSnapshot(task=task, annotations=[annotation(one) for one in votes], votes=votes)


def fill(store: Store, *, tasks: int = 60, labelled: int = 40, annotators: Iterable[str] = ANNOTATORS) -> None:
    """Tasks 1..`tasks`, of which the first `labelled` have a vote of each annotator."""
    store.projects.ensure(KEY, title="Politeness", label_config=CONFIG)
    names = tuple(annotators)
    store.tasks.take_over(KEY, [
        snapshot(number, text, [vote(number, who, answer(who, text)) for who in names if number <= labelled])
        for number, text in enumerate(texts(tasks), start=1)
    ])

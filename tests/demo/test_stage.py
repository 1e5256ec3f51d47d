"""What the demo puts into Label Studio, and how it finds what is worth looking at."""

from __future__ import annotations

from typing import Any

import pytest

from demo.client import Account, choice
from demo.greeting import COMMON
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABELS, OBJECT, load
from demo.stage import LABELLED_EACH, OPEN_MESSAGES, mixed, tasks_with_annotations
from demo.watch import differences, is_delivered


def account(number: int, email: str) -> Account:
    return Account(id=number, email=email, password="", token="", personal_token="")


ANNOTATORS = [account(number, persona.email) for number, persona in enumerate(PERSONAS, start=2)]


def test_everybody_labels_a_part_and_the_first_messages_stay_open() -> None:
    tasks = tasks_with_annotations(load(), ANNOTATORS)
    assert all(task["annotations"] == [] for task in tasks[:OPEN_MESSAGES])
    given = [(task["meta"]["message"], each["completed_by"]) for task in tasks for each in task["annotations"]]
    assert len(set(given)) == len(given) == LABELLED_EACH * len(ANNOTATORS)
    assert {number for _, number in given} == {each.id for each in ANNOTATORS}
    several = sum(len(task["annotations"]) > 1 for task in tasks)
    assert several > 150, "they overlap"
    assert sum(len(task["annotations"]) < len(ANNOTATORS) for task in tasks[OPEN_MESSAGES:]) > 200, "and leave gaps"
    every = [each for task in tasks for each in task["annotations"]]
    assert not any(each["ground_truth"] for each in every), "Label Studio would take imported ones for gold"
    assert {each["result"][0]["value"]["choices"][0] for each in every} == set(LABELS)


def test_the_same_tasks_are_made_every_time() -> None:
    assert tasks_with_annotations(load(), ANNOTATORS) == tasks_with_annotations(load(), ANNOTATORS)


def test_whoever_labels_in_order_soon_has_messages_in_common_with_others() -> None:
    tasks = tasks_with_annotations(load(), ANNOTATORS)
    order = mixed(tasks)
    assert sorted(task["meta"]["message"] for task in order) == sorted(task["meta"]["message"] for task in tasks)
    assert sum(bool(task["annotations"]) for task in order[:12]) == 6
    assert sum(bool(task["annotations"]) for task in order[:30]) >= COMMON, "the second greeting compares"


class Tasks:
    """Stands for the client: answers with the tasks it was given."""

    def __init__(self, tasks: list[dict[str, Any]]) -> None:
        self._tasks = tasks

    def tasks(self, project: int, **_: Any) -> list[dict[str, Any]]:
        return self._tasks


def task(number: int, labels: dict[str, tuple[str, float]], *, annotations: int = 0) -> dict[str, Any]:
    """A task with a prediction for each version -> (label, score)."""
    predictions = [
        {"id": 10 * number + index, "model_version": version, "score": score,
         "result": [choice(CONTROL, OBJECT, label)]}
        for index, (version, (label, score)) in enumerate(labels.items())
    ]
    data = {"text": f"text {number}"}
    return {"id": number, "data": data, "annotations": [{}] * annotations, "predictions": predictions}


def test_what_is_worth_looking_at_is_open_divided_and_sure() -> None:
    one, other = ANNOTATORS[:2]
    mine, theirs = f"annotator:{one.id}", f"annotator:{other.id}"
    tasks = [
        task(1, {f"{mine}@r1": ("Polite", 0.9), f"{theirs}@r1": ("Polite", 0.9), "consensus@r1": ("Polite", 0.9)}),
        task(2, {f"{mine}@r1": ("Polite", 0.5), f"{theirs}@r1": ("Impolite", 0.6), "consensus@r1": ("Neutral", 0.4)}),
        task(3, {f"{mine}@r2": ("Polite", 0.9), f"{theirs}@r1": ("Impolite", 0.8), f"{mine}@r1": ("Impolite", 0.9)}),
        task(4, {f"{mine}@r1": ("Polite", 0.9), f"{theirs}@r1": ("Impolite", 0.9)}, annotations=1),
        task(5, {f"{mine}@r1": ("Polite", 0.9)}),
    ]
    found = differences(Tasks(tasks), 1, [one, other], percent=0.0)  # type: ignore[arg-type]
    assert [each.task for each in found] == [3, 2]
    assert found[0].labels == {one.email: ("Polite", 0.9), other.email: ("Impolite", 0.8)}
    assert found[1].consensus == "Neutral"
    assert differences(Tasks(tasks), 1, [one, other], percent=100.0) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "delivered", "done"),
    [
        (None, None, False),
        ("r1", None, False),
        ("r1", {"version": "consensus@r1", "step": "import"}, False),
        ("r2", {"version": "consensus@r1", "step": "done"}, False),
        ("r2", {"version": "consensus@r2", "step": "done"}, True),
    ],
)
def test_delivered_means_the_published_version_and_complete(version: Any, delivered: Any, done: bool) -> None:
    assert is_delivered({"model_version": version, "delivered": delivered}) is done

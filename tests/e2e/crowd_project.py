"""A project of Label Studio with the votes of a crowd, for tests: a small one of our own, and a measuring set from a
folder (tasks.jsonl, annotations.jsonl, meta.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from demo.client import Account, choice
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABELS, load
from tests.e2e.server import PASSWORD, LabelStudio

AT_ONCE = 50  # tasks in one import
OBJECT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Texts, and who says what of them; annotators are numbers from 0."""

    title: str
    control: str
    classes: tuple[str, ...]
    texts: tuple[str, ...]
    votes: Mapping[int, Sequence[tuple[int, str]]]  # text -> (annotator, label)

    @property
    def people(self) -> int:
        """Annotators."""
        return 1 + max(who for given in self.votes.values() for who, _ in given)

    @property
    def label_config(self) -> str:
        """One choice among the classes."""
        choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in self.classes)
        return (f'<View><Text name="{OBJECT}" value="$text"/><Choices name="{self.control}" toName="{OBJECT}" '
                f'choice="single">{choices}</Choices></View>')


def own_crowd(tasks: int, people: int) -> Crowd:
    """Messages of the sample and the first personas, each of whom labels four in five."""
    messages = load()[:tasks]
    return Crowd(
        title="Several annotators, many votes", control=CONTROL, classes=LABELS,
        texts=tuple(message.text for message in messages),
        votes={at: [(who, PERSONAS[who].label(message, seed=7)) for who in range(people) if (at + who) % 5]
               for at, message in enumerate(messages)},
    )


def crowd_of(folder: Path) -> Crowd:
    """A data set of one control with one choice."""
    about = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    tasks = [json.loads(line) for line in (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    given = [json.loads(line) for line in (folder / "annotations.jsonl").read_text(encoding="utf-8").splitlines()]
    place = {str(task["id"]): at for at, task in enumerate(tasks)}
    who = {name: at for at, name in enumerate(sorted({str(each["annotator"]) for each in given}))}
    votes: dict[int, list[tuple[int, str]]] = {at: [] for at in range(len(tasks))}
    for each in given:
        votes[place[str(each["task"])]].append((who[str(each["annotator"])], str(each["label"])))
    return Crowd(title=folder.name, control="label", classes=tuple(about["classes"]), votes=votes,
                 texts=tuple(str(task["data"]["text"]) for task in tasks))


def give(label_studio: LabelStudio, crowd: Crowd) -> tuple[int, list[int]]:
    """A project in which everybody has labelled; its id, and the task of each text."""
    accounts = list(label_studio.annotators)
    for number in range(len(accounts), crowd.people):
        accounts.append(label_studio.owner.sign_up(f"member{number}@example.com", PASSWORD))
    project = label_studio.owner.create_project(crowd.title, crowd.label_config, maximum_annotations=crowd.people)
    tasks: list[int] = []
    for first in range(0, len(crowd.texts), AT_ONCE):
        chosen = range(first, min(first + AT_ONCE, len(crowd.texts)))
        tasks += label_studio.owner.import_tasks(project, [_task(crowd, at, accounts) for at in chosen])
    return project, tasks


def _task(crowd: Crowd, at: int, accounts: Sequence[Account]) -> dict[str, Any]:
    return {"data": {"text": crowd.texts[at]}, "annotations": [
        {"completed_by": accounts[who].id, "ground_truth": False, "lead_time": 3.0 + (7 * at + who) % 9,
         "result": [choice(crowd.control, OBJECT, label)]} for who, label in crowd.votes[at]
    ]}

"""A stand-in for the explanations of the web app: a document made up for any task that exists."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from backend.errors import MediaError, NotFound, NotReady
from backend.records import Project
from backend.services.explanation.documents import Answer, Explained, Faithful, TaskExplanation
from model.explain.places import Place

WORDS = 4
CELLS = 3


class SmallExplanations:
    """Four words and one picture of 3 x 3 cells; as real ones it may be not ready, or out of time."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.ready, self.complete, self.damaged = True, True, False
        self.lead = 0.2
        self.asked: list[Sequence[str]] = []

    def state(self, project: Project, task_id: int) -> tuple[object, ...]:
        if not self.store.tasks.get(project.key, [task_id]):
            raise NotFound(f"Polyvox knows no task {task_id}.")
        return task_id, self.ready, self.lead

    def task(self, project: Project, task_id: int, *, annotators: Sequence[str] = (), within_s: float = 8.0
             ) -> TaskExplanation:
        self.state(project, task_id)
        self.asked.append(annotators)
        self.within_s = within_s
        if not self.ready:
            raise NotReady("The task is not encoded yet.")
        (task,) = self.store.tasks.get(project.key, [task_id])
        known = sorted(each.annotator for each in self.store.votes.activity(project.key))
        if missing := [each for each in annotators if each not in known]:
            raise NotFound(f"Nobody is called {len(missing)} of these.")
        return made_up(project.key, task_id, str(task.data["text"]), annotators or known[:3], complete=self.complete,
                       lead=self.lead, label=f"Polite {task.data['text'][:30]}")

    def picture(self, project: Project, task_id: int, piece: int) -> bytes:
        if self.damaged:
            raise MediaError("The host answered 404 for the file.")
        out = io.BytesIO()
        Image.new("RGB", (64, 48), "green").save(out, "PNG")
        return out.getvalue()


def made_up(
    key: str, task: int, text: str, annotators: Sequence[str], *, complete: bool = True, lead: float = 0.2,
    label: str = "Polite", control: str = "politeness",
) -> TaskExplanation:
    """Every fourth of the text is a place, and every cell of a picture."""
    step = max(len(text) // WORDS, 1)
    words = [Place(kind="text", start=at * step, end=min((at + 1) * step, len(text))) for at in range(WORDS)]
    cells = [Place(kind="image", row=at // CELLS, column=at % CELLS, side=CELLS) for at in range(CELLS * CELLS)]
    count = len(words) + len(cells)
    weights = tuple((at % 5 - 1) / 10 for at in range(count))
    answer = Answer(
        answer=label, probability=0.8, served=label, confidence=0.7, vote=None,
        attribution=weights if complete else None,
        faithful=Faithful(attention=0.01, pooled=0.02, attribution=lead) if complete else None,
    )
    looked = tuple(1 / (2 * count) for _ in range(count))
    return TaskExplanation(
        project=key, task=task, version="r3", text=text, pieces={"text": 1, "image": 1},
        places=(*words, *cells), pooled=looked, network_share={control: 0.6}, complete=complete,
        annotators=tuple(Explained(annotator=who, name=f"annotator{who}@example.org", attention=looked,
                                   controls={control: answer}) for who in annotators),
    )

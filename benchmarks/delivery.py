"""A delivery beside the bare import of the very same predictions, in a real Label Studio where an annotator submits.

Per repeat two fresh projects of the same tasks: into one the predictions are imported by one call of Label Studio's own
API, into the other Polyvox delivers (plan, forward, consensus, notes, import, select). Five annotators' own predictions
and the consensus: six a task. Texts are encoded already; that is the encoding job's work.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.bootstrap import Services, build_services
from backend.labeling import parse_config
from backend.records import Verdict
from backend.services.served import ReadyTask
from backend.settings import Settings
from benchmarks.measure import REPEATS, Result, over_repeats, timed
from benchmarks.stand import fill, label
from demo.client import choice
from demo.label_studio import REPOSITORY
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, Message, load
from tests.e2e import server as running
from tests.e2e.server import OWNER, LabelStudio

PEOPLE = 5
LABELLED = 150  # tasks with votes, besides the open ones
Payload = list[dict[str, Any]]


class Submitter:
    """One annotator who submits, in a project of their own, while something else is timed."""

    def __init__(self, label_studio: LabelStudio) -> None:
        self._client = label_studio.as_annotator(label_studio.annotators[0])
        _, self._tasks = label_studio.project([f"Submitted {number}" for number in range(400)])
        self._next = itertools.cycle(self._tasks)

    def beside(self, call: Callable[[], object]) -> tuple[float, list[float]]:
        """Seconds that the call takes, and those of each submit that began during it."""
        done, seconds = threading.Event(), []

        def submit() -> None:
            while not done.is_set():
                task = next(self._next)
                seconds.append(timed(lambda task=task: self._client.annotate(
                    task, [choice("polite", "text", "Polite")])))
                done.wait(0.1)

        thread = threading.Thread(target=submit, daemon=True)
        thread.start()
        try:
            return timed(call), seconds
        finally:
            done.set()
            thread.join()


def run(folder: Path, *, rounds: int) -> Result:
    """Twice `rounds` open tasks (2,000 by default)."""
    tasks = 2 * rounds // 100 * 100
    messages = load()
    texts = [f"{messages[index % len(messages)].text} [{index}]" for index in range(tasks + LABELLED)]
    names = ("bare", "ours", "compute", "import", "submit", "bare submit")
    times: dict[str, list[float]] = {name: [] for name in names}
    counts: list[int] = []
    with tempfile.TemporaryDirectory() as scratch, _label_studio(Path(scratch)) as label_studio, _services(
        folder / "delivery", label_studio
    ) as services:
        services.features.texts(texts)
        submitter = Submitter(label_studio)
        _, before = submitter.beside(lambda: time.sleep(5))
        for _ in range(REPEATS):
            key = _project(services, label_studio, texts)
            payload, seconds = _payload(services, key)
            bare = _bare_project(label_studio, texts, payload)
            figures: dict[str, Any] = {"seconds in import": 0.0}
            _timing(services, figures)
            whole, bare_submits = submitter.beside(lambda bare=bare: label_studio.owner.import_predictions(*bare))
            ours, our_submits = submitter.beside(lambda key=key, figures=figures: figures.update(
                services.delivery.run(key, lambda done, note: None)))
            for name, value in (("bare", whole), ("ours", ours), ("compute", seconds), ("submit", max(our_submits)),
                                ("bare submit", max(bare_submits)), ("import", figures["seconds in import"])):
                times[name].append(value)
            counts.append(figures["own"] + figures["consensus"])
            assert counts[-1] == len(payload), (counts[-1], len(payload))
    ratio = [ours / bare for ours, bare in zip(times["ours"], times["bare"], strict=True)]
    lines = [
        over_repeats("bare import, one call", times["bare"], "s"), over_repeats("delivery", times["ours"], "s"),
        over_repeats("delivery / bare import", ratio, "x", most=1.3),
        over_repeats("of the delivery: computing the predictions", times["compute"], "s"),
        over_repeats("of the delivery: Label Studio's import / bare import",
                     [ours / bare for ours, bare in zip(times["import"], times["bare"], strict=True)], "x"),
        over_repeats("slowest Submit during the delivery", times["submit"], "s", most=3.0),
        over_repeats("slowest Submit during the bare import", times["bare submit"], "s"),
        over_repeats("slowest Submit with nothing beside it", [max(before)], "s"),
    ]
    return Result(
        name="delivery", title=f"Delivery of {tasks:,} tasks x {PEOPLE + 1}", lines=lines,
        note=f"{REPEATS} repeats, {counts[0]:,} predictions each, SQLite, texts encoded before; an annotator submits "
        "all the time, with 0.1 s between two submits.",
    )


@contextmanager
def _label_studio(folder: Path) -> Iterator[LabelStudio]:
    started = running.start(REPOSITORY / "local" / "e2e", folder, {})
    try:
        yield started
    finally:
        started.service.stop()


@contextmanager
def _services(folder: Path, label_studio: LabelStudio) -> Iterator[Services]:
    services = build_services(Settings(
        data_dir=folder, label_studio_url=label_studio.url, label_studio_api_key=OWNER.token, control_arm_percent=0.0,
        own_next_tasks=100_000, own_active_days=100_000.0, train_threads=1,
    ))
    try:
        yield services
    finally:
        services.close()


def _timing(services: Services, figures: dict[str, Any]) -> None:
    """Add up how long the imports of the next delivery take."""
    client: Any = services.label_studio
    original = type(client).import_predictions

    def timed_import(*arguments: Any) -> int:
        stored: list[int] = []
        figures["seconds in import"] += timed(lambda: stored.append(original(client, *arguments)))
        return stored[0]

    client.import_predictions = timed_import


def _people(label_studio: LabelStudio) -> list[int]:
    """Five accounts: the annotators and the owner."""
    owner = int(label_studio.owner.call("GET", "/api/current-user/whoami")["id"])
    return [*(account.id for account in label_studio.annotators), owner][:PEOPLE]


def _project(services: Services, label_studio: LabelStudio, texts: Sequence[str]) -> str:
    """A project in Label Studio and in the store, with a published version; the first one's is trained."""
    owner, people = label_studio.owner, _people(label_studio)
    number = owner.create_project("Delivery", LABEL_CONFIG, maximum_annotations=len(people))
    given = [{"data": {"text": text}} for text in texts]
    ids = owner.import_tasks(number, given)
    created = owner.call("GET", f"/api/projects/{number}/")["created_at"]
    key = f"{number}.{int(_epoch(created))}"
    fill(services, key, [_raw(task, text, index, people) for index, (task, text) in enumerate(
        zip(ids, texts, strict=True))])
    trained = [each for each in services.store.projects.all() if services.store.versions.published(each.key)]
    if trained:
        version = services.store.versions.published(trained[0].key)
        assert version is not None
        services.store.versions.add(replace(version, project=key))  # the same files serve the twin
    else:
        services.training.run(key, lambda done, note: None)
    version = services.store.versions.published(key)
    assert version is not None and version.verdict is Verdict.PUBLISHED
    return key


def _raw(task: int, text: str, index: int, people: Sequence[int]) -> dict[str, Any]:
    """Task JSON; everybody has labelled the first `LABELLED` tasks."""
    message = Message(id=str(index), text=text)
    annotations = [
        {"id": task * 10 + who, "completed_by": account, "was_cancelled": False, "ground_truth": False,
         "lead_time": 1.0, "created_at": "2026-11-01T00:00:00Z", "updated_at": "2026-11-01T00:00:00Z",
         "result": [choice(CONTROL, OBJECT, label(who, message))]}
        for who, account in enumerate(people, start=1) if index < LABELLED
    ]
    return {"id": task, "data": {"text": text}, "annotations": annotations, "created_at": "2026-11-01T00:00:00Z",
            "updated_at": "2026-11-01T00:00:00Z"}


def _payload(services: Services, key: str) -> tuple[Payload, float]:
    """The predictions that Polyvox would deliver, and how long it takes to compute them."""
    project, loaded = services.store.projects.get(key), services.registry.published(key)
    assert project is not None and loaded is not None
    config = parse_config(LABEL_CONFIG)
    tasks = services.store.tasks.get(key, services.store.tasks.ids(key).tolist()[LABELLED:])
    people = sorted(services.store.votes.current(key).annotators)
    tokens = services.features.texts([config.content(task.data) for task in tasks])
    ready = [ReadyTask(id=task.id, data=task.data, tokens=array, annotators=people, text=task.data["text"])
             for task, array in zip(tasks, tokens, strict=True)]
    made: Payload = []

    def compute() -> None:
        for at in range(0, len(ready), 256):
            part = ready[at : at + 256]
            for each in services.prediction.compute(project, loaded, config, part, []):
                made.extend({"task": each.task_id, **one} for one in [each.consensus, *each.own.values()] if one)

    return made, timed(compute)


def _bare_project(label_studio: LabelStudio, texts: Sequence[str], payload: Payload) -> tuple[int, Payload]:
    """A project of the same tasks, and the payload with its ids."""
    owner = label_studio.owner
    number = owner.create_project("Bare", LABEL_CONFIG, maximum_annotations=PEOPLE)
    ids = owner.import_tasks(number, [{"data": {"text": text}} for text in texts])
    theirs = sorted({each["task"] for each in payload})
    twin: Mapping[int, int] = dict(zip(theirs, ids[LABELLED:], strict=True))
    return number, [{**each, "task": twin[each["task"]]} for each in payload]


def _epoch(moment: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(moment).timestamp()

"""What must hold whenever everything runs again and is at rest. Each check returns sentences; none means it holds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests

from backend.prediction_names import consensus_version
from backend.records import DeliveryStep, JobKind
from demo.sample import CONTROL, LABEL_CONFIG
from tests.chaos.world import SECRET, World

LABELS = ("Polite", "Neutral", "Impolite")
Tasks = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The project that is looked at."""

    world: World
    number: int  # Label Studio's id
    key: str


def restless(subject: Subject) -> str:
    """Why it is not at rest, "" when it is: nothing dirty, nothing to do, the published version delivered."""
    store, key = subject.world.store, subject.key
    # Gaps wait four times as long as they took the last time; comparisons are looked at below, and come all the time.
    awaited = set(JobKind) - {JobKind.RECONCILE, JobKind.GAPS}
    pending = [kind for kind in JobKind if kind in awaited and store.jobs.pending(key, kind) is not None]
    if pending:
        return f"{pending[0]} is queued or runs"
    if dirty := store.tasks.dirty_count(key):
        return f"{dirty} tasks are to be read"
    if store.projects.sync_state(key).last_error:
        return "Label Studio could not be read"
    version, delivery = store.versions.published(key), store.deliveries.latest(key)
    if version is None:
        return "nothing is published"
    done = delivery is not None and delivery.step is DeliveryStep.DONE
    if delivery is None or not done or delivery.version != consensus_version(version.name):
        return f"{version.name} is not delivered"
    tried = max(each.changes for each in store.versions.recent(key, limit=1))
    if tried < store.votes.counts(key).changes:
        return "votes changed since the last training"
    if store.jobs.pending(key, JobKind.RECONCILE) is not None:
        return "a comparison with Label Studio runs"
    return ""


def wait_for_rest(subject: Subject, *, since: float, timeout_s: float) -> None:
    """Until Polyvox is at rest and has compared itself with Label Studio after `since` (epoch seconds)."""
    deadline, why = time.monotonic() + timeout_s, "it was not looked at"
    while time.monotonic() < deadline:
        why = restless(subject)
        last = subject.world.store.projects.sync_state(subject.key).last_success
        if not why and (last is None or last.timestamp() < since):
            why = "it was not compared with Label Studio yet"
        if not why:
            return
        time.sleep(0.1)
    raise AssertionError(f"not at rest within {timeout_s:.0f} s: {why}")


def all_tasks(subject: Subject) -> Tasks:
    """As Label Studio has them, with annotations and predictions."""
    return subject.world.label_studio.owner.tasks(subject.number, fields="all")


def votes_equal_annotations(subject: Subject, tasks: Tasks) -> list[str]:
    """Of each annotator and task the latest annotation, in Label Studio and in the store."""
    theirs: dict[tuple[str, str], str] = {}
    for task in tasks:
        for each in sorted(task["annotations"], key=lambda one: (one["updated_at"], one["id"])):
            if each["result"] and not each["was_cancelled"]:
                theirs[str(task["id"]), str(each["completed_by"])] = each["result"][0]["value"]["choices"][0]
    votes = subject.world.store.votes.current(subject.key)
    ours = {
        (votes.units[unit], votes.annotators[who]): str(votes.values[value].data)
        for unit, who, value in zip(votes.unit, votes.annotator, votes.value, strict=True)
    }
    missing, extra = theirs.keys() - ours.keys(), ours.keys() - theirs.keys()
    other = [pair for pair in theirs.keys() & ours.keys() if theirs[pair] != ours[pair]]
    found = {"missing": len(missing), "too many": len(extra), "different": len(other),
             "repeated": len(votes) - len(ours)}
    return [f"{count} votes {what} of {len(theirs)}" for what, count in found.items() if count]


def no_duplicates(subject: Subject, tasks: Tasks) -> list[str]:
    """One prediction of a version on a task, at most."""
    count = Counter((task["id"], each["model_version"]) for task in tasks for each in task["predictions"])
    twice = [pair for pair, number in count.items() if number > 1]
    return [f"{len(twice)} predictions lie twice in Label Studio, such as {twice[0]}"] if twice else []


def delivered_whole(subject: Subject, tasks: Tasks) -> list[str]:
    """The published consensus is selected, and is on every task that somebody may still label."""
    version = subject.world.store.versions.published(subject.key)
    wanted = consensus_version(version.name if version else None)
    project = subject.world.label_studio.owner.call("GET", f"/api/projects/{subject.number}/")
    found = [] if project["model_version"] == wanted else [f"selected is {project['model_version']}, not {wanted}"]
    people = len(subject.world.label_studio.annotators)
    lacking = [
        task["id"] for task in tasks
        if len({each["completed_by"] for each in task["annotations"]}) < people
        and wanted not in {each["model_version"] for each in task["predictions"]}
    ]
    return found + ([f"{len(lacking)} open tasks lack {wanted}"] if lacking else [])


def answers(subject: Subject, task: Mapping[str, Any]) -> list[str]:
    """/setup names the published version, and /predict answers under it."""
    world, version = subject.world, subject.world.store.versions.published(subject.key)
    wanted = consensus_version(version.name if version else None)
    about = {"project": subject.key, "schema": LABEL_CONFIG, "label_config": LABEL_CONFIG, "hostname": "",
             "access_token": "", "params": {}}
    try:
        setup = requests.post(f"{world.url}/setup", json=about, timeout=3).json()
        asked = {**about, "tasks": [{**task, "predictions": [], "annotations": []}]}
        results = requests.post(f"{world.url}/predict", json=asked, timeout=30).json()["results"][0]
    except (requests.RequestException, ValueError, KeyError, IndexError) as error:
        return [f"/setup or /predict: {type(error).__name__}"]
    found = [] if setup.get("model_version") == wanted else [f"/setup says {setup.get('model_version')}, not {wanted}"]
    if not results:
        return [*found, "/predict answers nothing"]
    regions = results[-1]["result"]
    valid = len(regions) == 1 and regions[0]["from_name"] == CONTROL and regions[0]["value"]["choices"][0] in LABELS
    if results[-1]["model_version"] != wanted or not valid or not 0.0 <= results[-1]["score"] <= 1.0:
        found.append(f"/predict answers something else than one label under {wanted}")
    return found


def status(subject: Subject) -> dict[str, Any] | None:
    """What the status page says of the project, as JSON, with the service's problems; None while it does not answer."""
    try:
        answer = requests.get(
            subject.world.url, headers={"Accept": "application/json", "X-Polyvox-Secret": SECRET}, timeout=10
        ).json()
    except (requests.RequestException, ValueError):
        return None
    found = [each for each in answer["projects"] if each["project"] == subject.key]
    return {**found[0], "service": answer["problems"]} if found else None


def sentences(subject: Subject) -> list[str]:
    """All sentences of the status: what is wrong, and what happened lately."""
    now = status(subject)
    return [] if now is None else [*now["service"], *now["problems"], *now["says"]]


def until(condition: Callable[[], Any], *, timeout_s: float) -> bool:
    """Whether it becomes true in time."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False

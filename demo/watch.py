"""Waits for Polyvox's first version, and finds what is worth looking at in Label Studio."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import requests

from demo.client import Account, Client
from demo.processes import DemoError, Service
from demo.showcase import Difference
from labelstudio.choice import CONSENSUS, Candidate, newest, own_name
from labelstudio.control_arm import in_control_arm

Login = tuple[str, str] | None  # user and password

def status(polyvox_url: str, project: int, login: Login = None) -> dict[str, Any] | None:
    """Polyvox's own account of the project; None while it knows nothing of it or does not answer. `login`: user and
    password of its pages."""
    try:
        response = requests.get(polyvox_url, headers={"Accept": "application/json"}, auth=login, timeout=10)
        response.raise_for_status()
        answer = response.json()
    except (requests.RequestException, ValueError):
        return None
    found = [each for each in answer["projects"] if each["project"].split(".")[0] == str(project)]
    return found[-1] if found else None


def wait_for_delivery(
    polyvox: Service, polyvox_url: str, project: int, *, timeout_s: float, tell: Callable[[str, float], None],
    login: Login = None,
) -> dict[str, Any]:
    """Wait until the published version is in Label Studio; returns the status then.

    `tell` hears what goes on and how much of it is done. Raises DemoError when Polyvox stops or the time is over.
    """
    deadline = time.monotonic() + timeout_s
    now: dict[str, Any] | None = None
    while time.monotonic() < deadline:
        now = status(polyvox_url, project, login)
        if now is not None and is_delivered(now):
            return now
        if not polyvox.running:
            raise DemoError(f"Polyvox stopped. The end of {polyvox.log}:\n{polyvox.log_tail()}")
        tell(*_doing(now))
        time.sleep(0.5)
    why = " ".join([now["verdict"], *now["problems"]]) if now else "It does not know the project."
    raise DemoError(f"Polyvox has delivered nothing within {timeout_s:.0f} s. {why}\nIts log is {polyvox.log}.")


def is_delivered(now: Mapping[str, Any]) -> bool:
    """Whether Label Studio has the published version's predictions."""
    delivered, version = now["delivered"], now["model_version"]
    if not version or not delivered:
        return False
    return bool(delivered["version"] == f"{CONSENSUS}@{version}" and delivered["step"] == "done")


def differences(client: Client, project: int, annotators: Sequence[Account], percent: float) -> list[Difference]:
    """Unlabelled messages on which shown predictions differ between annotators, the surest first."""
    found = []
    for task in client.tasks(project, fields="all"):
        if task["annotations"]:
            continue  # the quick view opens what others have labelled with their annotation, not with a prediction
        predictions = {item["id"]: item for item in task["predictions"]}
        candidates = [Candidate(item["id"], item["model_version"] or "") for item in task["predictions"]]
        labels = {}
        for account in annotators:
            own = newest(candidates, own_name(str(account.id)))
            if own and not in_control_arm(project, task["id"], str(account.id), percent):
                labels[account.email] = (label_of(predictions[own.id]), float(predictions[own.id]["score"] or 0.0))
        shared = newest(candidates, CONSENSUS)
        if len({label for label, _ in labels.values()}) > 1:
            consensus = label_of(predictions[shared.id]) if shared else ""
            text = str(task["data"]["text"])
            found.append(Difference(task=task["id"], text=text, labels=labels, consensus=consensus))
    return sorted(found, key=_sureness, reverse=True)


def _sureness(difference: Difference) -> float:
    """The best two-sided certainty: the surest annotator of one label together with the surest of another."""
    best: dict[str, float] = {}
    for label, score in difference.labels.values():
        best[label] = max(best.get(label, 0.0), score)
    return sum(sorted(best.values())[-2:])


def label_of(prediction: Mapping[str, Any]) -> str:
    """The chosen label of a prediction, "" without one."""
    return str(prediction["result"][0]["value"]["choices"][0]) if prediction["result"] else ""


def _doing(now: Mapping[str, Any] | None) -> tuple[str, float]:
    """A sentence about what Polyvox does, and the share of it that is done."""
    if now is None:
        return "waiting for Polyvox to read the project", 0.0
    running = [job for job in now["jobs"] if job["state"] == "running"]
    if running:
        return f"{running[0]['kind']}: {running[0]['note']}", float(running[0]["progress"])
    return f"{now['votes']} votes read; {now['verdict'] or 'the next job is about to start'}", 0.0

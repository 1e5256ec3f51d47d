"""Sets the stage: accounts, the project with its messages, and the simulated annotations, in Label Studio.

The first messages of the sample stay unlabelled; of the others each simulated annotator has labelled a random part. In
Label Studio both alternate at first, so that a person who begins to label soon has messages in common with others.
The annotations come in with the tasks, in one call: Label Studio takes a third of a second to store one that is
submitted singly. It notes who made each, and Polyvox notes them as imported.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from demo.client import Account, Client, basic_auth, choice
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, TITLE, Message, load
from demo.showcase import Showcase
from demo.state import State

SEED = 20
OPEN_MESSAGES = 40
LABELLED_EACH = 150
BACKEND_TITLE = "Polyvox"
TAB_TITLE = "Start here: read in two ways"
ALL_TITLE = "All messages"
# Columns of the Data Manager that would push the message itself off the screen.
_HIDDEN = ("inner_id", "completed_at", "cancelled_annotations", "annotations_results", "annotations_ids",
           "predictions_score", "predictions_model_versions", "predictions_results", "file_upload", "storage_filename",
           "created_at", "updated_at", "updated_by", "avg_lead_time", "draft_exists")


def accounts(client: Client, state: State) -> None:
    """Sign up the simulated annotators that have no account yet."""
    known = {account.email for account in state.annotators}
    for persona in PERSONAS:
        if persona.email not in known:
            state.annotators = (*state.annotators, client.sign_up(persona.email, state.password))
            state.save()


def project(client: Client, state: State) -> int:
    """Make the project and fill it; returns the number of annotations. Does nothing when it is there.

    A run that was stopped half-way leaves a project that nobody needs; it is not touched.
    """
    if state.project:
        return 0
    description = (
        f"{len(PERSONAS)} simulated annotators (not people) have labelled a part of these messages. "
        "Polyvox learns each of them and suggests to each their own label."
    )
    number = client.create_project(
        TITLE, LABEL_CONFIG, description=description, show_collab_predictions=True,
        maximum_annotations=len(PERSONAS) + 1,  # one more, for the person who looks at the demo
    )
    tasks = tasks_with_annotations(load(), state.annotators)
    client.import_tasks(number, mixed(tasks))
    state.project = number
    state.save()
    return sum(len(task["annotations"]) for task in tasks)


def tasks_with_annotations(
    messages: Sequence[Message], annotators: Sequence[Account], *, seed: int = SEED
) -> list[dict[str, Any]]:
    """Tasks as Label Studio imports them; `seed` draws who labels what, and the slips."""
    id_of = {account.email: account.id for account in annotators}
    given: dict[str, list[dict[str, Any]]] = {message.id: [] for message in messages}
    for persona in PERSONAS:
        chosen = random.Random(f"{seed}|{persona.email}").sample(list(messages[OPEN_MESSAGES:]), LABELLED_EACH)
        for message in chosen:
            given[message.id].append({
                "result": [choice(CONTROL, OBJECT, persona.label(message, seed))],
                "completed_by": id_of[persona.email],
                "ground_truth": False,  # Label Studio's default for imported annotations is true
                "lead_time": 4.0,
            })
    return [
        {"data": {"text": message.text}, "meta": {"message": message.id}, "annotations": given[message.id]}
        for message in messages
    ]


def mixed(tasks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every other task one that nobody has labelled, as long as there are any.

    Whoever labels in order then soon has tasks in common with others, and is soon compared with them.
    """
    unlabelled = iter([task for task in tasks if not task["annotations"]])
    found = []
    for task in (task for task in tasks if task["annotations"]):
        found += [task, *islice(unlabelled, 1)]
    return [*found, *unlabelled]


def connect(client: Client, state: State, polyvox_url: str) -> None:
    """Make Polyvox the project's machine-learning backend, or tell Label Studio its present address and password."""
    backends = client.call("GET", "/api/ml", params={"project": state.project})
    mine = [backend for backend in backends if backend["title"] == BACKEND_TITLE]
    if not mine:
        client.add_ml_backend(state.project, polyvox_url, BACKEND_TITLE, state.polyvox_login)
        return
    old, wanted = mine[0]["url"].rstrip("/"), basic_auth(state.polyvox_login)
    if old == polyvox_url and mine[0].get("basic_auth_user") == wanted.get("basic_auth_user"):
        return
    client.call("PATCH", f"/api/ml/{mine[0]['id']}", json={"url": polyvox_url, "project": state.project, **wanted})
    if old == polyvox_url:
        return
    for hook in client.call("GET", "/api/webhooks/", params={"project": state.project}):
        if hook["url"].startswith(f"{old}/"):  # Label Studio moves the backend, but not the webhook that it made for it
            moved = polyvox_url + hook["url"].removeprefix(old)
            client.call("PATCH", f"/api/webhooks/{hook['id']}/", json={"url": moved})


def show_first(client: Client, project: int, cases: Sequence[Showcase]) -> int:
    """A tab of the Data Manager with these messages alone, after one with all; returns its number. Tabs of an earlier
    run are reused.

    The tab with all comes first and is made by us, since "Label All Tasks" labels the tab that is open, Label Studio
    opens the first one, and shows none of its own once there is any.
    """
    only = [
        {"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": case.difference.task}
        for case in cases
    ]
    every = _tab(client, project, {"title": ALL_TITLE})
    tab = _tab(client, project, {"title": TAB_TITLE, "filters": {"conjunction": "or", "items": only}})
    client.call("POST", "/api/dm/views/order/", json={"project": project, "ids": [every, tab]})
    return tab


def _tab(client: Client, project: int, data: Mapping[str, Any]) -> int:
    """The number of the tab with this title, made or brought up to date."""
    hidden = [f"tasks:{column}" for column in _HIDDEN]
    whole = {**data, "hiddenColumns": {"explore": hidden, "labeling": hidden}}  # Label Studio wants both
    tabs = client.call("GET", "/api/dm/views", params={"project": project})
    mine = [tab["id"] for tab in tabs if tab["data"].get("title") == data["title"]]
    if mine:
        client.call("PATCH", f"/api/dm/views/{mine[0]}", json={"project": project, "data": whole})
        return int(mine[0])
    return int(client.call("POST", "/api/dm/views", json={"project": project, "data": whole})["id"])

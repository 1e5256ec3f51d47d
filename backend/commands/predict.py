"""`predict`: what the published version says about a task, for each annotator and all together."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from backend.bootstrap import Services, build_services
from backend.commands.base import Arguments, Command, find_project, project_argument
from backend.errors import ClientError, NotFound
from backend.labeling import LabelConfig, parse_config
from backend.labeling.content import text_of
from backend.records import Project, StoredVote, Task
from backend.registry import Loaded
from backend.services.rankings import orders, rankers
from backend.services.ready_tasks import nothing_read
from backend.services.served import DIGITS, Offers, ReadyTask, as_votes, whole_task
from backend.services.statistics.subject import label_text
from backend.settings import Settings
from model.data.spaces import Value, ValueKind

CONSENSUS = "consensus"


def _arguments(parser: argparse.ArgumentParser) -> None:
    project_argument(parser)
    parser.add_argument("--task", metavar="N", type=int, action="append", required=True,
                        help="id of a task in Label Studio; may be given several times")
    parser.add_argument("--json", action="store_true", help="for programs, with the probability of each class")


def _run(arguments: Arguments, settings: Settings, console: Console) -> int:
    services = build_services(settings)
    try:
        project = find_project(services.store, arguments.project)
        rows = predictions(services, project, arguments.task)
        if arguments.json:
            print(json.dumps(rows, indent=2, ensure_ascii=False))
        else:
            console.print(_table(rows))
        return 0
    finally:
        services.close()


def predictions(services: Services, project: Project, task_ids: list[int]) -> list[dict[str, Any]]:
    """One row for each task, control and annotator, and one for the consensus. Changes and delivers nothing.

    Votes on the tasks are used as evidence, as they are in what is delivered. Raises ClientError, NotFound.
    """
    loaded = services.registry.published(project.key)
    if loaded is None:
        raise ClientError(f"Project {project.label_studio_id} has no published version yet.")
    ids = list(dict.fromkeys(task_ids))
    tasks = services.store.tasks.get(project.key, ids)
    if len(tasks) < len(ids):
        missing = ", ".join(str(each) for each in ids if each not in {task.id for task in tasks})
        raise NotFound(f"Polyvox knows no task {missing} in project {project.label_studio_id}.")
    config = parse_config(project.label_config)
    votes = services.store.votes.of_tasks(project.key, [task.id for task in tasks])
    who = [each.annotator for each in services.store.votes.activity(project.key)]
    names = {each.annotator: each.name for each in services.store.votes.activity(project.key)}
    given = {(vote.task_id, vote.control, vote.annotator): _say(vote.value) for vote in _whole_tasks(votes)}
    rows = [*_network_rows(services, project.key, loaded, config, tasks, who, votes),
            *_ranking_rows(services, loaded, config, tasks, who, votes)]
    silent = [task for task in tasks if not any(row["task"] == task.id for row in rows)]
    if silent:
        why = config.problems(silent[0].data) or ["Nothing that this version learned speaks of a task like this one."]
        raise ClientError(f"Nothing is predicted for task {silent[0].id}. {' '.join(why)}")
    return [{
        **row, "name": names.get(row["annotator"], row["annotator"]),
        "vote": given.get((row["task"], row["control"], row["annotator"])), "version": loaded.version.name,
    } for row in sorted(rows, key=lambda row: ids.index(row["task"]))]


def _network_rows(
    services: Services, project: str, loaded: Loaded, config: LabelConfig, tasks: Sequence[Task], who: list[str],
    votes: list[StoredVote],
) -> list[dict[str, Any]]:
    if not loaded.ladder.reads:
        return []
    contents = [config.content(task.data, task=task.id) for task in tasks]
    if not all(contents):
        raise ClientError("A task without text cannot be predicted: " + ", ".join(
            str(task.id) for task, content in zip(tasks, contents, strict=True) if not content))
    answer = loaded.ladder.predict(
        services.features.texts(contents), who, units=[str(task.id) for task in tasks], given=as_votes(votes),
        texts=[text_of(content) for content in contents],
        newcomers=services.prediction.newcomers.of(project, loaded, config, who))
    asked, size = [*who, CONSENSUS], len(who) + 1
    spaces = whole_task(loaded.ladder.spaces, config)
    p = {control: np.concatenate([answer[control].served, answer[control].consensus[:, None]], 1) for control in spaces}
    # The rule of what is delivered says which label that is, and how sure it is.
    said = Offers(spaces, config).answers(
        {control: each.reshape(-1, each.shape[2]) for control, each in p.items()}, [task.data for task in tasks],
        np.repeat(np.arange(len(tasks)), size).tolist())
    return [
        {
            "task": task.id, "control": control, "annotator": annotator, "predicted": _say(value), "confidence": sure,
            "probabilities": {name: round(float(each), DIGITS)
                              for name, each in zip(spaces[control].classes, p[control][row, column], strict=True)},
        }
        for row, task in enumerate(tasks) for control in spaces for column, annotator in enumerate(asked)
        if (answered := said[row * size + column].get(control)) is not None for value, sure in (answered,)
    ]


def _ranking_rows(
    services: Services, loaded: Loaded, config: LabelConfig, tasks: Sequence[Task], who: list[str],
    votes: list[StoredVote],
) -> list[dict[str, Any]]:
    """The best item first; of those who ranked a task no prediction is made there, since their own would speak."""
    weight = services.settings.echo_weight
    rows = []
    for control in rankers(config):
        if control.name not in loaded.rankings:
            continue
        ranked = {(vote.task_id, vote.annotator) for vote in votes if vote.control == control.name}
        ready = [ReadyTask(id=task.id, data=task.data, tokens=nothing_read(),
                           annotators=[each for each in who if (task.id, each) not in ranked]) for task in tasks]
        found = orders(loaded.rankings[control.name], control, ready, votes, weight)
        for task, mine in zip(tasks, found, strict=True):
            agreed = {} if mine.consensus is None else {CONSENSUS: mine.consensus}
            rows += [{"task": task.id, "control": control.name, "annotator": each, "predicted": _say(value),
                      "confidence": round(sure, 4), "probabilities": {}}
                     for each, (value, sure) in {**mine.own, **agreed}.items()]
    return rows


def _whole_tasks(votes: list[StoredVote]) -> list[StoredVote]:
    return [vote for vote in votes if vote.unit == str(vote.task_id)]


def _say(value: Value) -> str:
    if value.kind is ValueKind.RANKING and isinstance(value.data, tuple):
        return " > ".join(" = ".join(bucket) for bucket in value.data)
    return label_text(value)


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("task", "control", "annotator", "predicted", "confidence", "their vote", box=None, padding=(0, 2))
    for row in rows:
        cells = (str(row["task"]), row["control"], row["name"], row["predicted"], f"{row['confidence']:.2f}",
                 row["vote"] or "")
        table.add_row(*(Text(cell) for cell in cells))
    return table


COMMAND = Command(
    name="predict", help="what the published version says about a task", arguments=_arguments, run=_run,
    description="Show the label that the published version expects of each annotator on a task, the consensus, and the "
    "votes there are. Reads only; nothing is delivered.",
)

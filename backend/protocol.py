"""Label Studio's payloads <-> typed, frozen requests. The authority on what Label Studio sends are recorded requests.

Parsing is total: whatever bytes come in, the outcome is a request or a `ClientError` whose one sentence says which
field is wrong and what was expected there. Messages never repeat values (they may be labels, texts or secrets).

Invariants of a parsed request:
- ids are integers from 1 to 2^63 - 1 (what a database column holds); every string can be encoded as UTF-8;
- secrets that Label Studio hands over unasked (`access_token`, the project's `token`, `task_data_login`,
  `task_data_password`, `params.login`, `params.password`) are not in it: only named fields are taken over;
- task data is passed on untouched, whatever its keys are called.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, NoReturn

from backend.errors import ClientError, PayloadTooLarge
from backend.json_cost import too_dear
from backend.webhook_actions import (
    ANNOTATION_ACTIONS,
    DELETE_ACTIONS,
    RELEVANT_ACTIONS,
    START_TRAINING,
    TASK_ACTIONS,
)

MAX_ID = 2**63 - 1
DEEPEST = 200  # levels of nesting; far below what Python can walk through, wherever that happens later
_CONTAINERS = frozenset({dict, list})
MOST_MEMORY = 256 * 2**20  # bytes that a body may take, all together
TOO_DEEP = f"The body is nested too deeply; JSON is read down to {DEEPEST} levels."
PROJECT_KEY = re.compile(r"([1-9][0-9]{0,17})(?:\.([0-9]{1,18}))?")

# Sent by "all actions" webhooks; they say nothing about votes and are answered without doing anything.
OTHER_ACTIONS = frozenset({
    "LABEL_LINK_CREATED", "LABEL_LINK_UPDATED", "LABEL_LINK_DELETED", "REVIEW_CREATED", "REVIEWS_DELETED",
    "REVIEW_UPDATED", "TASKS_UPDATED",
})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRef:
    """Which project a request is about; `key` is None when the creation time was not given."""

    label_studio_id: int
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRequest:
    """POST /setup: a project and its labeling configuration ("" while it has none)."""

    project: ProjectRef
    label_config: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRequest:
    """POST /predict. `label_config` "" means: the one known from /setup. `context` is what a client drew, if any."""

    project: ProjectRef
    label_config: str
    tasks: Sequence[dict[str, Any]]
    context: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """POST /webhook. `payload` has Label Studio's shape, reduced to what ingest may use, free of secrets."""

    action: str
    project: ProjectRef | None  # None where the webhook sends no payload, and for actions that are not relevant
    payload: dict[str, Any]

    @property
    def relevant(self) -> bool:
        """Whether there is anything to do for this action."""
        return self.action in RELEVANT_ACTIONS


def read_json(raw: bytes, *, most: int = MOST_MEMORY) -> dict[str, Any]:
    """Body -> JSON object. `most`: bytes of memory. Raises `ClientError` for what is none, or may take more."""
    value: Any
    if too_dear(raw, most):
        message = f"The body would take more than {most // 2**20} MB of memory; send fewer tasks at a time."
        raise PayloadTooLarge(message)
    try:
        # As text: given bytes, json.loads would also take UTF-16 and UTF-32, which nobody is to send (RFC 8259).
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ClientError(TOO_DEEP) from None
    except ValueError:  # also bytes that are no UTF-8, NaN, numbers of thousands of digits
        raise ClientError("The body is not valid JSON; expected a JSON object.") from None
    if not isinstance(value, dict):
        raise ClientError(f"The body is {_kind(value)}; expected a JSON object.")
    if _deeper_than(value, DEEPEST):
        raise ClientError(TOO_DEEP)
    if re.search(rb"\\u[dD][89a-fA-F]", raw):
        cleaned: dict[str, Any] = _without_lone_surrogates(value)
        return cleaned
    return value


def parse_setup(body: Mapping[str, Any]) -> SetupRequest:
    """`schema` may be missing, null or empty: a new project has no configuration yet."""
    return SetupRequest(project=parse_project(body.get("project")), label_config=_config(body, "schema"))


def parse_predict(body: Mapping[str, Any]) -> PredictRequest:
    """`label_config` may be missing, and `params` null. Raises `ClientError` that names the field."""
    params = _object(body.get("params"), "params", optional=True) or {}
    return PredictRequest(
        project=parse_project(body.get("project")),
        label_config=_config(body, "label_config"),
        tasks=parse_tasks(body.get("tasks")),
        context=_object(params.get("context"), "params.context", optional=True),
    )


def parse_tasks(value: Any) -> list[dict[str, Any]]:
    """Tasks with an id and a data object; everything else in them is passed on as it is."""
    tasks = _list(value, "tasks")
    for index, task in enumerate(tasks):
        _object(task, f"tasks[{index}]")
        parse_id(task.get("id"), f"tasks[{index}].id")
        _object(task.get("data"), f"tasks[{index}].data")
    return tasks


def parse_webhook(body: Mapping[str, Any]) -> WebhookRequest:
    """Actions that concern nobody here, and webhooks without a payload, come back without a project.

    Raises `ClientError` that names the field.
    """
    action = body.get("action")
    if not isinstance(action, str) or action not in RELEVANT_ACTIONS | OTHER_ACTIONS:
        _wrong("action", action, "the name of a Label Studio webhook action such as ANNOTATION_CREATED")
    if action in OTHER_ACTIONS:
        return WebhookRequest(action=action, project=None, payload={"action": action})
    if set(body) == {"action"} and action != START_TRAINING:
        return WebhookRequest(action=action, project=None, payload={"action": action})  # "Send payload" is off
    project = _webhook_project(_object(body.get("project"), "project") or {})
    payload: dict[str, Any] = {"action": action, "project": project}
    if action in ANNOTATION_ACTIONS:
        payload |= _annotations_with_tasks(body)
    elif action in DELETE_ACTIONS:
        payload["annotations"] = _deleted_annotations(body)
    elif action in TASK_ACTIONS:
        payload["tasks"] = _ids(body.get("tasks"), "tasks")
    key = project_key(project["id"], project["created_at"])
    return WebhookRequest(action=action, project=ProjectRef(label_studio_id=project["id"], key=key), payload=payload)


def parse_train(body: Mapping[str, Any]) -> ProjectRef:
    """POST /train of old Label Studio versions: `project` may be a key, an id or the whole project object."""
    project = body.get("project")
    if not isinstance(project, dict):
        return parse_project(project)
    known = _webhook_project(project)
    return ProjectRef(label_studio_id=known["id"], key=project_key(known["id"], known["created_at"]))


def parse_project(value: Any, where: str = "project") -> ProjectRef:
    """"12.1764288000", "12" or 12. Raises `ClientError` for everything else."""
    expected = "a project as \"<id>.<created epoch>\" or an id"
    if isinstance(value, int) and not isinstance(value, bool):
        return ProjectRef(label_studio_id=parse_id(value, where), key=None)
    match = PROJECT_KEY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        _wrong(where, value, expected)
    return ProjectRef(label_studio_id=int(match[1]), key=value if match[2] else None)


def parse_id(value: Any, where: str) -> int:
    """A positive whole number that a database key can hold. Raises `ClientError` that names the field `where`."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_ID:
        _wrong(where, value, "a positive whole number")
    return value


def project_key(project_id: int, created_at: str | None) -> str | None:
    """The key that /setup would use for this project: id and creation time in whole seconds."""
    if created_at is None:
        return None
    return f"{project_id}.{int(datetime.fromisoformat(created_at).timestamp())}"


def prediction_results(answers: Sequence[Sequence[Mapping[str, Any]]], *, asked: int) -> dict[str, Any]:
    """The body of /predict's answer. Label Studio drops everything when the number of results is not that of tasks."""
    if len(answers) != asked:
        raise RuntimeError(f"{len(answers)} answers for {asked} tasks")
    return {"results": [list(answer) for answer in answers]}


def _webhook_project(project: Mapping[str, Any]) -> dict[str, Any]:
    created_at = project.get("created_at")
    if created_at is not None:
        created_at = _time(created_at, "project.created_at")
    return {
        "id": parse_id(project.get("id"), "project.id"),
        "title": _text(project, "title", "project.title"),
        "label_config": _config(project, "label_config", "project.label_config"),
        "created_at": created_at,
    }


def _annotations_with_tasks(body: Mapping[str, Any]) -> dict[str, Any]:
    """`annotation` and `task` are objects, or lists of objects in bulk events."""
    annotation, task = body.get("annotation"), body.get("task")
    if isinstance(annotation, list):
        shown = [_annotation(each, f"annotation[{index}]") for index, each in enumerate(annotation)]
        tasks = _ids(task, "task") if task is not None else []
        if not tasks and any(each["task"] is None for each in shown):
            _wrong("annotation[].task", None, "the id of a task, here or in task")
        return {"annotation": shown, "task": tasks}
    one = _annotation(annotation, "annotation")
    if task is None and one["task"] is None:
        _wrong("annotation.task", None, "the id of a task, here or in task")
    task_id = parse_id((_object(task, "task") or {}).get("id"), "task.id") if task is not None else one["task"]
    return {"annotation": one | {"task": task_id}, "task": {"id": task_id}}


def _annotation(value: Any, where: str) -> dict[str, Any]:
    annotation = _object(value, where) or {}
    task = annotation.get("task")
    return {
        "id": parse_id(annotation.get("id"), f"{where}.id"),
        "task": None if task is None else parse_id(task, f"{where}.task"),
    }


def _deleted_annotations(body: Mapping[str, Any]) -> list[dict[str, int]]:
    if body.get("annotations") is None and body.get("annotation") is not None:
        return _ids([body["annotation"]], "annotation")
    return _ids(body.get("annotations"), "annotations")


def _ids(value: Any, where: str) -> list[dict[str, int]]:
    """[{"id": 1, ...}, ...] -> [{"id": 1}, ...]"""
    items = [_object(each, f"{where}[{index}]") or {} for index, each in enumerate(_list(value, where))]
    return [{"id": parse_id(each.get("id"), f"{where}[{index}].id")} for index, each in enumerate(items)]


def _config(body: Mapping[str, Any], name: str, where: str = "") -> str:
    xml = _text(body, name, where)
    return xml if xml.strip() else ""


def _text(body: Mapping[str, Any], name: str, where: str = "") -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        _wrong(where or name, value, "text or null")
    return value.replace("\x00", "")  # a NUL is valid JSON, but neither XML nor every database takes it


def _time(value: Any, where: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None and moment.timestamp() >= 0:
            return str(value)
    except (TypeError, ValueError, OverflowError):
        pass
    _wrong(where, value, "a time in ISO 8601 with a time zone")


def _object(value: Any, where: str, *, optional: bool = False) -> dict[str, Any] | None:
    if value is None and optional:
        return None
    if not isinstance(value, dict):
        _wrong(where, value, "an object or null" if optional else "an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        _wrong(where, value, "a list")
    return value


def _wrong(where: str, value: Any, expected: str) -> NoReturn:
    found = "missing or null" if value is None else f"{_kind(value)} that does not fit"
    raise ClientError(f"{where} is {found}; expected {expected}.")


def _kind(value: Any) -> str:
    """The JSON type, in words; never the value."""
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _deeper_than(value: Any, levels: int) -> bool:
    """Level by level, without recursion; a quarter of the time that parsing takes."""
    level = [value]
    for _ in range(levels):
        inside = (each.values() if type(each) is dict else each for each in level)
        level = [child for child in chain.from_iterable(inside) if type(child) in _CONTAINERS]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _without_lone_surrogates(value: Any) -> Any:
    """Half of a surrogate pair is valid JSON but no text: nothing could store or encode it. It becomes "?". Text by
    text, since a copy of the whole would take as much memory again; at most `DEEPEST` levels."""
    if type(value) is str:
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if type(value) is list:
        for at, each in enumerate(value):
            value[at] = _without_lone_surrogates(each)
    elif type(value) is dict:
        items = list(value.items())
        value.clear()
        value.update((_without_lone_surrogates(key), _without_lone_surrogates(each)) for key, each in items)
    return value

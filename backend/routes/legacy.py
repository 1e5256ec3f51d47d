"""Endpoints of the ML backend contract that Label Studio 1.23 never or hardly calls, as a table.

Each answer is a plain function from the request's fields to a JSON object; an unknown job is 410, as Label Studio's
client expects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flask import Blueprint, request
from werkzeug.exceptions import Gone

from backend.errors import ClientError
from backend.protocol import parse_project
from backend.routes.context import body, context

Answer = Callable[[Mapping[str, Any]], dict[str, Any]]
blueprint = Blueprint("legacy", __name__)


def validate(fields: Mapping[str, Any]) -> dict[str, Any]:
    """{"config": xml} -> which controls are modelled and which are not, with the reason."""
    xml = fields.get("config")
    if not isinstance(xml, str) or not xml.strip():
        raise ClientError("config is missing; expected a labeling configuration in XML.")
    config = context().backend.check_config(xml)
    return {
        "controls": [{"name": each.name, "tag": each.tag} for each in config.controls],
        "unmodelled": [{"name": each.name, "tag": each.tag, "reason": each.reason} for each in config.unmodelled],
    }


def job_status(fields: Mapping[str, Any]) -> dict[str, Any]:
    """{"job": id} -> its state and progress. 410 for an unknown one."""
    job_id = fields.get("job")
    if not isinstance(job_id, str):
        raise ClientError("job is missing; expected the id of a job as text.")
    job = context().backend.job(job_id)
    if job is None:
        raise Gone("There is no such job.")
    return {"job": job.id, "job_status": job.state, "progress": job.progress, "note": job.note, "error": job.error}


def is_training(fields: Mapping[str, Any]) -> dict[str, Any]:
    """{"project": key or id} -> whether a training of it runs."""
    return {"is_training": context().backend.is_training(parse_project(fields.get("project")))}


def delete(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Refused politely: nothing is deleted at the word of a request."""
    parse_project(fields.get("project"))
    return {"deleted": False, "message": "Polyvox keeps what it learned; nothing was deleted."}


def duplicate_model(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Refused politely: a model of other annotators' gaps is of no use to a copy."""
    for name in ("project_src", "project_dst"):
        parse_project(fields.get(name), name)
    return {"duplicated": False, "message": "Polyvox learns each project from its own annotations; nothing was copied."}


TABLE: tuple[tuple[str, str, Answer], ...] = (
    ("POST", "/validate", validate),
    ("POST", "/job_status", job_status),
    ("GET", "/is_training", is_training),
    ("POST", "/delete", delete),
    ("POST", "/duplicate_model", duplicate_model),
)


def _handler(answer: Answer) -> Callable[[], dict[str, Any]]:
    def handle() -> dict[str, Any]:
        return answer(request.args if request.method in ("GET", "HEAD") else body())

    return handle


for method, path, answer in TABLE:
    blueprint.add_url_rule(path, endpoint=answer.__name__, view_func=_handler(answer), methods=[method])

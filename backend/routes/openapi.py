"""What the API offers, as an OpenAPI 3.1 document: made from the documents' types and the tables' columns.

The file backend/static/openapi.json is this document (`python scripts/update_openapi.py` writes it); tests hold it
against the routes and against answers.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from backend.report.asked import DIRECTIONS, ROWS_AT_ONCE
from backend.report.columns import ANNOTATORS
from backend.report.explanations.page import WAYS
from backend.report.pages import STATES
from backend.report.region_columns import FIGURES, REGION_PAIRS
from backend.report.table import Column
from backend.report.task_columns import ASKS, BESIDE, CONSENSUS, DIVIDED, FLAGS, MATRIX, TASKS
from backend.services.explanation.documents import AnnotatorAttributions, TaskExplanation
from backend.services.statistics.documents import Header, Overview, Profile, ReasonKind, RegionFigures
from backend.telemetry import VERSION

Schema = dict[str, Any]
NUMBERS = frozenset({"decimal", "percent", "seconds"})
WHOLE = frozenset({"whole", "id"})


def document() -> Schema:
    """The whole OpenAPI document."""
    schemas: dict[str, Schema] = {}
    paths = {
        "/api/projects": _get("Every project that Polyvox knows", {"projects": _list(_project())}, known=False),
        "/api/projects/{project}": _get("Coverage, agreement, consensus, ladder and training",
                                        _type(Overview, schemas)),
        "/api/projects/{project}/jobs": _get("Queued and running jobs, and the version of the figures", {
            "version": {"type": ["string", "null"]}, "jobs": _list(_job())}),
        "/api/projects/{project}/annotators": _table("The annotators on one control", ANNOTATORS, schemas, CONTROL),
        "/api/projects/{project}/annotators/{annotator}": _get("One annotator in detail", _type(Profile, schemas),
                                                               parameters=[_path("annotator", "as in the table")]),
        "/api/projects/{project}/tasks": _tasks(schemas),
        "/api/projects/{project}/tasks/{task}/explanation.json": _explanation(_type(TaskExplanation, schemas)),
        "/api/projects/{project}/tasks/{task}/explanation.png": _overlay(),
        "/api/projects/{project}/annotators/{annotator}/words": _get(
            "Words that move one annotator's labels more than the others'", _type(AnnotatorAttributions, schemas),
            parameters=[_path("annotator", "as in the table")]),
        "/api/projects/{project}/flags": _table("Votes worth a second look", FLAGS, schemas, CONTROL, *_FILTERS),
        "/api/projects/{project}/flags/check": {"post": _check()},
        "/api/projects/{project}/consensus": _consensus(schemas),
        "/api/projects/{project}/regions": _regions(schemas),
        "/api/projects/{project}/gaps": _table("Labels worth asking for next, best first", ASKS, schemas, CONTROL),
        "/api/projects/{project}/gaps/matrix": _table("The annotation matrix by annotator", MATRIX, schemas, CONTROL),
        "/api/projects/{project}/filled.csv": _filled_csv(),
        "/api/projects/{project}/filled.json": _filled_json(),
        "/api/projects/{project}/blind": _get(
            "The most divided tasks as a file that Label Studio imports, without names and labels",
            _list({"type": "object", "required": ["data", "meta"], "properties": {
                "data": {"type": "object"}, "meta": {"type": "object"}}}), parameters=[CONTROL, LIMIT, OFFSET]),
    }
    schemas["Error"] = _object({"error": {"type": "string", "description": "One sentence."}})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Polyvox", "version": VERSION, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
                 "description": "Figures of labeling projects. What is unknown is null; shares lie in [0, 1], losses "
                 "are in nats a vote. An error is an object with one sentence."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
        "security": [{}, {"basic": []}],
    }


def _query(name: str, schema: Schema, about: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": about}


def _path(name: str, about: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
            "description": about}


CONTROL = _query("control", {"type": "string"}, "the control that is meant; the first one without it")
LIMIT = _query("limit", {"type": "integer", "minimum": 1, "maximum": ROWS_AT_ONCE}, "rows at most")
OFFSET = _query("offset", {"type": "integer", "minimum": 0, "maximum": 10**12}, "rows to leave out first")
FORMAT = _query("format", {"enum": ["json", "csv"]}, "JSON unless CSV is asked for")
_FILTERS = (
    _query("annotator", {"type": "string"}, "of this annotator only"),
    _query("reason", {"enum": [each.value for each in ReasonKind]}, "with this kind of evidence only"),
    _query("state", {"enum": list(STATES)}, "open ones unless others are asked for"),
)


def _get(summary: str, answer: Mapping[str, Any], *, parameters: Sequence[Schema] = (), known: bool = True) -> Schema:
    """A GET; `answer` is a schema, or the properties of an object."""
    schema = answer if {"type", "$ref"} & set(answer) else _object(answer)
    return {"get": {
        "summary": summary, "parameters": [*([_PROJECT] if known else []), *parameters],
        "responses": {"200": {"description": "Found.", "content": {"application/json": {"schema": schema}}},
                      **_errors("400", "401", "404")},
    }}


_PROJECT = _path("project", "number of the project in Label Studio, or its key in Polyvox")


_TASK = _path("task", "number of the task in Label Studio")


def _table(summary: str, columns: Sequence[Column[Any]], schemas: dict[str, Schema], *parameters: Schema) -> Schema:
    """A GET of rows, with order and paging."""
    sort = _query("sort", {"enum": [column.name for column in columns if column.sorts]}, "the column to order by")
    order = _query("order", {"enum": list(DIRECTIONS)}, "the direction; without it the interesting end comes first")
    found = _get(summary, _rows(columns, schemas), parameters=[*parameters, sort, order, LIMIT, OFFSET, FORMAT])
    found["get"]["responses"]["200"]["content"]["text/csv"] = {"schema": {"type": "string"}}
    return found


def _consensus(schemas: dict[str, Schema]) -> Schema:
    """With columns beside it where they are asked for."""
    beside = _query("beside", {"enum": list(BESIDE)}, "another way to sum up the votes, in columns of its own")
    found = _table("The consensus label of every unit", CONSENSUS, schemas, CONTROL, beside)
    more = CONSENSUS + tuple(column for each in BESIDE.values() for column in each)
    either = {"type": "object", "anyOf": [_rows(CONSENSUS, schemas), _rows(more, schemas)]}
    found["get"]["responses"]["200"]["content"]["application/json"]["schema"] = either
    return found


def _tasks(schemas: dict[str, Schema]) -> Schema:
    """Two tables at one address, told apart by ?list=."""
    which = _query("list", {"enum": ["hardest", "divided"]}, "the hardest tasks unless the most divided are asked for")
    found = _table("The hardest or the most divided tasks", DIVIDED, schemas, CONTROL, which)
    either = {"type": "object", "anyOf": [_rows(TASKS, schemas), _rows(DIVIDED, schemas)]}
    found["get"]["responses"]["200"]["content"]["application/json"]["schema"] = either
    return found


def _regions(schemas: dict[str, Schema]) -> Schema:
    """A table with the figures of all pairs beside it."""
    found = _table("How far pairs of annotators draw the same regions", REGION_PAIRS, schemas, CONTROL)
    answer = found["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    _type(RegionFigures, schemas)
    figures = schemas["RegionFigures"]["properties"]
    for unused in ("RegionFigures", "RegionPair"):
        del schemas[unused]
    found["get"]["responses"]["200"]["content"]["application/json"]["schema"] = _object(
        {**answer["properties"], **{name: figures[name] for name in FIGURES}})
    return found


def _explanation(answer: Schema) -> Schema:
    who = _query("annotator", {"type": "array", "items": {"type": "string"}}, "these annotators, as in their table")
    found = _get("Why each annotator is expected to label a task as they are", answer, parameters=[_TASK, who])
    found["get"]["responses"] |= _errors("409")
    return found


def _overlay() -> Schema:
    found = _get("Heat over an image of a task", {}, parameters=[
        _TASK, CONTROL, _query("annotator", {"type": "string"}, "of this annotator; of all without it"),
        _query("by", {"enum": list(WAYS)}, "what matters, or where they look"),
        _query("image", {"type": "integer", "minimum": 0, "maximum": 10**6}, "which image of the task, from 0"),
    ])
    found["get"]["responses"]["200"]["content"] = {"image/png": {"schema": {"type": "string", "format": "binary"}}}
    found["get"]["responses"] |= _errors("409")
    return found


_FORM = _query("form", {"enum": ["long", "wide"]}, "a row for each label, or for each task")
_ONLY = _query("only", {"enum": ["everything", "gaps"]}, "without the labels that annotators gave: gaps")


def _filled_csv() -> Schema:
    found = _get("The filled matrix: labels that were given, and predicted ones for gaps", {},
                 parameters=[CONTROL, _FORM, _ONLY])
    found["get"]["responses"]["200"]["content"] = {"text/csv": {"schema": {"type": "string"}}}
    found["get"]["responses"] |= _errors("409")
    return found


def _filled_json() -> Schema:
    about: dict[str, Schema] = {"project": {"type": "integer"}, "control": {"type": "string"},
                                "version": {"type": ["string", "null"]}, "about": {"type": "string"},
                                "rows": _list({"type": "object", "required": ["task"]}), "complete": {"const": True}}
    found = _get("The filled matrix: labels that were given, and predicted ones for gaps", _object(about),
                 parameters=[CONTROL, _FORM, _ONLY])
    found["get"]["responses"] |= _errors("409")
    return found


def _rows(columns: Sequence[Column[Any]], schemas: dict[str, Schema]) -> Schema:
    header = _type(Header, schemas)
    about: Schema = schemas[header["$ref"].rsplit("/", 1)[1]]["properties"]
    counts = {name: {"type": "integer"} for name in ("total", "offset", "limit")}
    return _object({**about, **counts, "rows": _list(_object({each.name: _cell(each) for each in columns}))})


def _cell(column: Column[Any]) -> Schema:
    kind = "number" if column.kind in NUMBERS else "integer" if column.kind in WHOLE else "string"
    return {"type": [kind, "null"], "description": column.help}


def _check() -> Schema:
    asked = _object({"flag": {"type": "string"}, "verdict": {"enum": ["fine", "slip", ""]}})
    answer = _object({"flag": {"type": "string"}, "checked": {"enum": ["fine", "slip", ""]}})
    return {
        "summary": "Keep what somebody said of a flagged vote; an empty verdict takes it back",
        "parameters": [_PROJECT],
        "requestBody": {"required": True, "content": {"application/json": {"schema": asked}}},
        "responses": {"200": {"description": "Kept.", "content": {"application/json": {"schema": answer}}},
                      **_errors("400", "401", "403", "404", "413", "415")},
    }


def _errors(*statuses: str) -> Schema:
    words = {"400": "The request cannot be served as it is.", "401": "Credentials are missing or wrong.",
             "403": "Another site asked for it.", "404": "There is no such thing (yet).",
             "409": "It is not there yet.", "413": "The body is too large.", "415": "The body is no JSON."}
    schema = {"$ref": "#/components/schemas/Error"}
    return {each: {"description": words[each], "content": {"application/json": {"schema": schema}}}
            for each in statuses}


def _project() -> Schema:
    return _object({"id": {"type": "integer"}, "project": {"type": "string"}, "title": {"type": "string"},
                    "model_version": {"type": ["string", "null"]}, "version": {"type": ["string", "null"]}})


def _job() -> Schema:
    texts = {name: {"type": "string"} for name in ("kind", "state", "words", "note")}
    return _object({**texts, "running": {"type": "boolean"}, "progress": {"type": "number"}})


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties),
            "additionalProperties": False}


def _type(kind: Any, schemas: dict[str, Schema]) -> Schema:
    """The schema of a field's type; dataclasses become named ones."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        name = str(getattr(kind, "__name__", kind))
        if name not in schemas:
            schemas[name] = {}  # so that a type that holds itself ends
            schemas[name] = _object({field: _type(each, schemas) for field, each in get_type_hints(kind).items()})
        return {"$ref": f"#/components/schemas/{name}"}
    if origin in (Union, types.UnionType):
        some = _type(next(each for each in inner if each is not type(None)), schemas)
        return {"anyOf": [some, {"type": "null"}]} if "$ref" in some else {**some, "type": [some["type"], "null"]}
    if origin is tuple:
        return {"type": "array"} if inner[-1] is not Ellipsis else _list(_type(inner[0], schemas))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(inner[1], schemas)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [each.value for each in kind]}
    plain: Schema = {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
                     bool: {"type": "boolean"}, datetime: {"type": "string", "format": "date-time"}}[kind]
    return dict(plain)

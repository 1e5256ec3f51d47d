"""The figures of the QA site as data: JSON, and tables as CSV too. static/openapi.json describes every route.

Tables take ?sort=&order=&limit=&offset=; JSON gives 100 rows unless it is asked for more, CSV all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from flask import Blueprint, Response, jsonify, request

from backend.errors import ClientError, NotFound
from backend.report import pages as views
from backend.report.asked import ROWS_AT_ONCE, Asked, choice
from backend.report.blind import blind_tasks
from backend.report.columns import ANNOTATORS, judged
from backend.report.masked import masked_profile
from backend.report.region_columns import REGION_PAIRS, figures_of
from backend.report.table import Column, as_csv, records
from backend.report.task_columns import ASKS, BESIDE, CONSENSUS, DIVIDED, FLAGS, MATRIX, TASKS, labelled
from backend.report.texts import texts_of
from backend.routes.checks import check_flag
from backend.routes.context import body, context
from backend.routes.desk import Desk, desk, shown_jobs, there
from backend.routes.same_origin import check_origin
from backend.services.gaps.documents import Gaps, read_gaps
from backend.services.statistics.codec import plain
from backend.services.statistics.documents import Header

blueprint = Blueprint("api", __name__, url_prefix="/api")
R = TypeVar("R")
JSON_ROWS = 100
NO_REGIONS = "There are no regions to compare: no control of this project draws any, or nothing was computed yet."
NO_GAPS = "Which labels are worth asking for is not computed for this project yet."


@blueprint.get("/projects")
def projects() -> dict[str, Any]:
    """Every project that Polyvox knows."""
    found = [desk(each.key) for each in context().services.store.projects.all()]
    return {"projects": [{
        "id": at.project.label_studio_id, "project": at.key, "title": at.project.title,
        "model_version": at.project.version, "version": at.version(),
    } for at in found]}


@blueprint.get("/projects/<project>")
def overview(project: str) -> Response:
    """Coverage, agreement, consensus, ladder and training."""
    at = desk(project)
    return jsonify(plain(there(at.reader.overview(at.key))))


@blueprint.get("/projects/<project>/jobs")
def jobs(project: str) -> dict[str, Any]:
    """Queued and running jobs, and the version of the figures, for pages that are open."""
    at = desk(project)
    return {"version": at.version(), "jobs": shown_jobs(at.jobs())}


@blueprint.get("/projects/<project>/annotators")
def annotators(project: str) -> Response:
    """The table of annotators on one control."""
    at = desk(project)
    document = there(at.reader.annotators(at.key))
    control = _control(list(dict.fromkeys(name for row in document.rows for name in row.controls)))
    return _table(at, "annotators", document.header, ANNOTATORS, judged(document, control))


@blueprint.get("/projects/<project>/annotators/<annotator>")
def profile(project: str, annotator: str) -> Response:
    """One annotator in detail."""
    at = desk(project)
    names = at.names()
    who = names.find(annotator)
    found = at.reader.profile(at.key, who) if who is not None else None
    if found is None:
        raise NotFound("There is no such annotator with votes in this project.")
    return jsonify(plain(masked_profile(found, names)))


@blueprint.get("/projects/<project>/tasks")
def tasks(project: str) -> Response:
    """The hardest (or with ?list=divided the most divided) tasks of a control."""
    at = desk(project)
    document = there(at.reader.tasks(at.key))
    control, which = _control(list(document.controls)), choice(request.args, "list", ("hardest", "divided"), "hardest")
    lists = document.controls.get(control)
    if which == "divided":
        return _table(at, "divided-tasks", document.header, DIVIDED, lists.divided if lists else ())
    return _table(at, "tasks", document.header, TASKS, lists.hardest if lists else ())


@blueprint.get("/projects/<project>/flags")
def flags(project: str) -> Response:
    """Votes worth a second look; ?state=all shows checked ones too."""
    at = desk(project)
    document = there(at.reader.flags(at.key))
    rows = views.flagged(document, at.store.statistics.checks(at.key))
    found = views.filtered(rows, request.args, at.names(), texts_of(at.store, at.project))
    return _table(at, "flags", document.header, FLAGS, found)


@blueprint.post("/projects/<project>/flags/check")
def check(project: str) -> dict[str, str]:
    """Keep what somebody said of a flag: {"flag": id, "verdict": "fine", "slip" or ""}."""
    own = context().services.settings.url
    check_origin(request.headers, own_url=own, is_json=request.is_json)
    asked = body()
    flag, verdict = asked.get("flag"), asked.get("verdict")
    if not isinstance(flag, str) or not isinstance(verdict, str):
        raise ClientError("A check needs a flag and a verdict, both as text.")
    return {"flag": flag, "checked": check_flag(desk(project), flag, verdict)}


@blueprint.get("/projects/<project>/consensus")
def consensus(project: str) -> Response:
    """The consensus label of every unit of a control, in order of task ids; with ?beside=dawid_skene the labels of that
    method too."""
    at = desk(project)
    document = there(at.reader.consensus(at.key))
    control = _control(list(document.controls))
    found = document.controls.get(control)
    beside = choice(request.args, "beside", ("", *BESIDE), "")
    columns = CONSENSUS + BESIDE.get(beside, ())
    return _table(at, "consensus", document.header, columns, labelled(found) if found else ())


@blueprint.get("/projects/<project>/regions")
def regions(project: str) -> Response:
    """How far pairs of annotators draw the same regions with a control, least agreeing first."""
    at = desk(project)
    document = at.reader.regions(at.key)
    if document is None:
        raise NotFound(NO_REGIONS)
    found = document.controls[_control(list(document.controls))]
    return _table(at, "regions", document.header, REGION_PAIRS, found.pairs, about=figures_of(found))


@blueprint.get("/projects/<project>/gaps")
def gaps(project: str) -> Response:
    """Labels worth asking for next, best first."""
    at, document = _gaps(project)
    found = document.controls.get(_control(list(document.controls)))
    return _table(at, "gaps", document.header, ASKS, found.asks if found else ())


@blueprint.get("/projects/<project>/gaps/matrix")
def matrix(project: str) -> Response:
    """One row of the annotation matrix for each annotator: given, predicted, missing."""
    at, document = _gaps(project)
    found = document.controls.get(_control(list(document.controls)))
    return _table(at, "matrix", document.header, MATRIX, found.rows if found else ())


@blueprint.get("/projects/<project>/blind")
def blind(project: str) -> Response:
    """The most divided tasks as a file that Label Studio imports: content only, no names, no labels."""
    at = desk(project)
    document = there(at.reader.tasks(at.key))
    control = _control(list(document.controls))
    most = Asked.of(request.args).limit
    response = jsonify(blind_tasks(at.store, at.project, document, control=control, most=most))
    response.headers["Content-Disposition"] = f'attachment; filename="blind-{at.project.label_studio_id}.json"'
    return response


def _gaps(project: str) -> tuple[Desk, Gaps]:
    at = desk(project)
    document = read_gaps(at.store, at.key)
    if document is None:
        raise NotFound(NO_GAPS)
    return at, document


def _control(controls: Sequence[str]) -> str:
    return views.chosen_control(request.args, controls)


def _table(
    at: Desk, name: str, header: Header, columns: Sequence[Column[R]], rows: Sequence[R],
    about: Mapping[str, Any] | None = None,
) -> Response:
    """Rows as the query string wants them; `about` stands beside them in JSON."""
    names, as_file = at.names(), choice(request.args, "format", ("json", "csv"), "json") == "csv"
    shown = Asked.of(request.args, limit=ROWS_AT_ONCE if as_file else JSON_ROWS).of_rows(rows, columns, names)
    found = list(records(columns, shown.rows, names))
    if as_file:
        response = Response(as_csv([column.name for column in columns], found), mimetype="text/csv")
        response.headers["Content-Disposition"] = f'attachment; filename="{name}-{at.project.label_studio_id}.csv"'
        return response
    more: Mapping[str, Any] = {**plain(header), **(about or {})}
    return jsonify({**more, "total": shown.total, "offset": shown.offset, "limit": shown.limit, "rows": found})

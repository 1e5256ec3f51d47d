"""The filled matrix of a project as CSV or JSON, sent while it is predicted, so that it is never in memory whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice

from flask import Blueprint, Response, request

from backend.errors import ClientError, NotFound
from backend.labeling import parse_config
from backend.report.asked import choice
from backend.report.filled import LONG, as_json, delimited, long_records, wide_columns, wide_records
from backend.report.names import Names
from backend.report.table import Cell
from backend.routes.context import context
from backend.routes.desk import Desk, desk
from backend.services.gaps.answers import Board
from backend.services.gaps.fill import control_of, filled, people_of
from model.errors import ModelError

blueprint = Blueprint("filled", __name__, url_prefix="/api")
EVERYTHING, GAPS = "everything", "gaps"
LONG_FORM, WIDE_FORM = "long", "wide"


@blueprint.get("/projects/<project>/filled.csv")
def as_csv_file(project: str) -> Response:
    """One row for each label, or with ?form=wide for each task; ?only=gaps leaves out what annotators gave."""
    at = desk(project)
    _, columns, _, rows = _rows(at)
    return _sent(delimited(columns, rows), "text/csv", f"filled-{at.project.label_studio_id}.csv")


@blueprint.get("/projects/<project>/filled.json")
def as_json_file(project: str) -> Response:
    """The same as an object with `rows`."""
    at = desk(project)
    board, _, control, rows = _rows(at)
    about: dict[str, Cell] = {"project": at.key, "control": control, "version": board.version}
    return _sent(as_json(about, rows), "application/json", f"filled-{at.project.label_studio_id}.json")


def _rows(at: Desk) -> tuple[Board, list[str], str, Iterator[Mapping[str, Cell]]]:
    """(board, columns, control, rows) that the query string wants."""
    form = choice(request.args, "form", (LONG_FORM, WIDE_FORM), LONG_FORM)
    only = choice(request.args, "only", (EVERYTHING, GAPS), EVERYTHING)
    if not at.project.label_config:
        raise NotFound("The labeling configuration of this project is not known yet.")
    board = context().services.gaps.board(at.project, parse_config(at.project.label_config))
    control, people = control_of(board, request.args.get("control", "")), people_of(board)
    known = {each.annotator: each.name for each in at.store.votes.activity(at.key)}
    names = Names({who: known.get(who, who) for who in people}, mask=at.mask)
    tasks = filled(board, control, people, only_gaps=only == GAPS)
    if form == WIDE_FORM:
        return board, wide_columns(people, names), control, wide_records(tasks, people, names, version=board.version)
    return board, list(LONG), control, long_records(tasks, names, control=control, version=board.version)


def _sent(pieces: Iterator[str], kind: str, name: str) -> Response:
    """The first two pieces are made before anything is sent, so that what cannot be predicted is an error.

    Raises ClientError.
    """
    try:
        first = list(islice(pieces, 2))
    except ModelError as error:
        raise ClientError(f"The gaps cannot be filled: {error}.") from error
    body = (piece.encode("utf-8", "replace") for piece in chain(first, pieces))
    response = Response(body, content_type=f"{kind}; charset=utf-8" if kind == "text/csv" else kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response

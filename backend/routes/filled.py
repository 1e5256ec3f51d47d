"""The filled matrix of a project as CSV or JSON.

Invariants: one export at a time in a process, so that the other web threads stay free for predictions; a file is made
whole on disk before any of it is sent, so that it is never in memory whole and an error is never a file that looks
complete.
"""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from flask import Blueprint, Response, request
from werkzeug.wsgi import FileWrapper

from backend.errors import NotFound, NotReady
from backend.labeling import parse_config
from backend.report.asked import choice
from backend.report.filled import LONG, as_json, delimited, long_records, wide_columns, wide_records
from backend.report.names import names_of
from backend.report.table import Cell
from backend.routes.context import context
from backend.routes.desk import Desk, desk
from backend.services.gaps.fill import control_of, filled, people_of

blueprint = Blueprint("filled", __name__, url_prefix="/api")
EVERYTHING, GAPS = "everything", "gaps"
LONG_FORM, WIDE_FORM = "long", "wide"
_one = threading.Semaphore()  # export at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrix:
    """What the query string wants."""

    control: str
    version: str | None
    columns: list[str]
    rows: Iterator[Mapping[str, Cell]]


@blueprint.get("/projects/<project>/filled.csv")
def as_csv_file(project: str) -> Response:
    """One row for each label, or with ?form=wide for each task; ?only=gaps leaves out what annotators gave."""
    return _sent(desk(project), "csv", "text/csv; charset=utf-8")


@blueprint.get("/projects/<project>/filled.json")
def as_json_file(project: str) -> Response:
    """The same as an object with `rows`."""
    return _sent(desk(project), "json", "application/json")


def _sent(at: Desk, ending: str, kind: str) -> Response:
    """Holds the only place until the file is sent, or given up. Raises ClientError."""
    with ExitStack() as held:
        if not _one.acquire(blocking=False):
            raise NotReady("Another export is being made; try again in a moment.")
        held.callback(_one.release)
        # In the data folder, since the usual place for temporary files is memory in our container.
        folder = context().services.settings.data_dir
        folder.mkdir(parents=True, exist_ok=True)  # nothing else is there yet where the database is on a server
        file = held.enter_context(tempfile.TemporaryFile(dir=folder))
        for piece in _pieces(at, ending):
            file.write(piece.encode("utf-8", "replace"))
        size = file.tell()
        file.seek(0)
        response = Response(FileWrapper(file), content_type=kind)
        # A response that is never sent (to HEAD) is not closed either; the place is free once it is gone.
        response.call_on_close(weakref.finalize(response, held.pop_all().close))
    response.content_length = size  # with which a client sees that a connection broke
    response.headers["Content-Disposition"] = f'attachment; filename="filled-{at.project.label_studio_id}.{ending}"'
    return response


def _pieces(at: Desk, ending: str) -> Iterator[str]:
    matrix = _matrix(at)
    if ending == "csv":
        return delimited(matrix.columns, matrix.rows)
    about: dict[str, Cell] = {
        "project": at.project.label_studio_id, "control": matrix.control, "version": matrix.version}
    return as_json(about, matrix.columns, matrix.rows)


def _matrix(at: Desk) -> _Matrix:
    form = choice(request.args, "form", (LONG_FORM, WIDE_FORM), LONG_FORM)
    only = choice(request.args, "only", (EVERYTHING, GAPS), EVERYTHING)
    if not at.project.label_config:
        raise NotFound("The labeling configuration of this project is not known yet.")
    board = context().services.gaps.board(at.project, parse_config(at.project.label_config))
    control, people = control_of(board, request.args.get("control", "")), people_of(board)
    names = names_of(at.reader, at.store, at.key, people, mask=at.mask)
    tasks = filled(board, control, people, only_gaps=only == GAPS)
    if form == WIDE_FORM:
        return _Matrix(control=control, version=board.version, columns=wide_columns(people, names),
                       rows=wide_records(tasks, people, names, version=board.version))
    return _Matrix(control=control, version=board.version, columns=list(LONG),
                   rows=long_records(tasks, names, control=control, version=board.version))

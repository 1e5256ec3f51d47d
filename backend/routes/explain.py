"""Explanations of single tasks (a page, the same as JSON, overlays of pictures as PNG), and words over many tasks.

Nothing is trained or encoded in these requests; features come from the cache, and time is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, jsonify, request

from backend.errors import ClientError, MediaError, NotFound, NotReady
from backend.report.asked import choice
from backend.report.explanations.file import drawn
from backend.report.explanations.overlay import png
from backend.report.explanations.page import ATTRIBUTION, EVERYBODY, WAYS, explanation, masked
from backend.routes.context import context
from backend.routes.desk import Desk, desk
from backend.routes.rendered import answer, pages
from backend.routes.site import problem_page
from backend.services.explanation.attributions import read_attributions
from backend.services.explanation.documents import TaskExplanation
from backend.services.explanation.service import PATIENCE_S, Explanations
from backend.services.statistics.codec import plain
from backend.services.statistics.subject import label_text

blueprint = Blueprint("explain", __name__)
AT_ONCE_S = 0.5  # for the first page; what takes longer is waited for by the next one


@blueprint.get("/projects/<project>/tasks/<task>/explanation")
def page(project: str, task: str) -> Response:
    """What the answers on one task rest on, annotators side by side."""
    try:
        at, number = desk(project), _number(task)
        state = _explanations().state(at.project, number)
        made: list[TaskExplanation] = []

        def make() -> str:
            made.append(_explained(at, number, within_s=PATIENCE_S if request.args.get("wait") else AT_ONCE_S))
            return _render(at, number, made[-1])

        # One that ran out of time is made anew at the next request.
        try:
            return answer(make, state, at.version(), at.mask, at.label_studio,
                          keep=lambda: all(each.complete for each in made))
        except NotReady as error:
            return Response(_known(at, number, str(error)), headers={"Cache-Control": "no-store"}, mimetype="text/html")
    except ClientError as error:
        return problem_page(error)


@blueprint.get("/api/projects/<project>/tasks/<task>/explanation.json")
def as_json(project: str, task: str) -> Response:
    """The same as data; ?annotator= (several times) names who is explained."""
    at = desk(project)
    return jsonify(plain(masked(_explained(at, _number(task)), at.names())))


@blueprint.get("/api/projects/<project>/annotators/<annotator>/words")
def words(project: str, annotator: str) -> Response:
    """The words that move one annotator's labels, over many tasks."""
    at = desk(project)
    found = read_attributions(at.store, at.key, _who(at, annotator))
    if found is None:
        raise NotFound("No words were found for this annotator yet; a job looks for them in each published version.")
    return jsonify(plain(replace(found, annotator=at.names().slug(found.annotator))))


@blueprint.get("/api/projects/<project>/tasks/<task>/explanation.png")
def as_png(project: str, task: str) -> Response:
    """Heat over an image of the task: of one annotator, or without any the attention of all."""
    at, number = desk(project), _number(task)
    wanted = request.args.getlist("annotator")
    if len(wanted) > 1:
        raise ClientError("annotator is given at most once for a picture.")
    way = choice(request.args, "by", WAYS, ATTRIBUTION if wanted else WAYS[1])
    piece = _number(request.args.get("image", "0"))
    document = _explained(at, number)
    who = _who(at, wanted[0]) if wanted else EVERYBODY
    if who and who not in {each.annotator for each in document.annotators}:
        raise NotFound("This annotator is not among those who are explained.")
    control = _control(document)
    # The file is read before anything is drawn, and only where the explanation says that there is such an image.
    data = _picture(at, number, piece) if piece < document.pieces.get("image", 0) else None
    made = drawn(document, data, annotator=who, control=control, way=way, piece=piece)
    return Response(png(made), mimetype="image/png", headers={"Cache-Control": "private, max-age=60"})


def _render(at: Desk, number: int, document: TaskExplanation) -> str:
    look = at.look()
    control = _control(document)
    way = choice(request.args, "by", WAYS, ATTRIBUTION)
    if not document.complete and not request.args.get("by"):
        way = WAYS[1]
    asked = [("annotator", each) for each in request.args.getlist("annotator")]
    made = explanation(
        look, document, control=control, ways=(way,), source=_address(at, look.links.api, number, control),
        query={name: value for name, value in request.args.items() if name in ("control", "by")},
    )
    if not document.complete and not request.args.get("wait"):
        made["again"] = "?" + urlencode([*request.args.items(multi=True), ("wait", "1")])
    json_address = look.links.api(f"tasks/{number}/explanation.json") + (f"?{urlencode(asked)}" if asked else "")
    return pages().templates.get_template("site/project.html").render(
        look=look, root=look.links.root, page="tasks", title=f"Task {number}", standalone=False, header=None,
        live=False, body="site/_explanation.html", data_links=[("JSON", json_address)], **made,
    )


def _address(at: Desk, api: Callable[..., str], number: int, control: str) -> Callable[[str, int, str], str]:
    names = at.names()

    def address(annotator: str, piece: int, way: str) -> str:
        of = {"annotator": names.slug(annotator)} if annotator else {}
        return api(f"tasks/{number}/explanation.png", image=piece, by=way, control=control, **of)

    return address


def _explained(at: Desk, number: int, within_s: float = PATIENCE_S) -> TaskExplanation:
    wanted = [_who(at, each) for each in request.args.getlist("annotator")]
    return _explanations().task(at.project, number, annotators=wanted, within_s=within_s)


def _known(at: Desk, number: int, sentence: str) -> str:
    """A page with what is known of a task that cannot be explained yet; it asks again by itself."""
    look = at.look()
    given = at.store.votes.of_tasks(at.key, [number])
    return pages().templates.get_template("site/project.html").render(
        look=look, root=look.links.root, page="tasks", title=f"Task {number}", standalone=False, header=None,
        live=True, body="site/_not_yet.html", data_links=[], number=number, sentence=sentence, again="?",
        text=look.texts([number]).get(number, ""),
        votes=[(each.annotator, each.control, each.unit, label_text(each.value)) for each in given],
    )


def _who(at: Desk, slug: str) -> str:
    """The annotator that a slug stands for; before there are statistics, and unmasked, the slug is the id."""
    found = at.names().find(slug)
    if found is None and at.mask:
        raise NotFound("There is no such annotator with votes in this project.")
    return found or slug


def _control(document: TaskExplanation) -> str:
    controls = tuple(document.network_share)
    return choice(request.args, "control", controls, controls[0])


def _picture(at: Desk, number: int, piece: int) -> bytes | None:
    try:
        return _explanations().picture(at.project, number, piece)
    except MediaError:  # the heat is shown on a grey ground
        return None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise NotFound("Tasks and images are named by whole numbers.")
    return int(text)


def _explanations() -> Explanations:
    services: Any = context().services
    found: Explanations = services.explanations
    return found

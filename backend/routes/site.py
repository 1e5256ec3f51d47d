"""The QA site: pages of a project for people. Figures are read from documents; nothing is computed in a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, redirect, request

from backend.errors import ClientError, NotFound
from backend.report import pages as views
from backend.report.asked import Asked
from backend.report.pages import Beside, Look
from backend.report.task_lists import Differing
from backend.routes.checks import check_flag
from backend.routes.context import context
from backend.routes.desk import ADVICE, NOTHING_YET, Desk, desk, there
from backend.routes.rendered import answer, keep_pages, pages
from backend.routes.same_origin import check_origin
from backend.services.explanation.attributions import KIND as ATTRIBUTIONS
from backend.services.explanation.attributions import read_attributions
from backend.services.gaps.documents import read_gaps

blueprint = Blueprint("site", __name__)
keep_pages(blueprint)
Query = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a project."""

    name: str  # in the address; "" for the overview
    title: str
    body: str  # template
    make: Callable[[Desk, Look, Query], dict[str, Any]]  # raises NotFound where there is no document yet
    data: tuple[tuple[str, str], ...]  # (words, address below /api/projects/N)


def _overview(at: Desk, look: Look, query: Query) -> dict[str, Any]:
    reader, key = at.reader, at.key
    beside = Beside(tasks=reader.tasks(key), flags=reader.flags(key), checks=at.store.statistics.checks(key),
                    people=reader.annotators(key), gaps=read_gaps(at.store, key), drawn=reader.regions(key))
    return views.overview(look, there(reader.overview(key)), query, beside)


def _annotators(at: Desk, look: Look, query: Query) -> dict[str, Any]:
    document, alike = there(at.reader.annotators(at.key)), at.reader.alike(at.key)
    return views.annotators(look, document, query, Asked.of(query, paged=True), alike)


def _tasks(at: Desk, look: Look, query: Query) -> dict[str, Any]:
    def differing(control: str) -> Differing:
        return lambda pair, offset, limit: at.store.votes.differing(at.key, control, pair, offset=offset, limit=limit)

    every = at.reader.consensus(at.key) if query.get("list") == "all" else None  # the largest document
    return views.tasks(look, there(at.reader.tasks(at.key)), query, Asked.of(query, paged=True), every=every,
                       differing=differing)


def _flags(at: Desk, look: Look, query: Query) -> dict[str, Any]:
    checks = at.store.statistics.checks(at.key)
    return views.flags(look, there(at.reader.flags(at.key)), checks, query, Asked.of(query, paged=True))


def _gaps(at: Desk, look: Look, query: Query) -> dict[str, Any]:
    cover = there(at.reader.overview(at.key))
    found, people = read_gaps(at.store, at.key), at.reader.annotators(at.key)
    return views.gaps(look, found, cover, people, query, Asked.of(query, paged=True))


def _profile(slug: str) -> Callable[[Desk, Look, Query], dict[str, Any]]:
    def make(at: Desk, look: Look, query: Query) -> dict[str, Any]:
        who = look.names.find(slug)
        found = at.reader.profile(at.key, who) if who is not None else None
        if found is None:
            raise NotFound("There is no such annotator with votes in this project.")
        words = read_attributions(at.store, at.key, found.row.annotator)
        return views.profile(look, found, at.reader.annotators(at.key), words)

    return make


PAGES = {page.name: page for page in (
    Page(name="", title="Overview", body="site/_overview.html", make=_overview, data=(("JSON", ""),)),
    Page(name="annotators", title="Annotators", body="site/_annotators.html", make=_annotators,
         data=(("JSON", "annotators"), ("CSV", "annotators?format=csv"))),
    Page(name="tasks", title="Tasks", body="site/_tasks.html", make=_tasks, data=(
        ("JSON", "tasks"), ("CSV", "tasks?format=csv"), ("consensus of every task", "consensus?format=csv"),
        ("blind rating project of the divided tasks", "blind"))),
    Page(name="flags", title="Flags", body="site/_flags.html", make=_flags,
         data=(("JSON", "flags"), ("CSV", "flags?format=csv"))),
    Page(name="gaps", title="Gaps", body="site/_gaps.html", make=_gaps, data=(
        ("JSON", "gaps"), ("CSV", "gaps?format=csv"), ("filled matrix as CSV", "filled.csv"),
        ("as JSON", "filled.json"), ("a row for each task", "filled.csv?form=wide"))),
)}


@blueprint.get("/projects")
def projects() -> Response:
    """All projects."""
    found = [desk(each.key) for each in context().services.store.projects.all()]

    def make() -> str:
        rows = [{
            "title": at.project.title or f"Project {at.project.label_studio_id}",
            "href": f"projects/{at.project.label_studio_id}/overview", "document": at.reader.overview(at.key),
        } for at in found]
        return pages().templates.get_template("site/projects.html").render(title="Projects", root="", rows=rows)

    return answer(make, [(at.key, at.project.title, at.version()) for at in found])


@blueprint.get("/projects/<project>")
def project(project: str) -> Any:
    """To its overview; relative to /projects/, so that it holds behind a proxy with a path of its own."""
    return redirect(f"{desk(project).project.label_studio_id}/overview")


@blueprint.get("/projects/<project>/<any(overview, annotators, tasks, flags, gaps):name>")
def page(project: str, name: str) -> Response:
    """One of the five pages."""
    return _show(project, PAGES["" if name == "overview" else name])


@blueprint.get("/projects/<project>/annotators/<annotator>")
def profile(project: str, annotator: str) -> Response:
    """One annotator."""
    data = (("JSON", f"annotators/{quote(annotator, safe='')}"),)
    return _show(project, Page(name="annotators", title="Annotator", body="site/_profile.html",
                               make=_profile(annotator), data=data))


@blueprint.post("/projects/<project>/flags")
def checked(project: str) -> Any:
    """Keep what somebody said of a flag, from a form; saying the same again takes it back."""
    own = context().services.settings.url
    check_origin(request.headers, own_url=own, is_json=False)
    flag = request.form.get("flag", "")
    check_flag(desk(project), flag, request.form.get("verdict", ""), again=True)
    back = request.form.get("back", "")
    query = f"?{back}" if back.isprintable() else ""
    return redirect(f"flags{query}#flag-{flag}", code=303)


def _show(project: str, page: Page) -> Response:
    """A page of a project, or a page that says what is missing. An unchanged page costs as few queries as can be."""
    try:
        at = desk(project)
        state: list[Any] = [at.version(), at.project.title, at.mask, at.label_studio]
        if page.name in ("", "flags"):
            state.append(at.store.statistics.checks_made(at.key))
        if page.name in ("", "gaps"):
            state.append(at.gaps_version())
        if page.name == "annotators":
            state.append(at.store.statistics.version(at.key, ATTRIBUTIONS))
        return answer(lambda: _render(at, page), *state)
    except ClientError as error:
        return problem_page(error)


def _render(at: Desk, page: Page) -> str:
    look = at.look()
    query = {name: value for name, value in request.args.items() if value}
    frame: dict[str, Any] = {
        "look": look, "root": look.links.root, "page": page.name, "title": page.title, "query": query,
        "standalone": False, "header": None, "body": page.body,
        "data_links": [(words, look.links.api(name)) for words, name in page.data],
    }
    overview = at.reader.overview(at.key)
    if overview is None:
        frame |= {"body": "site/_empty.html", "sentence": NOTHING_YET, "advice": ADVICE, "data_links": []}
    else:
        made = page.make(at, look, query)
        if made.get("which") == "divided":  # the same as data is that list, too
            frame["data_links"] = [(words, f"{href}{'&' if '?' in href else '?'}list=divided"
                                    if words in ("JSON", "CSV") else href) for words, href in frame["data_links"]]
        frame |= {**made, "header": made["document"].header if made.get("document") else overview.header}
        frame |= {"title": made.get("name", page.title), "version": overview.header.version}  # gaps have another one
    return pages().templates.get_template("site/project.html").render(frame)


def problem_page(error: ClientError) -> Response:
    """A page that says what is missing or wrong."""
    root = "../" * (request.path.count("/") - 1)
    title = "Not found" if isinstance(error, NotFound) else "This cannot be shown"
    text = pages().templates.get_template("site/problem.html").render(title=title, sentence=str(error), root=root)
    return Response(text, status=error.status, mimetype="text/html")

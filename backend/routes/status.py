"""GET /: the state of everything, as JSON for programs and as a page for people.

The page has no inline script or style (see the content security policy in `backend.app`), refreshes itself, and works
without JavaScript. Everything in it is escaped by the template.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flask import Blueprint, Response, make_response, render_template, request

from backend.records import Job, JobKind, Version
from backend.routes import sentences
from backend.routes.context import context
from backend.routes.overview import ControlFigures, Overview, ProjectView, overview
from backend.telemetry import VERSION

blueprint = Blueprint("status", __name__)
JOB_NAMES = {
    JobKind.SYNC: "Reading what changed",
    JobKind.RECONCILE: "Comparing with Label Studio",
    JobKind.REREAD: "Reading every task again",
    JobKind.ENCODE: "Encoding tasks",
    JobKind.TRAIN: "Training",
    JobKind.DELIVER: "Delivering predictions",
    JobKind.STATISTICS: "Computing statistics",
    JobKind.GAPS: "Looking at gaps",
}


@blueprint.get("/")
def status() -> Response:
    """The status as a page, or as JSON for who prefers that."""
    shown = overview(context().services)
    wants_page = request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"
    response = make_response(page(shown) if wants_page else as_json(shown))
    response.vary.add("Accept")
    return response


def page(shown: Overview) -> str:
    """The status page in HTML."""
    return render_template("status.html", shown=shown, version=VERSION, say=sentences, job_names=JOB_NAMES)


@blueprint.app_template_filter("ago")
def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in words."""
    return sentences.ago(moment, now)


@blueprint.app_template_filter("number")
def number(value: int) -> str:
    """12345 -> "12 345", with narrow spaces that do not break."""
    return f"{value:,}".replace(",", "\u202f")


def as_json(shown: Overview) -> dict[str, Any]:
    """The status for programs; times in ISO 8601."""
    return {
        "status": "UP",
        "version": VERSION,
        "says": sentences.connection(shown),
        "label_studio": {"url": shown.label_studio_url, "connected": shown.works, "answers": not shown.away},
        "readable": shown.readable,
        "projects": [_project(view, shown.at) for view in shown.projects],
        "problems": list(shown.problems),
    }


def _project(view: ProjectView, now: datetime) -> dict[str, Any]:
    return {
        "project": view.project.key,
        "title": view.project.title,
        "says": sentences.of_project(view, now),
        "model_version": view.answering.name if view.answering else None,
        "published_at": _time(view.answering.created_at if view.answering else None),
        "tasks": view.tasks,
        "votes": view.votes.total,
        "annotators": view.votes.annotators,
        "min_votes": view.min_votes,
        "dirty_tasks": view.dirty,
        "last_sync": _time(view.sync.last_success),
        "jobs": [_job(job) for job in view.jobs],
        "heldout": {each.control: _figures(each) for each in view.figures},
        "consensus": {each.control: {
            "method": each.method, "tasks": each.tasks, "mean_confidence": each.confidence, "alpha": each.alpha,
        } for each in view.crowd},
        "annotator_scores": [{
            "annotator": each.annotator, "name": each.name, "control": each.control, "votes": each.votes,
            "accuracy": each.accuracy, "fault": each.fault or None,
        } for each in view.scores],
        "verdict": sentences.newest_verdict(view),
        "versions": [_version(version) for version in view.versions],
        "delivered": _delivered(view),
        "problems": list(view.problems),
    }


def _job(job: Job) -> dict[str, Any]:
    return {"id": job.id, "kind": job.kind, "state": job.state, "progress": job.progress, "note": job.note}


def _version(version: Version) -> dict[str, Any]:
    return {"name": version.name, "verdict": version.verdict, "at": _time(version.created_at), "reason": version.reason}


def _figures(figures: ControlFigures) -> dict[str, Any]:
    ways = {
        way.name: {"accuracy": way.accuracy, "log_loss": way.log_loss, "weight": way.weight} for way in figures.ways
    }
    return {"votes": figures.heldout_votes, "ways": ways}


def _delivered(view: ProjectView) -> dict[str, Any] | None:
    if view.delivery is None:
        return None
    return {"version": view.delivery.version, "step": view.delivery.step, "at": _time(view.delivery.finished_at)}


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None

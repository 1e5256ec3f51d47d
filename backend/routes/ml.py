"""What Label Studio asks of an ML backend: /setup, /predict, /versions, and /train of its old versions."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, request

from backend.protocol import ProjectRef, parse_predict, parse_project, parse_setup, parse_train
from backend.routes.context import body, context

blueprint = Blueprint("ml", __name__)


@blueprint.post("/setup")
def setup() -> dict[str, Any]:
    """Take the config over and name the version that answers."""
    return {"model_version": context().backend.setup(parse_setup(body()))}


@blueprint.post("/predict")
def predict() -> dict[str, Any]:
    """Predictions for each task, in the order asked."""
    asked = parse_predict(body())
    results = context().backend.predict(
        asked.tasks, asked.context, project=asked.project, label_config=asked.label_config)
    context().metrics.predictions(sum(len(each) for each in results))
    return {"results": results}


@blueprint.post("/train")
def train() -> tuple[dict[str, Any], int]:
    """Queue a training; 201 with its job."""
    return context().backend.train(parse_train(body())), 201


@blueprint.route("/versions", methods=["GET", "POST"])
def versions() -> dict[str, Any]:
    """Versions of the consensus, of one project or of all."""
    return {"versions": context().backend.versions(_project())}


def _project() -> ProjectRef | None:
    """The project of a query string or body; Label Studio names none."""
    given = request.args.get("project") if request.method == "GET" else body().get("project")
    return None if given is None else parse_project(given)

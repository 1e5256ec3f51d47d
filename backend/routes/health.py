"""GET /health: Label Studio asks before everything else and waits one second. Nothing is looked up here."""

from __future__ import annotations

from flask import Blueprint

from backend.routes.context import context
from backend.telemetry import VERSION

blueprint = Blueprint("health", __name__)


@blueprint.get("/health")
def health() -> dict[str, str]:
    """UP, with the name and version of what answers."""
    return {"status": "UP", "model_class": type(context().backend).__name__, "version": VERSION}

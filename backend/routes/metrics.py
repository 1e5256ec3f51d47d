"""GET /metrics: the Prometheus text format."""

from __future__ import annotations

from flask import Blueprint, Response
from prometheus_client import CONTENT_TYPE_LATEST

from backend.routes.context import context

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
def metrics() -> Response:
    """The counters of all web processes and counts from the database."""
    return Response(context().metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})

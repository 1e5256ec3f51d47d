"""POST /webhook: an annotator's Submit waits for this answer (Label Studio gives up after one second)."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from backend.protocol import parse_webhook
from backend.routes.context import body, context

blueprint = Blueprint("webhook", __name__)


@blueprint.post("/webhook")
def webhook() -> tuple[dict[str, Any], int]:
    """Mark what changed, durably, then answer; 201 also for what concerns nobody."""
    return context().backend.receive(parse_webhook(body())), 201

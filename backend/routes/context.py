"""What handlers reach through the current app (there is no module-global app), and how they read a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from flask import current_app, g, request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from backend.protocol import read_json
from backend.routes.large_bodies import SMALL, LargeBodies
from backend.telemetry import Metrics

if TYPE_CHECKING:
    from backend.bootstrap import Services
    from backend.ml_backend import PolyvoxBackend

EXTENSION = "polyvox"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The parts of one app."""

    services: Services
    backend: PolyvoxBackend
    metrics: Metrics
    large: LargeBodies


def context() -> Context:
    """The parts of the app that answers the current request. Needs an app context."""
    return cast(Context, current_app.extensions[EXTENSION])


TIMES, LEAST = 4, 64 * 2**20  # a body may take that many times its limit in memory; bytes that each may take


def body() -> dict[str, Any]:
    """The JSON object in the body. Raises `ClientError`, 413 over the limit, 415 for another content type, 503 while
    other large ones take all the room."""
    if request.mimetype != "application/json" and not request.mimetype.endswith("+json"):
        raise UnsupportedMediaType("The content type is not application/json.")
    raw = _raw()
    if request.content_length is None and len(raw) >= (request.max_content_length or 0):
        raise RequestEntityTooLarge  # a chunked body is cut off at the limit without a word
    return read_json(raw, most=most_memory(request.max_content_length or 0))


def _raw() -> bytes:
    """The bytes of the body; `done` in `g` is what to call after a large one. Raises `Busy`."""
    if request.content_length is not None and request.content_length <= SMALL:
        return request.get_data(cache=False)
    raw, g.done = context().large.read(lambda: request.get_data(cache=False))
    return raw


def most_memory(limit: int) -> int:
    """The bytes that a body may take in memory, and all large ones of a moment, where `limit` is that of its length."""
    return max(TIMES * limit, LEAST)

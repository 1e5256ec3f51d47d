"""Pages as they were sent: rendered once for each state of what they show, then answered from memory or with 304."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

from flask import Blueprint, Response, current_app, request
from flask.blueprints import BlueprintSetupState
from jinja2 import Environment

from backend.report.html import environment
from backend.telemetry import VERSION

EXTENSION = "polyvox-pages"
MOST_BYTES = 16 * 1024 * 1024


class Pages:
    """The templates of one app and the pages made of them, the least used thrown away first. Safe for threads."""

    def __init__(self, templates: Environment, *, most_bytes: int = MOST_BYTES) -> None:
        self.templates = templates
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def page(self, key: str, make: Callable[[], str], keep: Callable[[], bool]) -> bytes:
        """The page of this key, made now unless it is there, and kept if `keep` says so once it is made."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make().encode("utf-8", "replace")
        if not keep():
            return made
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._bytes += len(made)
            while self._bytes > self._most_bytes and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1])
        return made


def keep_pages(blueprint: Blueprint) -> None:
    """Give every app that the blueprint is registered with pages of its own."""

    def register(state: BlueprintSetupState) -> None:
        state.app.extensions[EXTENSION] = Pages(environment())

    blueprint.record(register)


def pages() -> Pages:
    """Those of the current app."""
    return cast(Pages, current_app.extensions[EXTENSION])


def answer(make: Callable[[], str], *state: Any, keep: Callable[[], bool] = lambda: True) -> Response:
    """The page of the current address in a `state`, from memory where it did not change; 304 where the browser has it.

    `state` is all that the page depends on beside its address. A page that `keep` refuses, asked after it was made, is
    made anew at the next request.
    """
    text = repr((VERSION, request.path, request.query_string, state))
    key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    response = Response(mimetype="text/html")
    response.set_etag(key)
    response.headers["Cache-Control"] = "private, no-cache"
    if request.if_none_match.contains_weak(key):
        response.status_code = 304
        return response
    response.set_data(pages().page(key, make, keep))
    if not keep():
        del response.headers["ETag"]
    return response

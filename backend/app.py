"""The web app: `create_app(services)` makes a Flask app around one served object. Nothing here is module-global.

Invariants: every answer of an error is JSON with one sentence and no traceback; an unexpected error shows a reference
id, under which the log has the details; nothing but /health is reachable without credentials once they are set, under
a name that is not ours, or from another site's pages; bodies over the limit are refused unread. No thread is started
and no training runs here.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hmac
import logging
import time
import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING

from flask import Flask, Response, g, jsonify, request
from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException

from backend.errors import Busy, ClientError, Unauthorized
from backend.routes import BLUEPRINTS
from backend.routes.context import EXTENSION, Context, most_memory
from backend.routes.hosts import Hosts
from backend.routes.large_bodies import LargeBodies
from backend.routes.same_origin import Forbidden, check_foreign
from backend.services.webhook_check import SECRET_HEADER
from backend.settings import Settings
from backend.store.patience import AWAY, patience, why
from backend.telemetry import Metrics

if TYPE_CHECKING:
    from backend.bootstrap import Services
    from backend.ml_backend import PolyvoxBackend

logger = logging.getLogger(__name__)

PATIENCE_S = 1.0  # for locks of the database, in all transactions of a request together
OPEN_ROUTES = frozenset({"/health"})
FOR_PROGRAMS = frozenset({"ml", "webhook", "legacy", "metrics"})  # blueprints to which no link leads people
QUIET_ROUTES = frozenset({  # asked every few seconds
    "/health", "/metrics", "/static/<path:filename>", "/", "/api/projects/<project>/jobs",
})
CONTENT_SECURITY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def create_app(services: Services, backend: PolyvoxBackend | None = None) -> Flask:
    """The app that gunicorn serves. The services stay the caller's, who closes them."""
    if backend is None:
        from backend.ml_backend import PolyvoxBackend  # imports torch; --help and tests of the rest do without

        backend = PolyvoxBackend(services=services)
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = int(services.settings.max_body_mb * 1024 * 1024)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    metrics = Metrics(services.store)
    large = LargeBodies(most_memory(app.config["MAX_CONTENT_LENGTH"]))
    app.extensions[EXTENSION] = Context(services=services, backend=backend, metrics=metrics, large=large)
    _be_impatient(app)
    _guard(app, services.settings)
    _measure(app, metrics)
    _answer_errors(app)
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    return app


def _be_impatient(app: Flask) -> None:
    """No request waits for the database much longer than whoever asked waits for the request."""

    @app.before_request
    def begin() -> None:
        g.patience = ExitStack()
        g.patience.enter_context(patience(PATIENCE_S))

    @app.teardown_request
    def end(_: BaseException | None) -> None:
        if "patience" in g:
            g.patience.close()
        if "done" in g:  # with a large body
            g.done()


def _guard(app: Flask, settings: Settings) -> None:
    """Our names only, nobody else's pages; basic auth for everything, and the secret header for webhooks, which cannot
    carry basic auth.

    With a secret alone Label Studio's START_TRAINING, which carries no header, is refused: to let it in would mean to
    read bodies of anybody, and to let anybody queue work. The status page says so, and that basic auth is the cure.
    """

    hosts = Hosts(settings)

    @app.before_request
    def check() -> None:
        if _route() in OPEN_ROUTES:
            return
        hosts.check(request.headers.get("Host", ""))
        check_foreign(request.headers, method=request.method, own_url=settings.url,
                      is_page=request.blueprint not in FOR_PROGRAMS)
        if not allowed(_route(), request.headers, settings):
            ways = ["basic auth"] if settings.basic_auth_user else []
            ways += [f"the header {SECRET_HEADER}"] if settings.webhook_secret and _route() == "/webhook" else []
            raise Unauthorized(f"Credentials are missing or wrong; expected {' or '.join(ways)}.")


def allowed(route: str, headers: Headers, settings: Settings) -> bool:
    """Whether these headers open this route."""
    wants_login, secret = bool(settings.basic_auth_user), settings.webhook_secret
    if route in OPEN_ROUTES or not (wants_login or (secret and route == "/webhook")):
        return True
    # Both are always compared, so that the time taken tells nothing.
    login_fits = wants_login and _login_fits(headers.get("Authorization", ""), settings)
    secret_fits = bool(secret) and hmac.compare_digest(headers.get(SECRET_HEADER, "").encode(), secret.encode())
    return login_fits or (route == "/webhook" and secret_fits)


def _login_fits(header: str, settings: Settings) -> bool:
    scheme, _, encoded = header.partition(" ")
    try:
        given = base64.b64decode(encoded.strip(), validate=True) if scheme.lower() == "basic" else b""
    except (binascii.Error, ValueError):
        given = b""
    wanted = f"{settings.basic_auth_user}:{settings.basic_auth_pass}"
    return any([hmac.compare_digest(given, encoded) for encoded in _encodings(wanted)])


def _encodings(login: str) -> list[bytes]:
    """What clients make of a login: browsers send UTF-8, Label Studio's (requests) Latin-1 where it can.

    An encoding that lacks a character is left out: with "?" in its place, "?" would open as well.
    """
    found = []
    for encoding, errors in (("utf-8", "surrogateescape"), ("latin-1", "strict")):  # escapes: bytes of the environment
        with contextlib.suppress(UnicodeEncodeError):
            found.append(login.encode(encoding, errors))
    return found


def _measure(app: Flask, metrics: Metrics) -> None:
    """Count, time and log each request; set the headers that every answer has."""

    @app.before_request
    def start() -> None:
        g.started_s = time.perf_counter()

    @app.after_request
    def finish(response: Response) -> Response:
        seconds = time.perf_counter() - g.get("started_s", time.perf_counter())
        metrics.request(route=_route(), method=request.method, status=response.status_code, seconds=seconds)
        level = logging.DEBUG if _route() in QUIET_ROUTES and response.status_code < 400 else logging.INFO
        logger.log(level, "%s %s %d in %.0f ms", request.method, _route(), response.status_code, seconds * 1000)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["Content-Security-Policy"] = CONTENT_SECURITY
        response.headers["X-Content-Type-Options"] = "nosniff"
        # Nothing leaves for other sites; our own forms still carry an Origin, which `same_origin` looks at.
        response.headers["Referrer-Policy"] = "same-origin"
        return response


def _answer_errors(app: Flask) -> None:
    @app.errorhandler(ClientError)
    def refused(error: ClientError) -> Response:
        response = _error(str(error), error.status)
        if isinstance(error, Unauthorized):
            response.headers["WWW-Authenticate"] = 'Basic realm="Polyvox", charset="UTF-8"'
        if isinstance(error, Busy):
            response.headers["Retry-After"] = "5"
        if isinstance(error, Forbidden):
            response.status = f"{error.status} {error.reason}"
        return response

    @app.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        original = error.get_response()
        if error.code is None or error.code < 400:  # a redirect
            return Response(original.get_data(), original.status_code, original.headers)
        response = _error(sentence_of(error), error.code)
        if "Allow" in original.headers:
            response.headers["Allow"] = original.headers["Allow"]
        return response

    def away(error: Exception) -> Response:
        logger.warning("%s %s: the database %s", request.method, _route(), why(error))
        response = _error(f"The database {why(error)}, so this cannot be answered now; try again in a moment.", 503)
        response.headers["Retry-After"] = "5"
        return response

    for each in AWAY:
        app.register_error_handler(each, away)

    @app.errorhandler(Exception)
    def failed(error: Exception) -> Response:
        reference = uuid.uuid4().hex[:12]
        logger.error("%s %s failed, reference %s", request.method, _route(), reference, exc_info=error)
        response = jsonify(
            error="Something went wrong inside Polyvox; its log has the details under the reference.",
            reference=reference)
        response.status_code = 500
        return response


def sentence_of(error: HTTPException) -> str:
    """One sentence for the errors that Flask finds itself."""
    settings: Settings = _settings()
    sentences = {
        404: "There is no such address here.",
        405: f"{request.method} is not possible at this address.",
        413: f"The body is over the limit of {settings.max_body_mb:g} MB.",
        415: "The content type does not fit; expected application/json.",
    }
    return sentences.get(error.code or 0) or str(error.description or error.name)


def _error(sentence: str, status: int) -> Response:
    response = jsonify(error=sentence)
    response.status_code = status
    return response


def _settings() -> Settings:
    from backend.routes.context import context

    return context().services.settings


def _route() -> str:
    """The pattern of the route; paths themselves are chosen by callers and are neither counted nor logged."""
    return str(request.url_rule.rule) if request.url_rule is not None else "unknown"

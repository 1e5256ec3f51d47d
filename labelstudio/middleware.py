"""Gives the logged-in annotator the one pre-annotation that is theirs, in the label stream and in the quick view.

Label Studio keeps one selected prediction version a project and knows no per-annotator predictions. This middleware
replaces the list `predictions` in three answers (next task twice, one task) by what `choice.decide` says, each under
the title that `titles.title` gives it. Invariants:
- Only browser sessions are filtered. API tokens see everything, so that Polyvox, exports and scripts miss nothing.
- At most two queries a request (a third for names where all tabs are shown), all portable; the header `Server-Timing`
  tells how many, how long, and what was shown.
- Drafts and annotations in the answer are never touched.
- Whatever goes wrong here, Label Studio's own answer is served, and each kind of failure is logged once.

Label Studio's settings are the switch: where `show_collab_predictions` is off, nothing is shown.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from traceback import walk_tb
from typing import Any

from django.conf import settings  # type: ignore[import-not-found,unused-ignore]
from django.db import connection  # type: ignore[import-not-found,unused-ignore]
from django.db.models import Q  # type: ignore[import-not-found,unused-ignore]

from labelstudio.choice import CONSENSUS, Candidate, Decision, decide, own_name
from labelstudio.control_arm import in_control_arm
from labelstudio.options import Options
from labelstudio.titles import others, title

logger = logging.getLogger("labelstudio.middleware")

_GET_TASK = re.compile(r"/api/(?:projects/[0-9]+/next|tasks/[0-9]+)/?")
_ACTIONS = re.compile(r"/api/dm/actions/?")


class OwnPredictions:
    """Django middleware; put it last in MIDDLEWARE."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        self._get_response = get_response
        self._options: Options = settings.POLYVOX
        self._reported: set[tuple[type[BaseException], int]] = set()

    def __call__(self, request: Any) -> Any:
        response = self._get_response(request)
        if not _serves_a_task(request) or not _is_browser_session(request, response):
            return response
        queries = _QueryCount()
        start = time.perf_counter()
        try:
            with connection.execute_wrapper(queries):
                outcome = self._filter(request, response)
        except Exception as error:  # an annotator must never be kept from labelling by what only adds a suggestion
            self._report(error)
            outcome = "failed"
        if outcome:
            duration_ms = (time.perf_counter() - start) * 1000
            timing = f'polyvox;dur={duration_ms:.2f};desc="{outcome}", polyvox-queries;desc="{queries.count}"'
            earlier = response.get("Server-Timing")
            response["Server-Timing"] = f"{earlier}, {timing}" if earlier else timing
        return response

    def _filter(self, request: Any, response: Any) -> str:
        """Replace the predictions in `response`; returns what was shown, "" where the answer is none of ours."""
        task = getattr(response, "data", None)
        if response.status_code != 200 or not isinstance(task, dict) or not isinstance(task.get("predictions"), list):
            return ""
        annotator = str(request.user.id)
        served = {item["id"]: item for item in task["predictions"]}
        candidates = [Candidate(item["id"], item["model_version"] or "") for item in task["predictions"]]
        stored, withheld = self._stored(int(task["id"]), annotator)
        decision = decide(candidates, stored, annotator, withheld=withheld, all_tabs=self._options.show_all_tabs)
        predictions = _titled(_full(decision, served), request.user)
        if predictions != task["predictions"]:
            _serve(response, predictions)
        return decision.reason

    def _stored(self, task_id: int, annotator: str) -> tuple[list[Candidate], bool]:
        """The task's own and consensus predictions, and whether they are withheld from the annotator. One query."""
        from tasks.models import Prediction  # type: ignore[import-not-found,unused-ignore]  # models load after settings

        # A prefix narrows the rows; `choice` compares the whole name (LIKE may ignore case and knows no numbers).
        wanted = Q(model_version__startswith=f"{own_name(annotator)}@r") | Q(model_version__startswith=f"{CONSENSUS}@r")
        rows = list(
            Prediction.objects.filter(wanted, task_id=task_id).values_list(
                "id", "model_version", "task__project_id", "task__project__show_collab_predictions"
            )
        )
        if not rows:
            return [], False
        project_id, shown = rows[0][2], rows[0][3]
        withheld = not shown or in_control_arm(project_id, task_id, annotator, self._options.control_arm_percent)
        return [Candidate(row[0], row[1]) for row in rows], withheld

    def _report(self, error: Exception) -> None:
        """Log a failure with its traceback the first time it happens; a broken table must not fill the disk."""
        kind = (type(error), [line for _, line in walk_tb(error.__traceback__)][-1])
        if kind not in self._reported:
            self._reported.add(kind)
            logger.error("Own pre-annotation failed, Label Studio's answer is served (logged once).", exc_info=error)


class _QueryCount:
    """Counts the database queries made while it is installed as an execute wrapper."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: Any, context: Any) -> Any:
        self.count += 1
        return execute(sql, params, many, context)


def _serves_a_task(request: Any) -> bool:
    """Whether the answer is a task that the front-end opens: next task (both ways) or one task."""
    if request.method == "GET":
        return _GET_TASK.fullmatch(request.path_info) is not None
    is_action = request.method == "POST" and _ACTIONS.fullmatch(request.path_info) is not None
    return is_action and request.GET.get("id") == "next_task"


def _is_browser_session(request: Any, response: Any) -> bool:
    """Whether a session cookie, and no token, proved who is asking."""
    from rest_framework.authentication import SessionAuthentication  # type: ignore[import-not-found,unused-ignore]

    # A token leaves its own authenticator on the view's request; a personal access token is turned into a plain user
    # by Label Studio's middleware before, which sets `is_jwt`.
    view_request = (getattr(response, "renderer_context", None) or {}).get("request")
    authenticator = getattr(view_request, "successful_authenticator", None)
    return isinstance(authenticator, SessionAuthentication) and not getattr(request, "is_jwt", False)


def _full(decision: Decision, served: dict[int, Any]) -> list[Any]:
    """The decided predictions as Label Studio writes them; what it did not serve is fetched (one query at most)."""
    from tasks.models import Prediction
    from tasks.serializers import PredictionSerializer  # type: ignore[import-not-found,unused-ignore]

    missing = [prediction_id for prediction_id in decision.ids if prediction_id not in served]
    fetched = {}
    if missing:
        found = Prediction.objects.filter(id__in=missing)
        fetched = {item["id"]: item for item in PredictionSerializer(found, many=True).data}
    known = served | fetched  # one that was deleted in between is in neither, and is left out
    return [known[prediction_id] for prediction_id in decision.ids if prediction_id in known]


def _titled(predictions: list[Any], user: Any) -> list[Any]:
    """The predictions under their titles; one query where some are of other annotators."""
    from users.models import User  # type: ignore[import-not-found,unused-ignore]

    annotator, names = str(user.id), {}
    if wanted := others((item["model_version"] or "" for item in predictions), annotator):
        # Anybody may store predictions under any name, so nobody outside the organisation is named.
        found = User.objects.filter(id__in=wanted, organizations=user.active_organization_id)
        names = {str(each.id): each.name_or_email() for each in found}
    return [
        {**item, "model_version": title(item["model_version"], annotator, names)} if item["model_version"] else item
        for item in predictions
    ]


def _serve(response: Any, predictions: list[Any]) -> None:
    """Write the answer again with other predictions; if that fails, the bytes that were there before stay."""
    before = response.data["predictions"]
    response.data["predictions"] = predictions
    try:
        content = response.rendered_content
    except BaseException:
        response.data["predictions"] = before
        raise
    response.content = content
    if response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))

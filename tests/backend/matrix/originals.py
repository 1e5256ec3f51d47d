"""The valid requests that are mutated: every recorded one, and one for each route that no recording has."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.backend.web.conftest import recorded, recorded_requests
from tests.backend.web.test_replay import ROUTES
from tests.backend.web.trained import CONFIG, KEY


@dataclass(frozen=True, kw_only=True)
class Original:
    """A request that is answered with 2xx."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None = None
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)


MADE = (
    Original(name="train", method="POST", path="/train", body={"project": KEY, "annotations": []}),
    Original(name="train-object", method="POST", path="/train", body={"project": {
        "id": 1, "title": "Text choices", "label_config": CONFIG, "created_at": "2026-11-27T22:19:52.718718Z"}}),
    Original(name="versions-post", method="POST", path="/versions", body={"project": KEY}),
    Original(name="versions-of-one", method="GET", path="/versions", query="project=" + KEY),
    Original(name="validate", method="POST", path="/validate", body={"config": CONFIG}),
    Original(name="is-training", method="GET", path="/is_training", query="project=" + KEY),
    Original(name="delete", method="POST", path="/delete", body={"project": KEY}),
    Original(name="duplicate", method="POST", path="/duplicate_model", body={
        "project_src": KEY, "project_dst": "2.1795817992"}),
    Original(name="overview", method="GET", path="/"),
    Original(name="page", method="GET", path="/", headers={"Accept": "text/html"}),
    Original(name="metrics", method="GET", path="/metrics"),
    Original(name="style", method="GET", path="/static/status.css"),
    Original(name="webhook-without-payload", method="POST", path="/webhook", body={"action": "ANNOTATION_CREATED"}),
    Original(name="predict-known-task", method="POST", path="/predict", body={
        "project": KEY, "label_config": "", "tasks": [{"id": 1003, "data": {"text": "love great phone"}}],
        "params": {"context": {"result": []}}}),
)


def originals(job_id: str) -> list[Original]:
    """All of them; `job_id` is of a job that exists."""
    job = Original(name="job-status", method="POST", path="/job_status", body={"job": job_id})
    return [*(_recorded(name) for name in recorded_requests()), *MADE, job]


def _recorded(name: str) -> Original:
    request = recorded(name)
    last = request["path"].rsplit("/", 1)[-1]
    path = "/" + (last if last in ROUTES else "webhook")
    body = None if request["body"] is None else json.loads(json.dumps(request["body"]))
    return Original(name=name.removesuffix(".json"), method=request["method"], path=path, body=body)

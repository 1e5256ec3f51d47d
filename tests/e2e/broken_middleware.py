"""Runs inside Label Studio's environment: breaks the middleware and prints what annotators then get, as JSON.

Started by test_middleware_failure.py over a copy of the template database; uses Django's test client with a real
session, so everything but the network is Label Studio's own.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import django


class Messages(logging.Handler):
    """Collects what a logger says."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage() + (" +traceback" if record.exc_info else ""))


def main(email: str, password: str) -> dict[str, Any]:
    django.setup()
    from django.db.models.query import QuerySet
    from django.test import Client
    from projects.models import Project
    from rest_framework.renderers import JSONRenderer
    from tasks.models import Prediction, Task
    from users.models import User

    messages = Messages()
    logging.getLogger("labelstudio.middleware").addHandler(messages)
    user = User.objects.get(email=email)
    client = Client()
    client.get("/user/login/")
    token = client.cookies["csrftoken"].value
    client.post("/user/login/", {"email": email, "password": password, "csrfmiddlewaretoken": token})
    project = Project.objects.create(
        title="Broken", created_by=user, organization=user.active_organization, show_collab_predictions=True,
        label_config='<View><Text name="text" value="$text"/><TextArea name="t" toName="text"/></View>',
    )
    task = Task.objects.create(project=project, data={"text": "Hello"})
    for version in ("annotator:0@r1", f"annotator:{user.id}@r1", "consensus@r1"):
        Prediction.objects.create(task=task, project=project, model_version=version, result=[])

    def get() -> dict[str, Any]:
        response = client.get(f"/api/tasks/{task.id}/")
        versions = [prediction["model_version"] for prediction in json.loads(response.content)["predictions"]]
        return {
            "status": response.status_code, "versions": versions, "timing": response.headers.get("Server-Timing", ""),
            "whole": len(response.content) == int(response.headers["Content-Length"]),
        }

    outcome: dict[str, Any] = {"healthy": get()}
    real_rows, real_render = QuerySet.values_list, JSONRenderer.render

    def no_rows(self: Any, *fields: Any, **kwargs: Any) -> Any:
        if self.model is Prediction and "model_version" in fields:
            raise RuntimeError("the table is not what it was")
        return real_rows(self, *fields, **kwargs)

    QuerySet.values_list = no_rows
    outcome["broken query"] = [get(), get(), get()]
    QuerySet.values_list = real_rows

    def no_second_rendering(self: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, dict) and len(data.get("predictions", ())) == 1:
            raise RuntimeError("cannot be written")
        return real_render(self, data, *args, **kwargs)

    JSONRenderer.render = no_second_rendering
    outcome["broken rendering"] = [get(), get()]
    JSONRenderer.render = real_render
    outcome["healed"] = get()
    outcome["messages"] = messages.texts
    return outcome


if __name__ == "__main__":
    print("OUTCOME " + json.dumps(main(*sys.argv[1:])))

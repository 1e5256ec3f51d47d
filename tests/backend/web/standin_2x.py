"""A stand-in for label-studio-ml 2.x (git master, not on PyPI): a base class and a server that behave like it where a
model class can tell. Written from its observable behaviour (facts of 2.0.1.dev0), not a copy:

- an instance for each request, `Model(project_id=..., label_config=...)`, the id without the creation time;
- the constructor takes the configuration, asks for `model_version`, sets "0.0.1" where there is none, calls `setup()`;
- state is text by (project id, key); anything else raises ValueError, so extra parameters that are an object do;
- /setup answers `model.get("model_version")`; /predict hands `context` apart from the other params;
- /webhook runs `fit(event, data)` inside the request, for four events only, one of which is never sent.
"""

from __future__ import annotations

from typing import Any, ClassVar

from flask import Flask, jsonify, request

TRAIN_EVENTS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATION_DELETED", "START_TRAINING")


class LabelStudioMLBase:
    """The base class of 2.x as far as it reaches into a subclass."""

    INITIAL_MODEL_VERSION = "0.0.1"
    kept: ClassVar[dict[tuple[str, str], str]] = {}

    def __init__(self, project_id: str | None = None, label_config: str | None = None) -> None:
        self.project_id = project_id or ""
        if label_config is not None:
            self.set("label_config", label_config)
        if not self.model_version:
            self.set("model_version", self.INITIAL_MODEL_VERSION)
        self.setup()

    def setup(self) -> None: ...

    def get(self, key: str) -> str | None:
        return self.kept.get((self.project_id, key))

    def set(self, key: str, value: str) -> None:
        if not isinstance(value, str):
            raise ValueError("Value must be a string")
        self.kept[self.project_id, key] = value

    def has(self, key: str) -> bool:
        return (self.project_id, key) in self.kept

    def set_extra_params(self, extra_params: Any) -> None:
        self.set("extra_params", extra_params)

    @property
    def label_config(self) -> str | None:
        return self.get("label_config")

    @property
    def model_version(self) -> str | None:
        return self.get("model_version")

    def predict(self, tasks: list[dict[str, Any]], context: dict[str, Any] | None = None, **kwargs: Any) -> Any: ...

    def fit(self, event: str, data: dict[str, Any], **additional_params: Any) -> Any: ...


def server(model_class: Any) -> Flask:
    """The routes of 2.x."""
    app = Flask("standin")

    @app.get("/health")
    def health() -> Any:
        return jsonify(status="UP", model_class=model_class.__name__)

    @app.post("/setup")
    def setup() -> Any:
        data = request.get_json()
        model = model_class(project_id=data["project"].split(".", 1)[0], label_config=data["schema"])
        if data.get("extra_params"):
            model.set_extra_params(data["extra_params"])
        return jsonify(model_version=model.get("model_version"))

    @app.post("/predict")
    def predict() -> Any:
        data = request.get_json()
        project = str(data.get("project"))
        params = data.get("params", {})
        context = params.pop("context", {})
        model = model_class(project_id=project.split(".", 1)[0] if project else None, label_config=data["label_config"])
        return jsonify(results=model.predict(data["tasks"], context=context, **params) or [])

    @app.post("/webhook")
    def webhook() -> Any:
        data = request.get_json()
        event = data.pop("action")
        if event not in TRAIN_EVENTS:
            return jsonify(status="Unknown event"), 200
        model = model_class(str(data["project"]["id"]), label_config=data["project"]["label_config"])
        return jsonify(result=model.fit(event, data), status="ok"), 201

    return app

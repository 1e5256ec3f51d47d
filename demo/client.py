"""A small client of Label Studio's API: what setting up a demo or a test takes, as a person would do it.

Polyvox's own client (`backend.client`) is deliberately not used: the demo stands for the people around Polyvox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import requests

TIMEOUT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody who can log in and call the API."""

    id: int
    email: str
    password: str
    token: str  # legacy API token, sent as "Token ..."
    personal_token: str  # a refresh token; never sent as it is

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class Client:
    """API calls with one account's legacy token. Every failure raises `requests.HTTPError` with the answer's text."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Token {token}"

    def call(self, method: str, path: str, **kwargs: Any) -> Any:
        """Call `path` (with a leading slash); returns the decoded answer, None where it is empty."""
        response = self._session.request(method, self.url + path, timeout=kwargs.pop("timeout", TIMEOUT_S), **kwargs)
        if not response.ok:
            message = f"{method} {path}: {response.status_code} {response.text[:500]}"
            raise requests.HTTPError(message, response=response)
        return response.json() if response.content else None

    def create_project(self, title: str, label_config: str, **settings: Any) -> int:
        """Returns the id; a title has three characters or more."""
        body = {"title": title, "label_config": label_config, **settings}
        return int(self.call("POST", "/api/projects/", json=body)["id"])

    def import_tasks(self, project: int, tasks: Sequence[Mapping[str, Any]]) -> list[int]:
        """Import tasks, each `{"data": ..., "annotations": [...]}`; returns their ids in the order given."""
        before = set(self.task_ids(project))
        self.call("POST", f"/api/projects/{project}/import", json=list(tasks), timeout=300)
        return [task for task in self.task_ids(project) if task not in before]

    def task_ids(self, project: int) -> list[int]:
        """All task ids of a project, ascending."""
        return [int(task["id"]) for task in self.tasks(project, include="id")]

    def tasks(self, project: int, **params: Any) -> list[dict[str, Any]]:
        """All tasks of a project, ordered by id; `params` are passed on."""
        found: list[dict[str, Any]] = []
        page, page_size = 1, 200
        while True:
            query = {"project": project, "page": page, "page_size": page_size, **params}
            answer = self.call("GET", "/api/tasks", params=query)
            found += answer["tasks"]
            if len(found) >= answer["total"] or not answer["tasks"]:
                return sorted(found, key=lambda task: int(task["id"]))
            page += 1

    def import_predictions(self, project: int, predictions: Sequence[Mapping[str, Any]]) -> None:
        """Import `{"task", "result", "score", "model_version"}`."""
        self.call("POST", f"/api/projects/{project}/import/predictions", json=list(predictions), timeout=300)

    def annotate(self, task: int, result: Sequence[Mapping[str, Any]], **fields: Any) -> int:
        """Submit an annotation as this account; returns its id."""
        body = {"result": list(result), "lead_time": 5.0, **fields}
        return int(self.call("POST", f"/api/tasks/{task}/annotations/", json=body)["id"])

    def update_project(self, project: int, **settings: Any) -> None:
        self.call("PATCH", f"/api/projects/{project}/", json=settings)

    def add_ml_backend(self, project: int, url: str, title: str, login: tuple[str, str] | None = None) -> int:
        """Connect a machine-learning backend; Label Studio calls its /health and /setup at once. `login`: user and
        password that it wants."""
        body = {"project": project, "url": url, "title": title, "is_interactive": False, **basic_auth(login)}
        return int(self.call("POST", "/api/ml", json=body)["id"])

    def sign_up(self, email: str, password: str) -> Account:
        """A new annotator, by the sign-up form and the organisation's invitation, as a person would."""
        invitation = self.call("GET", "/api/invite")["token"]
        browser = requests.Session()
        form = f"{self.url}/user/signup/?token={invitation}"
        browser.get(form, timeout=TIMEOUT_S).raise_for_status()
        fields = {
            "email": email, "password": password, "allow_newsletters": "false",
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
        }
        answer = browser.post(form, data=fields, headers={"Referer": form}, allow_redirects=False, timeout=TIMEOUT_S)
        if answer.status_code != 302:
            raise requests.HTTPError(f"sign-up of {email}: {answer.status_code}", response=answer)
        me = browser.get(f"{self.url}/api/current-user/whoami", timeout=TIMEOUT_S).json()
        legacy = browser.get(f"{self.url}/api/current-user/token", timeout=TIMEOUT_S).json()["token"]
        headers = {"X-CSRFToken": browser.cookies["csrftoken"], "Referer": self.url}
        personal = browser.post(f"{self.url}/api/token/", headers=headers, timeout=TIMEOUT_S).json()["token"]
        return Account(id=me["id"], email=email, password=password, token=legacy, personal_token=personal)

    def access_token(self, personal_token: str) -> str:
        """A bearer token, valid for five minutes, from a personal access token."""
        body = {"refresh": personal_token}
        return str(requests.post(f"{self.url}/api/token/refresh/", json=body, timeout=TIMEOUT_S).json()["access"])


def basic_auth(login: tuple[str, str] | None) -> dict[str, str]:
    """What Label Studio is told of how a machine-learning backend is to be asked."""
    if login is None:
        return {}
    return {"auth_method": "BASIC_AUTH", "basic_auth_user": login[0], "basic_auth_pass": login[1]}


def choice(control: str, to_name: str, label: str, **extra: Any) -> dict[str, Any]:
    """One region of a single-choice answer, as Label Studio's editor writes it."""
    value = {"choices": [label]}
    return {"id": f"{control}-1", "from_name": control, "to_name": to_name, "type": "choices", "value": value, **extra}

"""A running Label Studio as the tests see it: addresses, accounts, sessions, and projects of one label config."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from demo.client import Account, Client, choice
from demo.label_studio import FIRST_START_TIMEOUT_S, START_TIMEOUT_S, VERSION, Owner, label_studio, url
from demo.processes import Service, free_port

LABEL_CONFIG = """<View>
  <Text name="text" value="$text"/>
  <Choices name="polite" toName="text" choice="single" showInline="true">
    <Choice value="Polite"/><Choice value="Neutral"/><Choice value="Impolite"/>
  </Choices>
</View>"""

OWNER = Owner(email="owner@example.com", password="owner-password-1", token="0123456789abcdef0123456789abcdef01234567")
PASSWORD = "annotator-password-1"
ANNOTATORS = tuple(f"annotator{number}@example.com" for number in range(1, 5))
TEMPLATE = f"label-studio-{VERSION}-{len(ANNOTATORS)}-key"  # change the name whenever what is prepared changes


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelStudio:
    """A running server and who can use it."""

    url: str
    service: Service
    owner: Client
    annotators: tuple[Account, ...]

    def as_annotator(self, account: Account) -> Client:
        """API calls with this annotator's token."""
        return Client(self.url, account.token)

    def session(self, account: Account) -> requests.Session:
        """A session logged in as a browser is: by the form, with cookies and without a token."""
        session = requests.Session()
        form = f"{self.url}/user/login/"
        session.get(form, timeout=60).raise_for_status()
        fields = {
            "email": account.email, "password": account.password, "csrfmiddlewaretoken": session.cookies["csrftoken"]
        }
        answer = session.post(form, data=fields, headers={"Referer": form}, allow_redirects=False, timeout=60)
        assert answer.status_code == 302, f"log-in of {account.email}: {answer.status_code}"
        session.headers["X-CSRFToken"] = session.cookies["csrftoken"]
        return session

    def project(self, texts: Sequence[str], **settings: Any) -> tuple[int, list[int]]:
        """A new project of single-choice texts that several may label; returns its id and its task ids."""
        project = self.owner.create_project("Politeness", LABEL_CONFIG, maximum_annotations=5, **settings)
        return project, self.owner.import_tasks(project, [{"data": {"text": text}} for text in texts])

    def project_with_one_task(self, wanted: Callable[[int, int], bool], text: str) -> tuple[int, int]:
        """A project whose only task satisfies `wanted(project id, task id)`; the stream then begins with it."""
        project, tasks = self.project([f"{text} ({number})" for number in range(80)])
        task = next(task for task in tasks if wanted(project, task))
        others = {"selectedItems": {"all": True, "excluded": [task]}}
        self.owner.call("POST", f"/api/dm/actions?id=delete_tasks&project={project}", json=others)
        return project, task

    @contextmanager
    def tab_of_task(self, project: int, task: int) -> Iterator[int]:
        """A Data Manager tab that holds this task only, so that its label stream serves it; removed on leaving."""
        only = {"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": task}
        data = {"title": f"Task {task}", "filters": {"conjunction": "and", "items": [only]}}
        tab = int(self.owner.call("POST", "/api/dm/views", json={"project": project, "data": data})["id"])
        try:
            yield tab
        finally:
            self.owner.call("DELETE", f"/api/dm/views/{tab}")

    def predict(self, project: int, task: int, labels: Mapping[str, str], *, score: float = 0.7) -> None:
        """Import one prediction for each version -> label, and select the last consensus version."""
        self.owner.import_predictions(
            project,
            [{"task": task, "result": [choice("polite", "text", label, score=score)], "score": score,
              "model_version": version} for version, label in labels.items()],
        )
        consensus = [version for version in labels if version.startswith("consensus@")]
        if consensus:
            self.owner.update_project(project, model_version=consensus[-1], show_collab_predictions=True)


def template(cache: Path) -> Path:
    """A data folder with the owner, the organisation and annotators; made once, then copied by every start."""
    ready = cache / TEMPLATE
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{TEMPLATE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test process may be making it; two would take twice as long
        if not ready.exists():
            _prepare(cache, ready)
    return ready


def _prepare(cache: Path, ready: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        data = Path(scratch) / "data"
        port = free_port()
        with label_studio(data=data, port=port, owner=OWNER, log=Path(scratch) / "log.txt") as service:
            service.wait_until_up(FIRST_START_TIMEOUT_S)
            client = Client(url(port), OWNER.token)
            accounts = [client.sign_up(email, PASSWORD).to_json() for email in ANNOTATORS]
        (data / "accounts.json").write_text(json.dumps(accounts))
        os.rename(data, ready)


def start(cache: Path, folder: Path, env: Mapping[str, str]) -> LabelStudio:
    """Start a server over a fresh copy of the template in `folder`. The caller stops `service`."""
    data = folder / "label-studio"
    shutil.copytree(template(cache), data)
    port = free_port()
    service = label_studio(data=data, port=port, owner=OWNER, log=folder / "label-studio.log", extra_env=env)
    service.start()
    try:
        service.wait_until_up(START_TIMEOUT_S)
    except BaseException:
        service.stop()
        raise
    accounts = tuple(Account(**fields) for fields in json.loads((data / "accounts.json").read_text()))
    return LabelStudio(url=url(port), service=service, owner=Client(url(port), OWNER.token), annotators=accounts)

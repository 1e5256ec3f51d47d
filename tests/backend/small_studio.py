"""A small Label Studio over HTTP for tests of whole processes: one project of tasks, and ways to answer wrongly.

It knows what Polyvox asks while it reads (health, project, tasks by filter, accounts, webhooks), and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.backend.small_services import CONFIG

CREATED = "2025-11-28T00:00:00Z"
PROJECT, KEY = 7, "7.1764288000"
LOGIN_PAGE = "<!doctype html><title>Log in</title><form method=post action=/user/login>"


@dataclass
class SmallStudio:
    """What it answers; tests change it while it answers."""

    url: str = ""
    tasks: list[dict[str, Any]] = field(default_factory=list)
    page: str = ""  # answered to everything, as by a login in front
    status: int = 200  # answered to everything, with nothing
    drips: frozenset[str] = frozenset()  # paths whose answers never end
    hidden: frozenset[int] = frozenset()  # ids that lists leave out, and totals too
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """The JSON of a GET; None for what is not known."""
        known: dict[str, Any] = {
            "/health/": {"status": "UP"}, "/api/users/": [], "/api/webhooks/": [], "/api/ml/": [],
            f"/api/projects/{PROJECT}/": {
                "id": PROJECT, "title": "Small", "label_config": CONFIG, "created_at": CREATED,
                "task_number": len(self.tasks), "model_version": ""},
            f"/api/projects/{PROJECT}/model-versions/": {},
        }
        return self._list(json.loads(query["query"]), int(query["page_size"])) if path == "/api/tasks" else (
            known.get(path))

    def _list(self, query: dict[str, Any], size: int) -> dict[str, Any]:
        if "selectedItems" in query:
            found = [task for task in self.tasks if task["id"] in query["selectedItems"]["included"]]
        else:
            found = [task for task in self.tasks if task["id"] not in self.hidden
                     and all(_fits(task, each) for each in query["filters"]["items"])]
        column = query.get("ordering", ["tasks:id"])[0].partition(":")[2]
        found.sort(key=lambda task: task[column])
        return {"tasks": found[:size], "total": len(found)}


def _fits(task: Mapping[str, Any], each: Mapping[str, Any]) -> bool:
    value = task[each["filter"].rpartition(":")[2]]
    return bool({"greater": value > each["value"], "greater_or_equal": value >= each["value"],
                 "equal": value == each["value"]}[each["operator"]])


@contextlib.contextmanager
def small_studio(tasks: int = 40) -> Iterator[SmallStudio]:
    """Serve one on a free port of the loopback interface while the block runs."""
    studio = SmallStudio(tasks=[
        {"id": number, "data": {"text": f"text {number}"}, "created_at": CREATED, "annotations": [],
         "updated_at": f"2025-11-28T00:{number // 60:02}:{number % 60:02}.000000Z"} for number in range(1, tasks + 1)])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            found = studio.answer(address.path, {name: values[0] for name, values in parse_qs(address.query).items()})
            text = studio.page or json.dumps(found)
            self.send_response(studio.status if found is not None or studio.page else 404)
            self.end_headers()
            with contextlib.suppress(OSError):  # whoever asked lost patience, as they should
                if address.path in studio.drips:
                    while not studio.ended.wait(0.2):
                        self.wfile.write(b" ")
                elif studio.status == 200:
                    self.wfile.write(text.encode())

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    studio.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield studio
    finally:
        studio.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()

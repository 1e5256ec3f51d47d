"""The mutated requests by number: every route, from recorded and made requests; and the two projects they meet.

A case depends on its number and the seed alone, so that one that was answered badly can be sent again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from backend import app as app_module
from demo.processes import LOOPBACK
from tests.backend.matrix.mutations import MUTATIONS, Mutation, Sent, sent
from tests.backend.matrix.originals import Original, originals
from tests.backend.matrix.values import PLANTED, PROJECTS, TEXTS
from tests.backend.web.trained import ANNOTATORS, CONFIG, FIRST_TASK, WORDS
from tests.soak.framing import FRAMINGS
from tests.soak.wire import bytes_of

BYSTANDER = "2.1795817999"  # no request names it on purpose
CONTROL, NUMBER, TASKS, ODD_ORIGIN = "label", 1, 60, 0.1
FRAMED = 0.06  # share of the cases that are wrong as HTTP
RARE = 0.004  # share of those that cost a hundred times the others
SITE = 0.2  # share of the pages and the API of the site; the others are what Label Studio sends
DEAR = ("explanation", "/words", "/filled", "/metrics")
PAGE = {"Accept": "text/html"}
OPENAPI = Path(app_module.__file__).parent / "static" / "openapi.json"


def projects() -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The one of the recorded requests and a bystander, each with its tasks."""
    return [(_project(1, "2026-11-27T22:19:52.718718Z"), _tasks(FIRST_TASK)),
            (_project(2, "2026-11-27T22:19:59Z"), _tasks(FIRST_TASK + 1000))]


def _project(number: int, created: str) -> dict[str, Any]:
    return {"id": number, "title": f"Text choices {number}", "label_config": CONFIG, "created_at": created}


def _tasks(first: int) -> list[dict[str, Any]]:
    """Annotator 5 says what it is, 6 likes everything, 7 labels every second task; the last fifth is open."""
    made = []
    for number in range(TASKS):
        label = list(WORDS)[number % 3]
        given = {"5": label, "6": "Positive"} | ({"7": label} if number % 2 else {})
        shown = given if number < TASKS * 4 // 5 else {}
        made.append({
            "id": first + number, "data": {"text": f"{WORDS[label]} {number}"},
            "annotations": [{"id": (first + number) * 10 + int(who), "completed_by": int(who), "result": chosen(choice)}
                            for who, choice in shown.items()],
        })
    return made


def chosen(label: str) -> list[dict[str, Any]]:
    """The result of an annotation."""
    return [{"id": "r", "from_name": CONTROL, "to_name": "text", "type": "choices", "origin": "manual",
             "value": {"choices": [label]}}]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One request: to be sent on a kept connection, or on one of its own (`framed`)."""

    number: int
    route: str  # the original's
    mutation: str
    raw: bytes
    sent: Sent
    times: int = 1
    framed: bool = False

    def about(self) -> str:
        """For a report."""
        return f"{self.number}: {self.route}, {self.mutation}"


class Cases:
    """All of them, for one seed and port; `job` and `flag` are ids of what exists."""

    def __init__(self, *, seed: int, port: int, job: str, flag: str) -> None:
        self._seed = seed
        self._port = port
        self._job = job
        self._flag = flag

    @cached_property
    def originals(self) -> tuple[list[Original], list[Original], list[Original]]:
        """What Label Studio sends; pages and the API of the site; what takes long to answer."""
        known, others = originals(self._job), site(self._flag)
        return ([each for each in known if not _dear(each)], [each for each in others if not _dear(each)],
                [each for each in (*known, *others) if _dear(each)])

    def case(self, number: int) -> Case:
        """The case of this number."""
        random = Random(f"{self._seed}:{number}")
        (kind,) = random.choices((0, 1, 2), (1 - SITE - RARE, SITE, RARE))
        original = random.choice(self.originals[kind])
        framed = random.random() < FRAMED
        mutations = dict(MUTATIONS) if original.body is not None else OF_ADDRESSES
        name = random.choice(list(FRAMINGS if framed else mutations))
        made = sent(original) if framed else mutations[name](random, original)
        if not framed and random.random() < ODD_ORIGIN / 10:
            made = replace(made, headers=made.headers | {"Origin": random.choice(ORIGINS)})
        raw = bytes_of(made, self._port)
        if framed:
            head, _, body = raw.partition(b"\r\n\r\n")
            raw = FRAMINGS[name](random, head + b"\r\n\r\n", body)
        route = f"{original.method} {original.path}"
        return Case(number=number, route=route, mutation=name, raw=raw, sent=made, times=made.times, framed=framed)


def site(flag: str) -> list[Original]:
    """A request for each page and each address of the API, in HTML, JSON and CSV, with every parameter once."""
    pages = ["/projects", *(f"/projects/{NUMBER}{rest}" for rest in (
        "", "/overview", "/annotators", "/tasks", "/flags", "/gaps", f"/annotators/{ANNOTATORS[0]}",
        f"/tasks/{FIRST_TASK}/explanation"))]
    found = [Original(name=path, method="GET", path=path, headers=PAGE) for path in pages]
    for pattern, methods in json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"].items():
        if "get" in methods:
            path = pattern.format(project=NUMBER, task=FIRST_TASK, annotator=ANNOTATORS[0])
            found += [Original(name=path, method="GET", path=path, query=query)
                      for query in ("", *_queries(methods["get"].get("parameters", ())))]
    check = {"flag": flag, "verdict": "fine"}
    found.append(Original(name="check", method="POST", path=f"/api/projects/{NUMBER}/flags/check", body=check))
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{LOOPBACK}", **PAGE}
    found.append(Original(name="form", method="POST", path=f"/projects/{NUMBER}/flags", headers=form))
    found.append(Original(name="api", method="GET", path="/static/openapi.json"))
    return found


def _queries(parameters: Sequence[dict[str, Any]]) -> list[str]:
    named = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}
    return [f"{name}={(schema.get('enum') or [schema.get('minimum', ANNOTATORS[0])])[-1]}"
            for name, schema in named.items()]


def _dear(original: Original) -> bool:
    return original.path == "/" or any(part in original.path for part in DEAR)


# Mutations of addresses, for requests without a body

ORIGINS = ("null", "http://[", "http://evil.example", f"http://{LOOPBACK}", PLANTED, "\u00e9", "http://" + "a" * 5000)
SEGMENTS = (
    "0", "-1", "1.5", "9" * 40, "%00", "%ff%fe", "%2e%2e", "..", "%2f", "a" * 5000, "\u00e9", "%ed%a0%80", "1%0a",
    "1e9", "%F0%9F%91%A9", "'--", "%25", "None", "true", "[]", PLANTED, "1;2", "+1", "%D9%A1", "0x1", "NaN", "", "*",
    "1001",
)
VALUES = (
    "", "0", "-1", "1", "2", "1.5", "1e9", "9" * 40, "NaN", "Infinity", "%00", "%ff", "%ed%a0%80", "%D9%A1", "true",
    "[]", "{}", "null", "asc", "desc", "json", "csv", "html", "label", "text", "votes", "name", "hardest", "all",
    "wide", "gaps", "%3Cscript%3E", "a" * 3000, PLANTED, "+1", "%2B1", "0x10", "%0d%0aX-Evil:1", "1&limit=2", "5", "6",
    "7", "8", "1000",
)
NAMES = (
    "sort", "order", "limit", "offset", "format", "control", "list", "state", "reason", "annotator", "by", "image",
    "form", "only", "beside", "wait", "page", "project", "task", "%00", "%ff", "", "__class__", "sort%5B%5D", "text",
    "q",
)


def _segment(random: Random, original: Original) -> Sent:
    parts = original.path.split("/")
    at = random.randrange(1, len(parts)) if len(parts) > 1 else 0
    odd = random.choice((*SEGMENTS, *(str(each) for each in PROJECTS[:6])))
    parts[at] = odd.strip().replace(" ", "%20")
    return replace(sent(original), path="/".join(parts))


def _parameters(random: Random, original: Original) -> Sent:
    pairs = [each for each in original.query.split("&") if each]
    pairs += [f"{random.choice(NAMES)}={random.choice(VALUES)}" for _ in range(random.choice((1, 1, 2, 3, 8)))]
    random.shuffle(pairs)
    return replace(sent(original), query="&".join(pairs))


def _known_parameter(random: Random, original: Original) -> Sent:
    name = original.query.partition("=")[0] or random.choice(NAMES)
    return replace(sent(original), query=f"{name}={random.choice(VALUES)}")


def _form(random: Random, original: Original) -> Sent:
    """A body where there is none, as a form or as what says that it is one."""
    fields = [f"{random.choice(('flag', 'verdict', 'back', 'x'))}={random.choice(VALUES)}" for _ in range(4)]
    body = random.choice(("&".join(fields), random.choice(TEXTS), "=" * 5000, "a=1&" * 2000))
    return replace(sent(original), body=body.encode("utf-8", "surrogatepass"))


_OF_HTTP = ("method", "query", "address", "headers", "again", "content type", "encoding", "chunked")
OF_ADDRESSES: dict[str, Mutation] = {
    "segment": _segment, "segment again": _segment, "parameters": _parameters, "parameters again": _parameters,
    "known parameter": _known_parameter, "known parameter again": _known_parameter, "form": _form,
    **{name: MUTATIONS[name] for name in _OF_HTTP},
}

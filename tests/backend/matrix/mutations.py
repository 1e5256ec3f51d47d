"""Mutations: a valid request and a generator of chances in, a request that may be wrong out.

Those of the body work on the parsed JSON and mark what JSON cannot say (keys twice, NaN, deep nesting) by placeholders
that `written` replaces; those of HTTP work on bytes, headers, method and address.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.backend.matrix import values
from tests.backend.matrix.originals import Original
from tests.backend.matrix.values import AGAIN, DEEP, PLANTED


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request as it goes out."""

    method: str
    path: str
    query: str = ""
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1
    chunked: bool = False  # without a Content-Length


def written(value: Any) -> bytes:
    """JSON with the placeholders replaced."""
    text = json.dumps(value)
    text = text.replace('"' + AGAIN, '"')
    text = re.sub(r'"@@raw:([^"@]*)@@"', r"\1", text)
    return re.sub(r'"@@deep:(\d+)@@"', lambda found: _nested(int(found[1])), text).encode()


def _nested(depth: int) -> str:
    """Lists in lists, and objects in objects, with a lone half of a surrogate pair at the bottom."""
    half = depth // 2
    return "[" * half + '{"a":' * half + '"\\ud800"' + "}" * half + "]" * half


def sent(original: Original, body: Any = None) -> Sent:
    """The request with another body (or its own)."""
    content = original.body if body is None else body
    headers = dict(original.headers) | ({"Content-Type": "application/json"} if content is not None else {})
    raw = b"" if content is None else written(content)
    return Sent(method=original.method, path=original.path, query=original.query, body=raw, headers=headers)


# Of the body

READ = frozenset({
    "id", "task", "tasks", "project", "annotation", "annotations", "action", "data", "schema", "label_config", "config",
    "created_at", "job", "params", "context", "title", "completed_by", "project_src", "project_dst",
})


def _place(random: Random, value: Any) -> tuple[Any, Any]:
    """A container in the document and a key in it; shallow ones and those that are read more often than others."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    read = [key for key in keys if key in READ]
    key = random.choice(read if read and random.random() < 0.75 else keys)
    child = value[key]
    if isinstance(child, dict | list) and child and random.random() < 0.65:
        return _place(random, child)
    return value, key


def _of_body(change: Callable[[Random, Any, Any], None]) -> Callable[[Random, Original], Sent]:
    """A mutation of one place in the document."""
    def mutate(random: Random, original: Original) -> Sent:
        body = copy.deepcopy(original.body) or {"project": "1.1795817992"}
        for _ in range(random.choice((1, 1, 1, 2))):
            if body:
                change(random, *_place(random, body))
        return sent(original, body)

    return mutate


def _drop(random: Random, container: Any, key: Any) -> None:
    del container[key]


def _rename(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        name = random.choice((key.upper(), key + "s", key[:-1], " " + key, key + "\x00", PLANTED, "", "__proto__"))
        container[name] = container.pop(key)
    else:
        container.insert(random.randrange(len(container) + 1), container[key])


def _twice(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        container[AGAIN + key] = random.choice((*values.WRONG_TYPES, None, container[key]))
    else:
        container.append(copy.deepcopy(container[key]))


def _set(choices: tuple[Any, ...]) -> Callable[[Random, Any, Any], None]:
    def change(random: Random, container: Any, key: Any) -> None:
        container[key] = copy.deepcopy(random.choice(choices))

    return change


def _huge(random: Random, container: Any, key: Any) -> None:
    filler = random.choice(("x", "ж", "\x00", "<", " ", "\ud800"))
    container[key] = filler * random.choice((10_000, 300_000)) + PLANTED


def _deep(random: Random, container: Any, key: Any) -> None:
    container[key] = DEEP % random.choice((60, 150, 194, 196, 198, 200, 400, 900, 974, 978, 982, 100_000))


def _all(choices: tuple[Any, ...], *names: str) -> Callable[[Random, Original], Sent]:
    """Set the values under one of the names, wherever they stand, to one odd value."""
    def mutate(random: Random, original: Original) -> Sent:
        body = copy.deepcopy(original.body) or {}
        value, name = random.choice(choices), random.choice([each for each in names if each in body] or list(names))
        body[name] = copy.deepcopy(value)
        return sent(original, body)

    return mutate


def _config(random: Random, original: Original) -> Sent:
    body = copy.deepcopy(original.body) or {}
    places = [(at, name) for at in (body, body.get("project")) if isinstance(at, dict)
              for name in ("schema", "label_config", "config") if isinstance(at.get(name), str) and at[name]]
    container, name = random.choice(places or [(body, "label_config")])
    container[name] = values.odd_config(random, container.get(name) or "<View/>")
    return sent(original, body)


def _task(random: Random, original: Original) -> Sent:
    """Odd tasks: their data, their annotations, their number."""
    body = copy.deepcopy(original.body) or {}
    tasks = body.get("tasks") if isinstance(body.get("tasks"), list) else []
    task = random.choice(tasks) if tasks else {"id": 5, "data": {}}
    kind = random.randrange(4)
    if kind == 0:
        task["annotations"] = copy.deepcopy(random.choice(values.ANNOTATIONS))
    elif kind == 1:
        tasks = [{**task, "id": number} for number in range(1, random.choice((2, 40)))] + [task, task]
    else:
        task["data"] = copy.deepcopy(random.choice(values.DATA))
    body["tasks"] = tasks or [task]
    return sent(original, body)


# Of HTTP


def _of_bytes(change: Callable[[Random, bytes], bytes]) -> Callable[[Random, Original], Sent]:
    def mutate(random: Random, original: Original) -> Sent:
        whole = sent(original, original.body or {})
        return replace(whole, body=change(random, whole.body))

    return mutate


def _garbage(random: Random, raw: bytes) -> bytes:
    at = random.randrange(len(raw) + 1)
    return raw[:at] + random.choice((b"\xff", b"\x00", b"\xc3", b"}", b"]", b",", b"//", b"\xef\xbb\xbf")) + raw[at:]


def _whole(random: Random, raw: bytes) -> bytes:
    text = raw.decode()
    return random.choice((
        b"", b"null", b"[]", b"[" + raw + b"]", b'"' + PLANTED.encode() + b'"', b"3", b"{}", raw * 2,
        b"\xef\xbb\xbf" + raw,
        text.encode("utf-16"), text.encode("utf-16-le"), text.encode("utf-32"), b"[" * 200_000, b'{"a":' * 50_000,
        b"{" + b'"a":1,' * 20_000 + b'"b":2}', b"<xml>" + raw, b"project=1.2&tasks=x", b"\x1f\x8b" + raw,
        b" " * 1_000_000,
    ))


def _content_type(random: Random, original: Original) -> Sent:
    kind = random.choice((
        "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data",
        "application/json; charset=utf-16", "application/json; charset=latin-1", "application/json; charset=nonsense",
        "application/json;;;", "APPLICATION/JSON", "application/vnd.api+json", "json", "\u00e9", "a" * 5000,
        "application/json, text/html", "application/json; charset=\"utf-8",
    ))
    whole = sent(original, original.body or {})
    return replace(whole, headers=whole.headers | {"Content-Type": kind})


def _encoding(random: Random, original: Original) -> Sent:
    """Compressed bodies, said and unsaid; Label Studio never sends one."""
    whole = sent(original, original.body or {})
    pack = random.choice((gzip.compress, zlib.compress, bytes))
    named = random.choice(("gzip", "deflate", "br", "identity", "gzip, gzip", ""))
    return replace(whole, body=pack(whole.body), headers=whole.headers | ({"Content-Encoding": named} if named else {}))


def _method(random: Random, original: Original) -> Sent:
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW", "get")
    return replace(sent(original), method=random.choice(methods))


def _query(random: Random, original: Original) -> Sent:
    query = random.choice((
        "project=", "project=%00", "project=1.1795817992&project=2.3", "project[]=1", "project=" + "9" * 5000, "%",
        "&&&=&",
        "project=%ed%a0%80", "project=%ff", "a=" + "b" * 20_000, "project=77", "project=" + PLANTED, "project=1;drop",
        "project=%D9%A1.%D9%A7", "project=1.1795817992%0a", "=" * 50, "x=1&" * 3000,
    ))
    return replace(sent(original), query=query)


def _address(random: Random, original: Original) -> Sent:
    path = random.choice((
        original.path + "/", "/" + original.path, original.path.upper(), original.path + "%00",
        original.path + "%2e%2e/x",
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/%2e%2e/settings.py", "/static//etc/passwd",
        "/" + "a" * 9000,
        "/\u00e9\u202e", "/api" + original.path, original.path + ";a=b", "/.env", "/%ff%fe",
    ))
    return replace(sent(original), path=path)


def _headers(random: Random, original: Original) -> Sent:
    more = random.choice((
        {"Accept": PLANTED}, {"Accept": "text/html;q=x, */*;q=-1"}, {"Accept": "a" * 20_000},
        {"Authorization": "Basic !!"},
        {"Authorization": "Basic " + "A" * 10_000}, {"X-Polyvox-Secret": "\u00e9"}, {"Host": "a b"},
        {"Host": PLANTED + ":x"},
        {"Host": ""}, {"X-Forwarded-For": PLANTED}, {"If-None-Match": "*"}, {"If-Modified-Since": PLANTED},
        {"Range": "bytes=5-2"}, {"Range": "bytes=0-,0-,0-"}, {"Cookie": "session=" + PLANTED},
        {"Expect": "100-continue"},
    ))
    whole = sent(original)
    return replace(whole, headers=whole.headers | more)


def _again(random: Random, original: Original) -> Sent:
    return replace(sent(original), times=random.choice((2, 3)))


def _chunked(random: Random, original: Original) -> Sent:
    return replace(sent(original, original.body or {}), chunked=True)


Mutation = Callable[[Random, Original], Sent]
MUTATIONS: dict[str, Mutation] = {
    "drop": _of_body(_drop), "rename": _of_body(_rename), "twice": _of_body(_twice),
    "wrong type": _of_body(_set(values.WRONG_TYPES)), "null": _of_body(_set((None,))), "huge": _of_body(_huge),
    "deep": _of_body(_deep), "number": _of_body(_set(values.NUMBERS)), "no number": _of_body(_set(values.NOT_NUMBERS)),
    "text": _of_body(_set(values.TEXTS)),
    "project": _all(values.PROJECTS, "project", "project_src"), "action": _all(values.ACTIONS, "action"),
    "job": _all((*values.WRONG_TYPES, *values.TEXTS), "job"), "config": _config, "config again": _config,
    "task": _task, "task again": _task,
    "cut": _of_bytes(lambda random, raw: raw[: random.randrange(len(raw))]), "garbage": _of_bytes(_garbage),
    "whole": _of_bytes(_whole), "content type": _content_type, "encoding": _encoding, "method": _method,
    "query": _query,
    "address": _address, "headers": _headers, "again": _again, "chunked": _chunked,
}

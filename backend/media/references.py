"""What a task's value points to: a file inside Label Studio, one on the web, one in cloud storage, or the data itself.

Label Studio stores uploads as paths without a host (`/data/upload/7/3f-cat.png`), files of local storage as
`/data/local-files/?d=cats/1.png`, and objects of cloud storage as `s3://bucket/key`, for which its own endpoint
`/tasks/<id>/resolve/?fileuri=<base64>` gives the bytes or redirects to a signed address.

Invariant: a reference inside Label Studio is one of a few known paths, so that nobody who can write a task can have
Polyvox call the API with its token.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, unquote_to_bytes, urlsplit

from backend.errors import MediaError
from backend.media.addresses import as_browser

CLOUD_SCHEMES = frozenset({"s3", "gs", "azure-blob", "azure_blob", "azure-spi", "s3s"})
_OWN_PATHS = (
    re.compile(r"/data/upload/.+"),
    re.compile(r"/data/local-files/?"),
    re.compile(r"/(tasks|projects)/\d+/(resolve|presign)/?"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Where the bytes of a medium are."""

    kind: Literal["inline", "label-studio", "web"]
    url: str = ""  # absolute; "" for inline data
    data: bytes = b""  # of inline data


def read_reference(value: str, *, label_studio_url: str, task: int | None, inline_limit: int) -> Reference:
    """The reference that a value of a task is.

    `task` is the Label Studio id, needed for cloud storage; `inline_limit` is in bytes. Raises MediaError with a
    sentence for what is no reference, points elsewhere in Label Studio, or is too large.
    """
    value = value.strip()
    if value[:5].lower() == "data:":
        return Reference(kind="inline", data=_inline(value, inline_limit))
    value = as_browser(value)
    if not value:
        raise MediaError("The task holds no address of a file there.")
    try:
        scheme = urlsplit(value).scheme.lower()
    except ValueError as error:
        raise MediaError("The address in the task cannot be read.") from error
    if scheme in CLOUD_SCHEMES:
        return _cloud(value, label_studio_url, task)
    if scheme in ("http", "https"):
        own = bool(label_studio_url) and same_origin(value, label_studio_url)
        if own:
            check_own_path(value, label_studio_url)
        return Reference(kind="label-studio" if own else "web", url=value)
    if scheme:
        raise MediaError(f"Addresses of the kind '{scheme[:20]}:' are not read.")
    if not value.startswith("/") or value.startswith("//"):
        raise MediaError("The address in the task has neither a host nor a path inside Label Studio.")
    if not label_studio_url:
        raise MediaError("The file lies in Label Studio: set LABEL_STUDIO_URL.")
    check_own_path(value, label_studio_url)
    return Reference(kind="label-studio", url=_origin(label_studio_url) + _below(label_studio_url, value))


def same_origin(url: str, other: str) -> bool:
    """Whether two addresses share scheme, host and port."""
    try:
        return _origin(url) == _origin(other)
    except ValueError:
        return False


def _origin(url: str) -> str:
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    port = parts.port or {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{(parts.hostname or '').lower().rstrip('.')}:{port}"


def _below(label_studio_url: str, path: str) -> str:
    """A path of a task under the path that Label Studio itself may be served from."""
    prefix = urlsplit(label_studio_url).path.rstrip("/")
    return path if prefix and path.startswith(prefix + "/") else prefix + path


def check_own_path(url: str, label_studio_url: str) -> None:
    """Raises MediaError unless an address of Label Studio, or a path there, is one of its files.

    A path that climbs ("/data/upload/../../api") is refused rather than judged by where it arrives.
    """
    path = unquote(urlsplit(url).path)
    prefix = urlsplit(label_studio_url).path.rstrip("/")
    inside = path.removeprefix(prefix) if prefix and path.startswith(prefix + "/") else path
    climbs = posixpath.normpath(path) != (path.rstrip("/") or "/")
    if climbs or not any(own.fullmatch(inside) for own in _OWN_PATHS):
        raise MediaError("The address points into Label Studio, but not to one of its files.")


def _cloud(value: str, label_studio_url: str, task: int | None) -> Reference:
    if not label_studio_url or task is None:
        raise MediaError("The file lies in cloud storage, which is read through Label Studio: set LABEL_STUDIO_URL.")
    encoded = base64.urlsafe_b64encode(value.encode("utf-8", "surrogatepass")).decode()
    path = _below(label_studio_url, f"/tasks/{task}/resolve/?fileuri={encoded}")
    return Reference(kind="label-studio", url=_origin(label_studio_url) + path)


def _inline(value: str, limit: int) -> bytes:
    head, comma, body = value.partition(",")
    if not comma:
        raise MediaError("The data address in the task has no data.")
    if len(body) > limit * 4 // 3 + 4:
        raise MediaError(f"The data in the task is larger than {limit / 1e6:g} MB.")
    if not head.lower().endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        return base64.b64decode(unquote_to_bytes(body), validate=True)
    except (binascii.Error, ValueError) as error:
        raise MediaError("The data address in the task is not valid base64.") from error

"""Whether a request comes from our own pages or from a program, and not from another site.

A browser sends basic auth along with whatever any page makes it send, and there are no cookies here to mark as strict.
What the browser says of the page that asks (Sec-Fetch-Site, or Origin where our address is not a secure one) is looked
at on every route but /health: another site may have a page of ours opened, by a link, and nothing else.

A change is moreover accepted only when the browser says that our own page asked, or when it is JSON, which no page of
another site can send without asking first (a preflight, which is never granted). Programs that are no browsers send
neither header, and JSON. Pages under a name of another site's that was made to lead here: see `hosts`.
"""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from backend.errors import ClientError

OPENED = ("GET", "HEAD")


class Forbidden(ClientError):
    """The request came from another site."""

    status = 403
    reason = "Asked for by another site"  # of the status line


def check_foreign(headers: Headers, *, method: str, own_url: str, is_page: bool) -> None:
    """Raises Forbidden when another site had it sent; `is_page`: people may come here by a link."""
    site = headers.get("Sec-Fetch-Site", "")
    foreign = site not in ("same-origin", "none") if site else _is_foreign(headers, own_url)
    followed = is_page and method in OPENED and headers.get("Sec-Fetch-Mode", "") == "navigate"
    if foreign and not followed:
        raise Forbidden(
            "This request was asked for by another site, which Polyvox never answers; open the page of Polyvox itself, "
            "or send the request from a program without the header Origin.")


def check_origin(headers: Headers, *, own_url: str, is_json: bool) -> None:
    """Raises Forbidden unless the change may be made. `own_url`: the address of Polyvox in the settings, or ""."""
    site = headers.get("Sec-Fetch-Site", "")
    if site:
        ours = site == "same-origin" or (site == "none" and is_json)
    else:
        ours = not _is_foreign(headers, own_url) and (is_json or bool(headers.get("Origin", "")))
    if not ours:
        raise Forbidden("This change was asked for by another site; open the page of Polyvox itself and try again.")


def _is_foreign(headers: Headers, own_url: str) -> bool:
    """Whether there is an Origin and it is not ours; one that is no address is nobody's."""
    origin, netloc = headers.get("Origin", ""), ""
    with suppress(ValueError):
        netloc = urlsplit(origin).netloc
    return bool(origin) and netloc not in {headers.get("Host", ""), urlsplit(own_url).netloc} - {""}

"""Whether a request that changes something comes from our own pages or from a program, and not from another site.

A browser sends basic auth along with whatever any page makes it send, and there are no cookies here to mark as strict.
So a change is accepted only when the browser itself says that our own page asked (Sec-Fetch-Site, or Origin where the
page is not on a secure address), or when it is JSON, which no page of another site can send without asking first
(a preflight, which is never granted). Programs that are no browsers send neither header, and JSON.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from backend.errors import ClientError


class Forbidden(ClientError):
    """The request came from another site."""

    status = 403


def check_origin(headers: Headers, *, host: str, own_url: str, is_json: bool) -> None:
    """Raises Forbidden unless the change may be made. `own_url`: the address of Polyvox in the settings, or ""."""
    site, origin = headers.get("Sec-Fetch-Site", ""), headers.get("Origin", "")
    if site:
        ours = site in ("same-origin", "none") and (site != "none" or is_json)
    elif origin:
        ours = urlsplit(origin).netloc in {host, urlsplit(own_url).netloc} - {""}
    else:
        ours = is_json
    if not ours:
        raise Forbidden("This change was asked for by another site; open the page of Polyvox itself and try again.")

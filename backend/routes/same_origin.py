"""Whether a request comes from our own pages or from a program, and not from another site.

A browser sends basic auth along with whatever any page makes it send, and there are no cookies here to mark as strict.
So a change is accepted only when the browser itself says that our own page asked (Sec-Fetch-Site, or Origin where the
page is not on a secure address), or when it is JSON, which no page of another site can send without asking first
(a preflight, which is never granted). Programs that are no browsers send neither header, and JSON.

Without basic auth another site can also have its own name resolved to our address, so that its pages are of our origin
and may read (DNS rebinding). So pages and data are then given under names only that no other site can have.
"""

from __future__ import annotations

import ipaddress
from contextlib import suppress
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
        ours = _netloc(origin) in {host, urlsplit(own_url).netloc} - {""}
    else:
        ours = is_json
    if not ours:
        raise Forbidden("This change was asked for by another site; open the page of Polyvox itself and try again.")


def _netloc(origin: str) -> str:
    """Host and port; "" for what is no address at all, which is nobody's."""
    with suppress(ValueError):
        return urlsplit(origin).netloc
    return ""


def check_host(host: str, *, own_url: str) -> None:
    """Raises Forbidden unless the Host is ours for sure: an IP address, a name without dots, or our address."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError as error:
        raise Forbidden("The Host header is no address.") from error
    with suppress(ValueError):
        ipaddress.ip_address(name)
        return
    if "." in name.rstrip(".") and name != urlsplit(own_url).hostname and not name.endswith(".localhost"):
        raise Forbidden(
            "Without basic auth the pages are shown under Polyvox' own address only (POLYVOX_URL, an IP address or a "
            "name without dots). Set POLYVOX_URL to the address that you opened, or BASIC_AUTH_USER and _PASS."
        )

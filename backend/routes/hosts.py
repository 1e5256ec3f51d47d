"""Under which names Polyvox may be asked: the guard against DNS rebinding, on every route but /health.

A web page can have its own name resolved to our address; a browser then takes us for part of that page's site, lets it
read what we answer and send what it likes. Only the Host header, which the page cannot choose, tells. So only such
names are ours as no web site can have:

- IP addresses (a page under one was served by that address), localhost and names below it;
- the host of POLYVOX_URL, under which Label Studio reaches us, and this machine's own name;
- compose's names: `polyvox` is no name of the public DNS, and neither is `.internal`;
- what POLYVOX_ALLOWED_HOSTS adds.

Programs that send no Host header are no browsers. /health is asked by machines under addresses that nobody foresees
(orchestrators, load balancers), and tells nothing but that Polyvox is there and its version.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import socket
from contextlib import suppress
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from backend.routes.same_origin import Forbidden
from backend.settings import Settings

logger = logging.getLogger(__name__)
HEADER = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]*)?")  # so that no pattern matches a list of names
COMPOSE = ("polyvox", "polyvox.internal")


class UnknownHost(Forbidden):
    """The request came under a name that is not ours."""

    # Label Studio shows the reason of a refusal, not its body.
    reason = "Host not allowed, set POLYVOX_ALLOWED_HOSTS"


class Hosts:
    """The names of one set of settings."""

    def __init__(self, settings: Settings) -> None:
        given = [each.strip().lower() for each in settings.allowed_hosts.split(",") if each.strip()]
        ours = [*COMPOSE, "localhost", "*.localhost", socket.gethostname().lower()]
        self._patterns = [*given, *ours, *filter(None, [urlsplit(settings.url).hostname])]
        self._said = False

    def check(self, header: str) -> None:
        """Raises UnknownHost unless the Host header is empty or names us."""
        if not header:
            return
        found = HEADER.fullmatch(header.lower())
        name = (found[1] or found[2]).removesuffix(".") if found else ""
        if not self._is_ours(name):
            self._say()
            raise UnknownHost(
                "Polyvox is not asked under this name. If the Host header of this request is Polyvox' own address, add "
                "it to POLYVOX_ALLOWED_HOSTS, or set POLYVOX_URL to it.")

    def _is_ours(self, name: str) -> bool:
        with suppress(ValueError):
            ipaddress.ip_address(name)
            return True
        return bool(name) and any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def _say(self) -> None:
        """Once a process; the name, which whoever asks has chosen, stays out of the log."""
        if not self._said:
            logger.warning("a request is refused, since its Host header is no name of ours; see POLYVOX_ALLOWED_HOSTS")
        self._said = True

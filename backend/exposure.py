"""Whether Polyvox may listen where it was told to: on a public address only with a login and a webhook secret.

Without a login whoever reaches the address reads votes, names and texts, and starts jobs. Without the secret, Label
Studio's events are refused once there is a login (they carry none). So both are wanted, or a setting that says no.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from contextlib import suppress

from backend.errors import ClientError
from backend.settings import Settings

GUARDS = {"BASIC_AUTH_USER and BASIC_AUTH_PASS": "basic_auth_user", "POLYVOX_WEBHOOK_SECRET": "webhook_secret"}


def require_guarded(hosts: Iterable[str], settings: Settings) -> None:
    """Raises ClientError when one of these addresses can be reached from elsewhere and a guard is missing."""
    missing = [names for names, setting in GUARDS.items() if not getattr(settings, setting)]
    if not missing or settings.without_login or all(map(is_local, hosts)):
        return
    raise ClientError(
        f"Polyvox does not start on an address that others can reach without {' and '.join(missing)}: set them "
        "(docker/make_env.py makes some), listen on 127.0.0.1 behind a proxy that asks for a password, or set "
        "POLYVOX_WITHOUT_LOGIN=yes if everybody in that network may read and change everything.")


def is_local(host: str) -> bool:
    """Whether only this machine can reach the address; a name is resolved, "" is every address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)} if host else set()
    except OSError:  # nothing can listen there, which is said elsewhere
        return True
    return bool(found) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)

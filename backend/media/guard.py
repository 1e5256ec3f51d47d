"""Which hosts may be asked for files, and at which address: the guard against server-side request forgery.

A host is allowed when it is Label Studio's own or on the list of allowed hosts. Its name is resolved here, once; the
answer is judged and the connection is made to the very address that was judged, so that a name server which answers
differently the second time changes nothing. Private, local, reserved and multicast addresses are refused, also where
they hide in an IPv6 address, unless private networks are allowed or the host is Label Studio's own.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from backend.errors import MediaError
from backend.media.addresses import as_browser
from backend.media.references import check_own_path, same_origin

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]
_EMBEDDING = (  # IPv6 networks whose addresses stand for an IPv4 address that they do not show plainly
    ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"), ipaddress.ip_network("2002::/16"),
    ipaddress.ip_network("2001::/32"), ipaddress.ip_network("::/96"), ipaddress.ip_network("::ffff:0:0:0/96"),
)  # fmt: skip
_SPECIAL = (  # reserved networks that Python's `is_global` calls public
    ipaddress.ip_network("fec0::/10"), ipaddress.ip_network("3fff::/20"), ipaddress.ip_network("5f00::/16"),
    ipaddress.ip_network("192.0.0.0/24"), ipaddress.ip_network("192.88.99.0/24"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to connect, and as whom the other side is addressed."""

    scheme: str
    host: str  # for the Host header and the certificate
    port: int
    address: str  # the IP address that was judged
    path: str  # with the query
    own: bool  # Label Studio itself: the only one that may see its token

    @property
    def netloc(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"http": 80, "https": 443}[self.scheme] else f"{host}:{self.port}"


def resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(item[4][0]) for item in found))


class Guard:
    """Judges addresses. Immutable; safe for several threads."""

    def __init__(
        self, *, label_studio_url: str, hosts: Sequence[str] = (), private: bool = False, resolver: Resolver = resolve
    ) -> None:
        """`hosts`: names such as "img.example.org", or "*.example.org" for all below it; "*" for every public host."""
        self._label_studio_url = label_studio_url
        self._hosts = tuple(host.lower().rstrip(".") for host in hosts)
        self._private = private
        self._resolver = resolver

    def admit(self, url: str, *, sent_by_label_studio: bool = False) -> Target:
        """The target of an address. Raises MediaError with a sentence that names the host at most.

        `sent_by_label_studio`: Label Studio itself redirected here (to its cloud storage), which stands for the list of
        hosts but not for the judgement of the address.
        """
        url = as_browser(url)
        try:
            parts = urlsplit(url)
            scheme, host, port = parts.scheme.lower(), (parts.hostname or "").lower().rstrip("."), parts.port
            host = host.encode("idna").decode() if not host.isascii() else host
        except (ValueError, UnicodeError) as error:
            raise MediaError("The address of the file cannot be read.") from error
        if scheme not in ("http", "https") or not host:
            raise MediaError("Files are read over http and https only.")
        if parts.username is not None or parts.password is not None:
            raise MediaError("Addresses with a user name in them are not read.")
        own = bool(self._label_studio_url) and same_origin(url, self._label_studio_url)
        if own:  # here, since a redirect of any listed host may lead to Label Studio, which is sent the token
            check_own_path(url, self._label_studio_url)
        if not (own or sent_by_label_studio or self._is_listed(host)):
            raise MediaError(f"The host {host} is not among POLYVOX_MEDIA_HOSTS, so nothing is read from it.")
        port = port or {"http": 80, "https": 443}[scheme]
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return Target(scheme=scheme, host=host, port=port, address=self._address(host, port, own), path=path, own=own)

    def _is_listed(self, host: str) -> bool:
        return any(
            listed in ("*", host) or (listed.startswith("*.") and host.endswith(listed[1:])) for listed in self._hosts
        )

    def _address(self, host: str, port: int, own: bool) -> str:
        try:
            found = self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise MediaError(f"The host {host} cannot be found.", retry=True) from error
        if not found:
            raise MediaError(f"The host {host} cannot be found.", retry=True)
        if not (own or self._private) and not all(is_public(address) for address in found):
            raise MediaError(f"The host {host} has a private address; POLYVOX_MEDIA_PRIVATE=yes allows such hosts.")
        return found[0]


def is_public(address: str) -> bool:
    """Whether an address belongs to the public internet, also where an IPv6 address stands for an IPv4 one."""
    try:
        found: Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif any(found in network for network in _EMBEDDING):
            return False
    if any(found in network for network in _SPECIAL if network.version == found.version):
        return False
    return found.is_global and not found.is_multicast

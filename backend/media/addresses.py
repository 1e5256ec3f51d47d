"""Addresses as a browser sends them: what stands in a task or a redirect -> ASCII that HTTP can carry.

By the rules of browsers (https://url.spec.whatwg.org): backslashes are slashes, tabs and line ends are left out,
spaces, quotes and every character beyond ASCII are percent-encoded as UTF-8, what is encoded already stays. Of a lone
surrogate the replacement character is sent. Everything is judged (`guard`, `references`) after it was written so.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit, urlunsplit

from backend.errors import MediaError

_PATH = "!$%&'()*+,/:;=@-._~[]|"  # what stays in a path; letters and digits do anyway
_USER = "!$%&'()*+,;=:-._~"  # in a name and password before the host
_QUERY = "!$%&()*+,/:;=?@-._~[]|\\^`{}"
_LEFT_OUT = re.compile("[\t\r\n]")
_NO_HOST = re.compile(r"[\x00-\x20\x7f\"%<>\\^`{|}]")
_HTTP = re.compile(r"(https?):[/\\]{2}", re.IGNORECASE)


def as_browser(address: str) -> str:
    """An address of http or https, or a path, in ASCII; other addresses as they are. Raises MediaError."""
    address = _LEFT_OUT.sub("", address.strip("".join(map(chr, range(33)))))
    http = _HTTP.match(address)
    if http:
        address = f"{http[1].lower()}://{address[http.end():]}"
    elif not address.startswith(("/", "\\")):
        return address
    head, mark, rest = address.partition("?")
    if "#" in head:  # a question mark behind it belongs to the fragment
        head, mark, rest = head.partition("#")[0], "", ""
    address = head.replace("\\", "/") + mark + rest
    try:
        parts = urlsplit(address)
        user, at, host = parts.netloc.rpartition("@")
        host = host if host.isascii() else host.encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise MediaError("The address in the task cannot be read.") from error
    if _NO_HOST.search(host):
        raise MediaError("The address in the task cannot be read.")
    path, query = quote(_plain(parts.path), safe=_PATH), quote(_plain(parts.query), safe=_QUERY)
    return urlunsplit((parts.scheme, quote(_plain(user), safe=_USER) + at + host, path, query, ""))


def location_text(header: str) -> str:
    """A redirect's address as its sender wrote it: headers arrive as Latin-1, but are UTF-8 in fact."""
    try:
        raw = header.encode("latin-1")
    except UnicodeEncodeError:
        return header
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:  # no text at all: its bytes are kept
        return "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in raw)


def _plain(text: str) -> bytes:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")

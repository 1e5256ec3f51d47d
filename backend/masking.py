"""Addresses as they may be shown: without user names, passwords and what follows the question mark.

Queries are masked whole: of signed addresses (cloud storage, tokens) each part may be the secret, and no list of names
of such parts is complete. One function for pages, JSON, files, errors and logs.
"""

from __future__ import annotations

import re

HIDDEN = "***"
# scheme, user and password, host and path, query, fragment (which some sites use as one more query)
_ADDRESS = re.compile(
    r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,30}://)(?P<user>[^\s/?#\"'<>]*@)?(?P<place>[^\s?#\"'<>]*)"
    r"(?P<query>\?[^\s#\"'<>]*)?(?P<fragment>#[^\s\"'<>]*)?")


def masked(text: str, *, keep_length: bool = False) -> str:
    """The text with the secrets of every address in it hidden; with `keep_length` each character by a star, so that
    positions in the text stay true."""
    if "://" not in text:
        return text

    def hidden(part: str) -> str:
        return "*" * len(part) if keep_length else HIDDEN

    def shown(found: re.Match[str]) -> str:
        user, query, fragment = found["user"] or "", found["query"] or "", found["fragment"] or ""
        return "".join((
            found["scheme"], hidden(user[:-1]) + "@" if user else "", found["place"],
            "?" + hidden(query[1:]) if query[1:] else query, "#" + hidden(fragment[1:]) if fragment[1:] else fragment))

    return _ADDRESS.sub(shown, text)

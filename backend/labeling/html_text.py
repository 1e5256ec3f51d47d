"""HTML to the text a reader sees: tags dropped, scripts and styles dropped with their content, entities resolved.

`html.parser` takes quadratic time on broken markup (200,000 characters of "<!--" cost it half a minute), so comments,
attributes and stray "<" are taken out first, each in one linear pass.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

MAX_CHARACTERS = 200_000  # an encoder reads a few hundred tokens; the middle of a longer page is left out

_UNSEEN = frozenset({"script", "style", "template", "noscript", "head", "iframe", "object"})
_BREAKS = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form", "h1", "h2",
    "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "td", "th", "tr",
    "ul",
})

_OPENING = re.compile(r"<(?:(/?[a-zA-Z][\w:-]*)[^<>]*>|[!?][^<>]*>|)")


def strip_html(html: str) -> str:
    """Text of an HTML fragment; block elements end a line. Never raises; broken markup is read as far as it goes."""
    if len(html) > MAX_CHARACTERS:
        html = html[: MAX_CHARACTERS // 2] + " " + html[-MAX_CHARACTERS // 2 :]
    reader = _Text()
    reader.feed(_OPENING.sub(_bare, _without_comments(html)))
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.parts).splitlines())
    return "\n".join(line for line in lines if line)


def _without_comments(html: str) -> str:
    kept: list[str] = []
    position = 0
    while (start := html.find("<!--", position)) >= 0:
        kept.append(html[position:start])
        end = html.find("-->", start + 4)
        if end < 0:
            return "".join(kept)
        position = end + 3
    return "".join(kept) + html[position:]


def _bare(found: re.Match[str]) -> str:
    """A tag without its attributes; nothing for a declaration; an entity for a "<" that opens neither."""
    if found.group(1):
        return f"<{found.group(1)}>"
    return "" if len(found.group()) > 1 else "&lt;"


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = ""  # the outermost open element whose content nobody sees
        self._depth = 0  # how many of that name are open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body" and self._unseen == "head":  # </head> may be left out
            self._unseen, self._depth = "", 0
        elif tag == self._unseen or (not self._unseen and tag in _UNSEEN):
            self._unseen, self._depth = tag, self._depth + 1
        else:
            self._break_line(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._break_line(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._unseen:
            self._break_line(tag)
        elif tag == self._unseen:
            self._depth -= 1
            self._unseen = tag if self._depth else ""

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def _break_line(self, tag: str) -> None:
        if tag in _BREAKS and not self._unseen:
            self.parts.append("\n")

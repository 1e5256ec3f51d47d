"""Safe reading of label config XML into a small tree that is case-insensitive, as Label Studio's front-end is.

No document type, no entity declarations, no external references (defusedxml); bounded in size and depth. Whatever is
wrong becomes a `LabelConfigError` with one sentence that carries no label text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element, ParseError, tostring
from xml.sax.saxutils import escape

import defusedxml.ElementTree
from defusedxml.common import DefusedXmlException

from backend.errors import LabelConfigError

MAX_CHARACTERS = 5_000_000  # a taxonomy of 50,000 terms takes about 3 million
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Tag:
    """One element. `kind` and the attribute names are lower case; values are as written."""

    kind: str
    attributes: Mapping[str, str]
    children: tuple[Tag, ...]
    inner: str  # markup between the tags, without surrounding spaces; only where Label Studio reads it as the value

    def get(self, attribute: str, default: str = "") -> str:
        """An attribute's value as written."""
        return self.attributes.get(attribute, default)

    def is_true(self, attribute: str) -> bool:
        """Whether an attribute says "true", as Label Studio reads it."""
        return self.get(attribute).strip().lower() == "true"

    @property
    def value(self) -> str:
        """Inner markup wins over the attribute, as in Label Studio's front-end."""
        return self.inner or self.get("value")


def read(xml: object) -> Tag:
    """The root of a label config. Raises LabelConfigError when it is empty, too large, unsafe or not XML."""
    if not isinstance(xml, str) or not xml.strip("\ufeff \t\r\n"):
        raise LabelConfigError("The project has no labeling configuration yet.")
    if len(xml) > MAX_CHARACTERS:
        raise LabelConfigError(f"The labeling configuration is longer than {MAX_CHARACTERS:,} characters.")
    try:
        root = defusedxml.ElementTree.fromstring(xml.strip("\ufeff \t\r\n"), forbid_dtd=True)
    except DefusedXmlException as error:
        raise LabelConfigError("The labeling configuration must not declare a document type or entities.") from error
    except ParseError as error:
        line, column = error.position
        raise LabelConfigError(
            f"The labeling configuration is not well-formed XML (line {line}, column {column})."
        ) from error
    except (ValueError, LookupError) as error:  # lone surrogates, an encoding that does not exist
        raise LabelConfigError("The labeling configuration holds characters that XML does not allow.") from error
    return _tag(root, depth=1)


def walk(root: Tag) -> Iterator[tuple[Tag, tuple[Tag, ...]]]:
    """Every tag with its ancestors (outermost first), in document order."""
    stack: list[tuple[Tag, tuple[Tag, ...]]] = [(root, ())]
    while stack:
        tag, ancestors = stack.pop()
        yield tag, ancestors
        stack.extend((child, (*ancestors, tag)) for child in reversed(tag.children))


def _tag(element: Element, *, depth: int) -> Tag:
    if depth > MAX_DEPTH:
        raise LabelConfigError(f"The labeling configuration is nested deeper than {MAX_DEPTH} tags.")
    kind = _local_name(element.tag)
    attributes = {_local_name(name): value for name, value in element.attrib.items()}
    children = tuple(_tag(child, depth=depth + 1) for child in element if isinstance(child.tag, str))
    return Tag(kind, attributes, children, _inner(element, kind))


def _local_name(name: str) -> str:
    return name.rpartition("}")[2].lower()


def _inner(element: Element, kind: str) -> str:
    """Label Studio takes the inner markup for the value where there are only text nodes, and always in HyperText."""
    if len(element) and kind != "hypertext":
        return ""
    text = escape(element.text or "")
    return (text + "".join(tostring(child, encoding="unicode") for child in element)).strip()

"""Small SVG pictures as markup: elements with escaped attributes, and a frame that says what there is to see.

Widths are shares of the room there is (percent), heights are pixels, so that no text is ever scaled. There are no
`style` attributes, since the content security policy forbids them: colours come from classes in the style sheet.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

Attribute = str | int | float


def element(tag: str, *inside: str | Markup, **attributes: Attribute) -> Markup:
    """<tag ...>inside</tag>; `class_` is `class`, `_` in a name is `-`. Numbers are rounded to two decimals."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(value)}"' for name, value in attributes.items()
    )
    return Markup(f"<{tag}{written}>{''.join(str(escape(each)) for each in inside)}</{tag}>")


def share(value: float) -> str:
    """0.125 -> "12.5%", within the picture."""
    return f"{_text(min(max(value, 0.0), 1.0) * 100)}%"


def picture(parts: Iterable[Markup], *, height: int, title: str, text: str, name: str = "chart") -> Markup:
    """A picture for everybody: `text` is what a screen reader says after the title. `name` is the class."""
    about = (element("title", title), element("desc", text))
    return element(
        "svg", *about, *parts, class_=name, width="100%", height=height, role="img", aria_label=f"{title}: {text}"
    )


def decoration(parts: Iterable[Markup], *, height: int, name: str) -> Markup:
    """A picture that repeats a number which stands beside it; screen readers pass over it."""
    return element("svg", *parts, class_=name, width="100%", height=height, aria_hidden="true")


def _text(value: Attribute) -> str:
    if isinstance(value, float):
        value = f"{value:.2f}".rstrip("0").rstrip(".")
    return str(escape(value))

"""An explanation as one file that needs no server: HTML with the style sheet and the pictures inside, or a PNG."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime

from PIL import Image

from backend.errors import ClientError, MediaError
from backend.report.explanations.overlay import overlay, png, side_by_side
from backend.report.explanations.page import EVERYBODY, WAYS, cells_of, explanation, scale_of, shown_name, weights_of
from backend.report.html import environment, inline_style
from backend.report.names import Names
from backend.report.pages import Look
from backend.services.explanation.documents import TaskExplanation

Bytes = Callable[[int], bytes]  # which image -> its file; may raise MediaError


def as_html(look: Look, document: TaskExplanation, *, picture: Bytes, at: datetime) -> str:
    """A file with every control and both ways to weigh."""
    read = _Pictures(picture)

    def source(control: str) -> Callable[[str, int, str], str]:
        def address(annotator: str, piece: int, way: str) -> str:
            made = png(drawn(document, read(piece), annotator=annotator, control=control, way=way, piece=piece))
            return f"data:image/png;base64,{base64.b64encode(made).decode('ascii')}"

        return address

    parts = [explanation(look, document, control=control, ways=WAYS, source=source(control), query={})
             for control in document.network_share]
    return environment().get_template("site/explanation_file.html").render(
        look=look, parts=parts, found=document, style=inline_style(), at=at, standalone=True, query={},
    )


def as_picture(document: TaskExplanation, names: Names, *, control: str, way: str, piece: int, picture: Bytes) -> bytes:
    """Overlays of all annotators side by side, and of the mean of all where attention is shown. Raises ClientError."""
    data, panels = _Pictures(picture)(piece), []
    for each in document.annotators:
        if weights_of(document, each.annotator, control, way) is not None:
            made = drawn(document, data, annotator=each.annotator, control=control, way=way, piece=piece)
            said = f"{shown_name(names, each.annotator, each.name)}: {each.controls[control].answer}"
            panels.append((said, made))
    if way == WAYS[1]:
        made = drawn(document, data, annotator=EVERYBODY, control=control, way=way, piece=piece)
        panels.append(("all annotators", made))
    if not panels:
        raise ClientError("There was no time to find what matters; attention can be drawn.")
    return png(side_by_side(panels))


def drawn(
    document: TaskExplanation, data: bytes | None, *, annotator: str, control: str, way: str, piece: int
) -> Image.Image:
    """The overlay of one annotator. Raises ClientError where there are no weights or no such image."""
    weights = weights_of(document, annotator, control, way)
    cells = None if weights is None else cells_of(document, weights, piece)
    if cells is None:
        raise ClientError(f"Task {document.task} has no image {piece} with weights of this kind.")
    return overlay(data, cells, most=scale_of(document, annotator, control, way))


class _Pictures:
    """Files of images, each read once; None for one that cannot be read, which is drawn as a grey one."""

    def __init__(self, read: Bytes) -> None:
        self._read = read
        self._found: dict[int, bytes | None] = {}

    def __call__(self, piece: int) -> bytes | None:
        if piece not in self._found:
            try:
                self._found[piece] = self._read(piece)
            except MediaError:
                self._found[piece] = None
        return self._found[piece]

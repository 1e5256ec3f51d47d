"""Control tags of Label Studio that Polyvox recognises by name and does not learn yet, and why."""

from __future__ import annotations

from backend.labeling.controls.base import Place, Unmodelled
from backend.labeling.controls.visibility import conditions_of

# lower-case kind -> (as Label Studio spells it, what an annotator does with it)
RECOGNISED = {
    "bitmask": ("Bitmask", "marks pixels"),
    "bitmasklabels": ("BitmaskLabels", "labels pixels"),
    "brush": ("Brush", "marks pixels"),
    "brushlabels": ("BrushLabels", "labels pixels"),
    "chat": ("Chat", "holds a conversation"),
    "chatmessage": ("ChatMessage", "writes messages"),
    "custominterface": ("CustomInterface", "is a custom interface"),
    "datetime": ("DateTime", "takes a date"),
    "ellipse": ("Ellipse", "marks regions"),
    "ellipselabels": ("EllipseLabels", "labels regions"),
    "hypertextlabels": ("HyperTextLabels", "labels spans of a text"),
    "keypoint": ("KeyPoint", "marks points"),
    "keypointlabels": ("KeyPointLabels", "labels points"),
    "labels": ("Labels", "labels spans of a text or a sound"),
    "magicwand": ("MagicWand", "marks pixels"),
    "ocrlabels": ("OcrLabels", "labels regions"),
    "paragraphlabels": ("ParagraphLabels", "labels spans of a dialogue"),
    "polygon": ("Polygon", "marks regions"),
    "polygonlabels": ("PolygonLabels", "labels regions"),
    "reactcode": ("ReactCode", "is a custom interface"),
    "rectangle": ("Rectangle", "marks regions"),
    "rectanglelabels": ("RectangleLabels", "labels regions"),
    "relation": ("Relation", "links regions"),
    "relations": ("Relations", "links regions"),
    "textarea": ("TextArea", "takes free text"),
    "timelinelabels": ("TimelineLabels", "labels parts of a video"),
    "timeserieslabels": ("TimeSeriesLabels", "labels parts of a time series"),
    "vector": ("Vector", "marks lines"),
    "vectorlabels": ("VectorLabels", "labels lines"),
    "videorectangle": ("VideoRectangle", "marks regions of a video"),
    "videovector": ("VideoVector", "marks lines of a video"),
    "videovectorlabels": ("VideoVectorLabels", "labels lines of a video"),
}

_INSIDE_ONLY = frozenset({"relation", "relations"})  # what stands in a <Relations> is no control of its own


def declare(place: Place) -> Unmodelled | None:
    """What is said of a recognised control that is not modelled; None for a tag that is no control."""
    known = RECOGNISED.get(place.tag.kind)
    if known is None or (place.tag.kind == "relation" and any(tag.kind in _INSIDE_ONLY for tag in place.ancestors)):
        return None
    tag, does = known
    called = f"{tag} '{place.name}'" if place.name else tag
    return Unmodelled(name=place.name, tag=tag, reason=f"{called} {does}, which is not modelled yet.")


def why_not_here(place: Place, tag: str, *, on_regions: bool = False) -> str:
    """A sentence that says why a control that could be modelled cannot be where it stands; "" when it can.

    `on_regions`: it is one whose answers on regions are kept."""
    called = f"{tag} '{place.name}'"
    if any(ancestor.kind == "repeater" for ancestor in place.ancestors):
        return f"{called} is repeated over task data (Repeater), which is not modelled yet."
    if place.tag.is_true("perregion") and not on_regions:
        return f"{called} is answered for each region (perRegion), which is not modelled yet."
    if place.tag.is_true("peritem"):
        return f"{called} is answered for each item (perItem), which is not modelled yet."
    if not on_regions and conditions_of((*place.ancestors, place.tag)) is None:
        return f"{called} is shown only under a condition (visibleWhen) of a kind that is not modelled yet."
    return ""

"""How a vote came to be, from what Label Studio records.

The front-end marks each region: `origin` is "manual", "prediction" (a pre-annotation, unchanged) or
"prediction-changed" (begun as one, then edited). Label Studio writes no origin when it turns predictions into
annotations (`parent_prediction` is set then) and where annotations come with a task import; those also have no lead
time. What is posted through the API with a lead time counts as made by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from backend.records import Annotation
from model.votes import Provenance

_TAKEN_OVER = "prediction"
_EDITED = "prediction-changed"
_FILLED = "Predicted by Polyvox, nobody's own label: "


def provenance_of(regions: Sequence[Mapping[str, Any]], annotation: Annotation) -> Provenance:
    """Provenance of the vote that these regions of one control make up."""
    origins = {origin if isinstance(origin := region.get("origin"), str) else "" for region in regions}
    if origins == {_TAKEN_OVER}:
        return Provenance.ACCEPTED
    if origins & {_TAKEN_OVER, _EDITED}:
        return Provenance.CHANGED
    if "manual" not in origins and annotation.parent_prediction is not None:
        return Provenance.ACCEPTED
    return Provenance.IMPORTED if annotation.imported else Provenance.MANUAL


def provenance_on_region(regions: Sequence[Mapping[str, Any]], annotation: Annotation, *, shown: bool) -> Provenance:
    """Provenance of an answer on a region. Label Studio may write on it the origin of the region that it is on, which
    then says nothing of the answer: where nothing of ours was shown, an answer by a person counts as made by hand."""
    found = provenance_of(regions, annotation)
    said_of_region = found is Provenance.ACCEPTED and any(map(is_taken_over, regions))
    return Provenance.MANUAL if said_of_region and not shown and not annotation.imported else found


def is_taken_over(region: Mapping[str, Any]) -> bool:
    """Whether a region came from a prediction and is unchanged."""
    return region.get("origin") == _TAKEN_OVER


def is_echo(provenance: Provenance) -> bool:
    """Whether a pre-annotation was on the screen when the vote was given."""
    return provenance in (Provenance.ACCEPTED, Provenance.CHANGED)


def as_filled(result: Sequence[Mapping[str, Any]], version: str) -> list[dict[str, Any]]:
    """Regions that say for good that they are predicted; Label Studio keeps and shows `meta.text`."""
    note = {"meta": {"text": [_FILLED + version]}}
    return [{**region, **note} for region in result]


def is_filled(regions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an annotation was made by `as_filled`, and so is nobody's vote; also when somebody edited it since."""
    return any(_says_filled(region.get("meta")) for region in regions)


def _says_filled(meta: Any) -> bool:
    text = meta.get("text") if isinstance(meta, Mapping) else None
    lines = text if isinstance(text, list) else [text]
    return any(isinstance(line, str) and line.startswith(_FILLED) for line in lines)


def is_imported(raw: Mapping[str, Any]) -> bool:
    """Whether an annotation came with a task import: it keeps the id it had elsewhere, or bears no trace of the
    front-end (no origin, no lead time, no prediction that it was made from)."""
    if raw.get("import_id") is not None:
        return True
    if raw.get("lead_time") is not None or raw.get("parent_prediction") is not None:
        return False
    regions = raw.get("result")
    known = regions if isinstance(regions, list) else []
    return not any(region.get("origin") for region in known if isinstance(region, Mapping))

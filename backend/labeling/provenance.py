"""How a vote came to be, from what Label Studio records.

The front-end marks each region: `origin` is "manual", "prediction" (a pre-annotation, unchanged) or
"prediction-changed" (begun as one, then edited). Old versions left "prediction" on what was edited: where the
annotation holds the prediction that was on the screen, the two are compared. Label Studio writes no origin when it
turns predictions into annotations (`parent_prediction` is set then) and where annotations come with a task import;
those also have no lead time. What is posted through the API with a lead time counts as made by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from backend.records import Annotation
from model.data.votes import Provenance

_TAKEN_OVER = "prediction"
_EDITED = "prediction-changed"
_SETS = frozenset({"choices", "taxonomy"})
_ANSWERS = _SETS | {"rating", "number", "selected", "ranker", "text", "datetime"}
_OURS = ("consensus@", "annotator:")
_FILLED = "Predicted by Polyvox, nobody's own label: "


def provenance_of(regions: Sequence[Mapping[str, Any]], annotation: Annotation) -> Provenance:
    """Provenance of the vote that these regions of one control make up."""
    origins = {origin if isinstance(origin := region.get("origin"), str) else "" for region in regions}
    if origins == {_TAKEN_OVER}:
        return Provenance.ACCEPTED if _as_predicted(regions, annotation.predicted) else Provenance.CHANGED
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


def _as_predicted(regions: Sequence[Mapping[str, Any]], predicted: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether regions of one control say what the prediction said with it; True where nobody knows that."""
    if predicted is None:
        return True
    controls = {str(region.get("from_name")) for region in regions}
    said = [region for region in predicted if str(region.get("from_name")) in controls]
    places = {_place(region) for region in regions}
    there = [region for region in said if _place(region) in places]
    return sorted(map(_said, regions)) == sorted(map(_said, there))


def shown_prediction(raw: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """The regions of the prediction that an annotation holds; None where it holds none, or one that was not on the
    screen: Label Studio keeps the one of the selected version, which for own predictions of ours is the consensus."""
    parent = raw.get("parent_prediction")
    held = raw["prediction"] if isinstance(raw.get("prediction"), Mapping) else parent
    result = held.get("result") if isinstance(held, Mapping) else None
    if not isinstance(held, Mapping) or not isinstance(result, list):
        return None
    if str(held.get("model_version")).startswith(_OURS):
        return None
    predicted = [region for region in result if isinstance(region, Mapping)]
    own = raw.get("result")
    mine = [region for region in own if isinstance(region, Mapping)] if isinstance(own, list) else []
    ids = {region["id"] for region in predicted if isinstance(region.get("id"), str)}
    of_another = any(region.get("id") not in ids and ("score" in region or "meta" in region) for region in mine)
    made_from_it = parent is held or (parent is not None and parent == held.get("id"))
    return None if of_another and not made_from_it else predicted


def _place(region: Mapping[str, Any]) -> str:
    """What a region stands on: other regions of its control are other answers."""
    value = region.get("value")
    where = {key: each for key, each in value.items() if key not in _ANSWERS} if isinstance(value, Mapping) else {}
    return json.dumps([region.get("item_index"), where], sort_keys=True, default=str)


def _said(region: Mapping[str, Any]) -> str:
    """The answer of a region; a set of choices in any order is one answer."""
    value = region.get("value")
    if isinstance(value, Mapping):
        value = {key: sorted(map(str, each if isinstance(each, list) else [each])) if key in _SETS else _plain(each)
                 for key, each in value.items()}
    return json.dumps(value, sort_keys=True, default=str)


def _plain(item: Any) -> Any:
    return float(item) if isinstance(item, int) and not isinstance(item, bool) and abs(item) < 2**53 else item


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

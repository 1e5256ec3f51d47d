"""Aggregators as they are named on the command line, with their settings.

Kept free of imports of `model.crowd`, so that `--help` is there at once; a test holds the names against the registry.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from backend.commands.dataset import sentences
from backend.errors import ClientError

if TYPE_CHECKING:
    from model.crowd import Aggregator

METHODS = (
    "majority", "soft", "dawid-skene", "fast-dawid-skene", "one-coin", "glad", "mace", "wawa", "iwmv",
    "zero-based-skill", "weighted-dawid-skene", "two-third", "plantnet", "crowdlab", "dswc", "kos", "mmsr",
    "ordinal-dawid-skene", "online-dawid-skene",
)
PEERANNOT_NAMES = {
    "mv": "majority", "naivesoft": "soft", "ns": "soft", "ds": "dawid-skene", "wds": "weighted-dawid-skene",
    "twothird": "two-third", "zbs": "zero-based-skill",
}
_CLUSTERS = re.compile(r"dswc\[l=(\d+)\]")


def make_method(name: str, settings: Sequence[str] = ()) -> Aggregator:
    """An aggregator by our name or peerannot's (MV, DS, DSWC[L=5] ...), with NAME=VALUE settings.

    Raises ClientError for an unknown name, setting or value.
    """
    from model.crowd import AGGREGATORS, make

    lower = name.lower()
    chosen: dict[str, object] = {}
    clusters = _CLUSTERS.fullmatch(lower)
    if clusters:
        lower, chosen = "dswc", {"n_clusters": int(clusters[1])}
    lower = PEERANNOT_NAMES.get(lower, lower)
    method = AGGREGATORS.get(lower)
    if method is not None and settings:
        kinds = _settable(method)
        for setting in settings:
            key, _, text = setting.partition("=")
            if key not in kinds:
                raise ClientError(f"{lower} has no setting {key}; it has {', '.join(kinds) or 'none'}.")
            chosen[key] = _parsed(key, text, kinds[key])
    with sentences():
        return make(lower, **chosen)


def _settable(method: type[Aggregator]) -> dict[str, str]:
    """name -> type of the settings that can be given as text."""
    fields: dict[str, dataclasses.Field[object]] = getattr(method, "__dataclass_fields__", {})
    kinds = {name: str(each.type) for name, each in fields.items() if not str(each.type).startswith("ClassVar")}
    return {name: kind for name, kind in kinds.items() if kind in _PARSERS or kind.startswith("Literal")}


def _parsed(key: str, text: str, kind: str) -> object:
    if kind.startswith("Literal"):
        allowed = re.findall(r"[\"']([^\"']+)[\"']", kind)
        if text not in allowed:
            raise ClientError(f"The setting {key} takes {' or '.join(allowed)}.")
        return text
    try:
        return _PARSERS[kind](text)
    except ValueError as error:
        raise ClientError(f"The setting {key} takes a value of type {kind}.") from error


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "yes", "1")


def _optional_int(text: str) -> int | None:
    return None if text.lower() == "none" else int(text)


_PARSERS: dict[str, Callable[[str], object]] = {"int": int, "float": float, "bool": _bool, "int | None": _optional_int}

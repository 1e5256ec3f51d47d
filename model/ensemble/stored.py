"""One control of a ladder as a checkpoint keeps it: arrays by name, and numbers beside them.

Each base model names what it keeps (`Fitted.arrays`, `Fitted.numbers`). Names stay as they are, so that checkpoints of
installations that run are read for good, and ours by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from numpy.typing import NDArray

from model import checkpoint
from model.base_models.base import Stored
from model.base_models.registry import BASE_MODELS
from model.coldstart.people import People
from model.data.numbers import NumberBins, from_json, to_json
from model.data.spaces import MultipleChoice, SingleChoice, Space, ValueKind
from model.ensemble.calibration import Calibration
from model.ensemble.control import ControlState
from model.ensemble.floor import Floor
from model.ensemble.gaps import Gaps
from model.ensemble.stack import Stack
from model.qumab.committee import Committee


def control_arrays(state: ControlState) -> checkpoint.Arrays:
    """By names within the control."""
    found: checkpoint.Arrays = {"bias": state.stack.bias, "panel": state.panel}
    for fitted in state.base_models.values():
        found |= fitted.arrays()
    if state.gaps is not None:
        found |= {"gaps.few": state.gaps.few.bias, "gaps.many": state.gaps.many.bias}
        if state.gaps.share is not None:
            found["gaps.share"] = state.gaps.share
    if state.people is not None:
        found |= {"people.basis": state.people.basis, "people.weight": state.people.weight}
    if state.floor is not None:
        found |= {f"floor.{key}": getattr(state.floor, key) for key in Floor.__slots__}
    return found


def control_numbers(state: ControlState) -> dict[str, Any]:
    """JSON-able."""
    of_models: dict[str, Any] = {}
    for fitted in state.base_models.values():
        of_models |= fitted.numbers()
    return {
        "kind": str(state.space.kind), "classes": list(state.space.classes), "weights": state.stack.weights,
        "temperature": state.stack.temperature, "spread": state.panel_noise, **of_models,
        **({} if state.gaps is None else {"gaps": _gaps_numbers(state.gaps)}), **_space_numbers(state.space),
        **({} if state.calibration is None else {"calibration": astuple(state.calibration)}),
    }


def control_from(
    arrays: checkpoint.Arrays, index: int, item: Mapping[str, Any], committee: Committee
) -> ControlState:
    """Raises KeyError where a part is not there, among them one that a stack gives a weight."""
    prefix = f"control.{index}."
    part = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    space = space_from(item)
    stored = Stored(control=item["name"], space=space, arrays=part, numbers=item, committee=lambda: committee)
    base_models = {
        name: fitted for name, model in BASE_MODELS.items() if (fitted := model.from_arrays(stored)) is not None
    }
    state = ControlState(
        space=space, base_models=base_models, panel=part["panel"], panel_noise=item["spread"],
        gaps=_gaps(part, item["gaps"]) if "gaps" in item else None,
        stack=Stack(weights=item["weights"], temperature=item["temperature"], bias=part["bias"]),
        floor=Floor(**{key: part[f"floor.{key}"] for key in Floor.__slots__}) if "floor.share" in part else None,
        people=_people(part), calibration=Calibration(*item["calibration"]) if "calibration" in item else None,
    )
    stacks = [state.stack, *([] if state.gaps is None else [state.gaps.few, state.gaps.many])]
    lacking = {name for stack in stacks for name in stack.weights} - base_models.keys()
    if lacking:
        raise KeyError(*lacking)
    return state


def space_from(item: Mapping[str, Any]) -> Space:
    """The space of a control as `control_numbers` wrote it."""
    if "bins" in item:
        return from_json(item["bins"])
    classes = tuple(item["classes"])
    if item["kind"] == ValueKind.CLASS:
        return SingleChoice(classes, ordered=item.get("ordered") is True)
    return MultipleChoice(classes)


def _space_numbers(space: Space) -> dict[str, Any]:
    """What a space is beyond its classes; nothing for plain ones, as in checkpoints from before there were others."""
    if isinstance(space, NumberBins):
        return {"bins": to_json(space)}
    return {"ordered": True} if isinstance(space, SingleChoice) and space.ordered else {}


def _people(part: Mapping[str, NDArray[Any]]) -> People | None:
    if "people.basis" not in part:
        return None
    return People(basis=part["people.basis"], weight=part["people.weight"])


def _gaps_numbers(gaps: Gaps) -> dict[str, Any]:
    stacks = {"few": gaps.few, "many": gaps.many}
    return {
        "spread": gaps.panel_noise,
        **{name: {"weights": stack.weights, "temperature": stack.temperature} for name, stack in stacks.items()},
    }


def _gaps(part: Mapping[str, NDArray[Any]], item: Mapping[str, Any]) -> Gaps:
    few, many = (
        Stack(weights=item[name]["weights"], temperature=item[name]["temperature"], bias=part[f"gaps.{name}"])
        for name in ("few", "many")
    )
    return Gaps(few=few, many=many, panel_noise=item["spread"], share=part.get("gaps.share"))

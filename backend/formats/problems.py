"""From a data set to what an evaluation needs: the space of a control, the text of each task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backend.formats.dataset import Dataset
from backend.formats.errors import FormatError
from model.data.spaces import MultipleChoice, SingleChoice, Space, ValueKind
from model.evaluate.problem import Problem, TokensOf, make_problem

_USUAL = ("text", "dialogue", "html", "content", "sentence", "comment")


def space_of(dataset: Dataset, control: str, *, ordered: bool = False) -> Space:
    """The space of a control's answers; single classes are learned in their order if wanted.

    Raises FormatError where they are neither classes nor sets of them.
    """
    kinds, classes = dataset.kinds(control), dataset.classes_of(control)
    if kinds == {ValueKind.CLASS}:
        return SingleChoice(classes, ordered=ordered)
    if kinds == {ValueKind.CLASSES}:
        return MultipleChoice(classes)
    named = ", ".join(sorted(kind.value for kind in kinds)) or "none"
    raise FormatError(f"An evaluation needs single classes or sets of them; {control} has answers of kind {named}.")


def texts_of(dataset: Dataset, field: str = "") -> dict[str, str]:
    """unit -> text of every task, by one field of the task data; empty where the data set has no text.

    Without `field`: the usual name that is there, else the only field with text. Raises FormatError where several
    could be meant, where the field is in no task, and where only some tasks have it.
    """
    if not dataset.content and not field:
        return {}
    fields = {name for data in dataset.content.values() for name, value in data.items() if isinstance(value, str)}
    chosen = field or next((name for name in _USUAL if name in fields), "")
    if not chosen:
        if not fields:
            return {}
        if len(fields) > 1:
            raise FormatError(f"The text could be any of {', '.join(sorted(fields))}; choose one with --text.")
        chosen = next(iter(fields))
    texts = {unit: text for unit, data in dataset.content.items() if (text := _text(data, chosen)) is not None}
    voted = sorted(set(dataset.votes.unit.tolist()))
    missing = [dataset.votes.units[at] for at in voted if dataset.votes.units[at] not in texts]
    if missing:
        raise FormatError(f"{len(missing)} tasks with votes have no text in {chosen}, {missing[0]} for example.")
    return texts


def problem_of(
    dataset: Dataset, control: str, tokens: TokensOf, *, ordered: bool = False, texts: Mapping[str, str] | None = None
) -> Problem:
    """What models compete on; `texts` are those of the tasks, where tokens are of texts.

    Raises ModelError and FormatError for what cannot be evaluated.
    """
    space = space_of(dataset, control, ordered=ordered)
    return make_problem(
        dataset.name, dataset.votes, control, space, tokens, ordinal=dataset.ordinal,
        gold=dataset.gold.get(control, {}), texts=(lambda units: [texts[unit] for unit in units]) if texts else None,
    )


def _text(data: Mapping[str, Any], field: str) -> str | None:
    value = data.get(field)
    return value if isinstance(value, str) else None

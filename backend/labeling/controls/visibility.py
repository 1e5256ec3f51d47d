"""Controls shown only under a condition: `visibleWhen="choice-selected"` on the control or on a view around it.

The condition names a control (`whenTagName`) and may name choices of it (`whenChoiceValue`, with commas). Votes need no
care, since what was not shown was not answered; a prediction is made for a hidden control only where the prediction for
the control that it depends on shows it. Every other kind of condition is declared as not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from backend.labeling.markup import Tag

_OTHERS = ("whenlabelvalue", "whenrole", "whentagvalue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must have been chosen."""

    control: str
    choices: tuple[str, ...]  # by value or alias; () for any

    def holds(self, chosen: Mapping[str, Sequence[str]]) -> bool:
        """Whether it holds, given what is chosen with each control."""
        names = chosen.get(self.control, ())
        return any(name in names for name in self.choices) if self.choices else bool(names)


def conditions_of(tags: Sequence[Tag]) -> tuple[Condition, ...] | None:
    """The conditions of a control and of the views around it; None where one of them is of another kind."""
    found = []
    for tag in tags:
        kind = tag.get("visiblewhen").strip().lower()
        name = tag.get("whentagname").strip()
        choices = tuple(part.strip() for part in tag.get("whenchoicevalue").split(",") if part.strip())
        if any(tag.get(other) for other in _OTHERS) or (kind != "choice-selected" and (kind or name or choices)):
            return None
        if kind:
            if not name:
                return None
            found.append(Condition(control=name, choices=choices))
    return tuple(found)

"""Controls side by side: where the classes of each stand among a network's outputs and label embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.spaces import Space, ValueKind


@dataclass(frozen=True, slots=True)
class Slot:
    """Where a control's classes stand among the network's outputs."""

    space: Space
    start: int
    stop: int

    def spread(self, y: NDArray[np.floating], classes: int) -> NDArray[np.float32]:
        """Encoded votes (n, C of the control) as label tokens say them, (n, all classes): of several choices a class
        that was left out counts as -1."""
        wide = np.zeros((len(y), classes), np.float32)
        wide[:, self.start : self.stop] = y if self.space.kind is ValueKind.CLASS else 2.0 * y - 1.0
        return wide


def lay_out(spaces: Mapping[str, Space]) -> dict[str, Slot]:
    """Controls side by side, in the order given."""
    slots, start = {}, 0
    for name, space in spaces.items():
        slots[name] = Slot(space, start, start + len(space.classes))
        start += len(space.classes)
    return slots

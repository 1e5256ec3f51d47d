"""What a training leaves for the audit: out-of-sample predictions of its votes, near-duplicates, a map of annotators.

Kept as a checkpoint of its own beside the version, so that statistics need neither the network nor the features.
A prediction belongs to a (unit, annotator) pair and came from models that never saw the unit; it stays honest when the
annotator changes the vote later.

Shape legend: U units, A annotators, N votes of one control, C classes, P pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model import checkpoint
from model.errors import CheckpointError

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControlEvidence:
    """One control; `unit` and `annotator` point into the tables of `Evidence`."""

    classes: tuple[str, ...]  # C, the order of the last axis
    unit: NDArray[np.int32]  # (N,)
    annotator: NDArray[np.int32]  # (N,)
    served: Singles  # (N, C) calibrated probabilities
    prior: Singles  # (N, C) of the annotator's habits alone

    def align(self, units: Mapping[str, int], annotators: Mapping[str, int], tables: Evidence) -> NDArray[np.int64]:
        """(N, 2) positions of each prediction's unit and annotator in other tables, -1 where they are unknown."""
        unit = np.array([units.get(name, -1) for name in tables.units], np.int64)
        annotator = np.array([annotators.get(name, -1) for name in tables.annotators], np.int64)
        return np.stack([unit[self.unit], annotator[self.annotator]], axis=1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Everything that the audit takes from one version."""

    units: tuple[str, ...]  # U
    annotators: tuple[str, ...]  # A
    controls: Mapping[str, ControlEvidence]
    near_duplicates: NDArray[np.int32]  # (P, 2) positions of nearly equal units
    likeness: Singles  # (P,) their cosine
    position: Floats  # (A, 2)
    explained: float  # share of the queries' variance that the map shows

    def save(self, folder: Path) -> None:
        """Write it at `folder`, which must not exist. Raises CheckpointError."""
        arrays: checkpoint.Arrays = {
            "twins": self.near_duplicates, "likeness": self.likeness, "position": self.position,
        }
        for index, item in enumerate(self.controls.values()):
            arrays |= {f"{index}.{name}": getattr(item, name) for name in _COLUMNS}
        checkpoint.save(folder, arrays, {
            "units": list(self.units), "annotators": list(self.annotators), "explained": self.explained,
            "controls": [[name, list(item.classes)] for name, item in self.controls.items()],
        })

    @classmethod
    def load(cls, folder: Path) -> Evidence:
        """Read it. Raises CheckpointError when it is missing, damaged or of another shape."""
        arrays, meta = checkpoint.load(folder)
        try:
            controls = {
                name: ControlEvidence(
                    classes=tuple(classes), **{column: arrays[f"{index}.{column}"] for column in _COLUMNS}
                )
                for index, (name, classes) in enumerate(meta["controls"])
            }
            return cls(
                units=tuple(meta["units"]), annotators=tuple(meta["annotators"]), controls=controls,
                near_duplicates=arrays["twins"], likeness=arrays["likeness"], position=arrays["position"],
                explained=float(meta["explained"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the evidence {Path(folder).name} lacks a part") from error


_COLUMNS: Sequence[str] = ("unit", "annotator", "served", "prior")

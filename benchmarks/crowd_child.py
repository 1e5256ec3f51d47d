"""One crowd measurement in a process of its own: seconds by the clock and of the processor, highest memory above input.

    python -m benchmarks.crowd_child MEASURE VOTES.npz SETTINGS_JSON     # prints one line of JSON

Run with our interpreter for `ours.*`, with the peers' for all else. The input is built first and is not timed; a call
on a few votes loads what is loaded late (imports, compiled code). The process's high-water mark is then reset, so that
what is reported is the peak while the method ran, less what the process held with the input in place (Linux only).
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WARM_UP_UNITS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """N votes as codes, sorted by unit, with the truth (U,) and a model's probabilities (U, C) where needed."""

    unit: NDArray[np.int32]
    annotator: NDArray[np.int32]
    label: NDArray[np.int32]
    truth: NDArray[np.int32]
    n_annotators: int
    n_classes: int
    probabilities: NDArray[np.float64] | None = None

    @property
    def n_units(self) -> int:
        return len(self.truth)

    def head(self, n_units: int) -> Columns:
        """The first units; annotators are numbered anew, since some peers refuse one without votes."""
        rows = self.unit < n_units
        present, annotator = np.unique(self.annotator[rows], return_inverse=True)
        return Columns(
            unit=self.unit[rows], annotator=annotator.astype(np.int32), label=self.label[rows],
            truth=self.truth[:n_units], n_annotators=len(present), n_classes=self.n_classes,
            probabilities=None if self.probabilities is None else self.probabilities[:n_units],
        )

    def save(self, path: Path) -> None:
        extra: dict[str, Any] = {} if self.probabilities is None else {"probabilities": self.probabilities}
        np.savez(
            path, unit=self.unit, annotator=self.annotator, label=self.label, truth=self.truth,
            shape=np.array([self.n_annotators, self.n_classes]), **extra,
        )

    @classmethod
    def load(cls, path: Path) -> Columns:
        with np.load(path, allow_pickle=False) as file:
            n_annotators, n_classes = file["shape"].tolist()
            return cls(
                unit=file["unit"], annotator=file["annotator"], label=file["label"], truth=file["truth"],
                n_annotators=n_annotators, n_classes=n_classes,
                probabilities=file.get("probabilities"),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a method answered: labels (U,), -1 where it abstains; None where it gives no labels."""

    labels: NDArray[Any] | None = None
    iterations: int | None = None
    value: float | None = None


# Builds the input of a method and returns the call that is measured.
Measure = Callable[..., Callable[[], Outcome]]


def memory_mb(field: str) -> float:
    """`VmRSS` (held now) or `VmHWM` (the most since the last reset)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) / 1024
    raise LookupError(f"/proc/self/status has no {field}")


def main(name: str, votes: str, settings: str) -> int:
    package, _, method = name.partition(".")
    side = "ours" if package == "ours" else "peers"  # each imports what only its environment has
    measures: dict[str, Measure] = import_module(f"benchmarks.crowd_{side}").MEASURES
    measure = measures[method if package == "ours" else name]
    wishes = json.loads(settings)
    columns = Columns.load(Path(votes))
    measure(columns.head(WARM_UP_UNITS), **wishes)()
    gc.collect()
    bare = memory_mb("VmRSS")
    call = measure(columns, **wishes)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory_mb("VmRSS")
    begun, worked = time.perf_counter(), time.process_time()
    outcome = call()
    seconds, cpu_s = time.perf_counter() - begun, time.process_time() - worked
    peak = memory_mb("VmHWM")
    right = None if outcome.labels is None else float(np.mean(np.asarray(outcome.labels) == columns.truth))
    print(json.dumps({
        "seconds": seconds, "cpu_s": cpu_s, "peak_mb": peak - before, "input_mb": before - bare, "accuracy": right,
        "iterations": outcome.iterations, "value": outcome.value,
    }))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

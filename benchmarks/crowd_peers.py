"""Methods of crowd-kit, peerannot and cleanlab as measurements for `crowd_child`; runs in the peers' environment.

    python -m benchmarks.crowd_peers PLAN.json     # a list of {votes, measure, settings}; one line of JSON for each

The second use is for accuracy on many small crowds, where a process for each would take longer than the methods.

Each gets its own kind of input: crowd-kit a table, peerannot a dictionary, cleanlab a dense matrix. Their settings are
their defaults unless a measurement says otherwise. Imports are inside, so that one peer does not weigh on another.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crowd_child import Columns, Measure, Outcome

PATIENCE_S = 60  # of the processor, for one method on one small crowd
CROWDKIT = ("MajorityVote", "DawidSkene", "OneCoinDawidSkene", "GLAD", "MACE", "MMSR", "KOS")


def frame(columns: Columns) -> Any:
    import pandas as pd

    return pd.DataFrame({"task": columns.unit, "worker": columns.annotator, "label": columns.label})


def crowdkit(name: str) -> Measure:
    def prepare(columns: Columns, **settings: object) -> Callable[[], Outcome]:
        import crowdkit.aggregation as methods

        table, method = frame(columns), getattr(methods, name)(**settings)

        def call() -> Outcome:
            found = method.fit_predict(table)
            steps = getattr(method, "loss_history_", None)
            labels = found.reindex(np.arange(columns.n_units)).to_numpy()
            return Outcome(labels=labels, iterations=None if steps is None else len(steps))

        return call

    return prepare


def crowdkit_alpha(columns: Columns) -> Callable[[], Outcome]:
    from crowdkit.metrics.data import alpha_krippendorff

    table = frame(columns)
    return lambda: Outcome(value=float(alpha_krippendorff(table)))


def nested(columns: Columns) -> dict[int, dict[int, int]]:
    answers: dict[int, dict[int, int]] = {unit: {} for unit in range(columns.n_units)}
    rows = zip(columns.unit.tolist(), columns.annotator.tolist(), columns.label.tolist(), strict=True)
    for unit, annotator, label in rows:
        answers[unit][annotator] = label
    return answers


def peerannot(name: str) -> Measure:
    """By class name. Ties are drawn from NumPy's global generator there, so `seed` seeds that one."""

    def prepare(columns: Columns, *, seed: int = 0, **settings: object) -> Callable[[], Outcome]:
        import peerannot.models as methods

        answers = nested(columns)

        def call() -> Outcome:
            np.random.seed(seed)
            common = {"n_workers": columns.n_annotators, "n_classes": columns.n_classes}
            with tempfile.TemporaryDirectory() as folder:  # GLAD writes its parameters to a folder
                extra = {"dataset": Path(folder)} if name == "GLAD" else {}
                method = getattr(methods, name)(answers, **common, **settings, **extra)
                done = method.run() if hasattr(method, "run") else None
            steps = done[1] if name == "DawidSkene" and done else None
            labels = np.asarray(method.get_answers(), dtype=np.float64)
            return Outcome(labels=np.nan_to_num(labels, nan=-1), iterations=steps)

        return call

    return prepare


def crowdlab(columns: Columns) -> Callable[[], Outcome]:
    from cleanlab.multiannotator import get_label_quality_multiannotator

    table = np.full((columns.n_units, columns.n_annotators), np.nan)
    table[columns.unit, columns.annotator] = columns.label

    def call() -> Outcome:
        found = get_label_quality_multiannotator(table, columns.probabilities, verbose=False)
        return Outcome(labels=found["label_quality"]["consensus_label"].to_numpy())

    return call


PEERANNOT = ("MajorityVoting", "NaiveSoft", "DawidSkene", "DawidSkeneClust", "GLAD", "IWMV", "Wawa", "WDS", "TwoThird",
             "PlantNet")
MEASURES: dict[str, Measure] = {
    **{f"crowd-kit.{name}": crowdkit(name) for name in CROWDKIT}, "crowd-kit.alpha": crowdkit_alpha,
    **{f"peerannot.{name}": peerannot(name) for name in PEERANNOT}, "cleanlab.CROWDLAB": crowdlab,
}


class OutOfTimeError(Exception):
    """A method took longer than PATIENCE_S."""


def _give_up(*_: object) -> None:
    raise OutOfTimeError


def main(plan: str) -> int:
    """Accuracy of every entry where the truth is known, or the name of the error that the method ended with."""
    signal.signal(signal.SIGPROF, _give_up)
    for entry in json.loads(Path(plan).read_text(encoding="utf-8")):
        columns = Columns.load(Path(entry["votes"]))
        answer: dict[str, object] = {}
        signal.setitimer(signal.ITIMER_PROF, PATIENCE_S)
        try:
            with contextlib.redirect_stdout(sys.stderr):  # some print
                outcome = MEASURES[entry["measure"]](columns, **entry["settings"])()
            known = columns.truth >= 0
            answer["accuracy"] = float(np.mean(np.asarray(outcome.labels)[known] == columns.truth[known]))
        except Exception as error:  # whatever a peer raises is its result
            answer["failure"] = type(error).__name__
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Our methods as measurements for `crowd_child`; the input is an `AnswerMatrix`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.crowd_child import Columns, Measure, Outcome
from benchmarks.measure import interleaved, median
from model.crowd import AnswerMatrix
from model.crowd.registry import AGGREGATORS, make
from model.quality.agreement import krippendorff_alpha

ROUNDS = 15


def answers_of(columns: Columns) -> AnswerMatrix:
    """Ids are numbers as strings, as those of a project would be."""
    return AnswerMatrix.from_codes(
        units=[str(i) for i in range(columns.n_units)], annotators=[str(i) for i in range(columns.n_annotators)],
        classes=[str(i) for i in range(columns.n_classes)], unit=columns.unit, annotator=columns.annotator,
        label=columns.label,
    )


def aggregation(name: str) -> Measure:
    def prepare(columns: Columns, **settings: object) -> Callable[[], Outcome]:
        answers, method = answers_of(columns), make(name, **settings)

        def call() -> Outcome:
            fitted = method.fit(answers, probabilities=columns.probabilities)
            clusters = fitted.parameters.get("cluster")
            return Outcome(labels=fitted.label, iterations=fitted.iterations,
                           value=None if clusters is None else float(clusters.shape[1]))

        return call

    return prepare


def alpha(columns: Columns) -> Callable[[], Outcome]:
    answers = answers_of(columns)
    return lambda: Outcome(value=krippendorff_alpha(answers))


def alpha_ratio(columns: Columns) -> Callable[[], Outcome]:
    """`value`: nominal alpha over one `np.bincount` of the labels, in turns in one process, ratio of medians."""
    answers = answers_of(columns)

    def call() -> Outcome:
        taken = interleaved(
            {"alpha": lambda: krippendorff_alpha(answers), "bincount": lambda: np.bincount(answers.label)},
            rounds=ROUNDS,
        )
        return Outcome(value=median(taken["alpha"]) / median(taken["bincount"]))

    return call


MEASURES: dict[str, Measure] = {
    **{name: aggregation(name) for name in AGGREGATORS}, "alpha": alpha, "alpha-ratio": alpha_ratio,
}

"""What `benchmarks.crowd` measures, and what the figures should be: groups of runs, and lines made from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measure import Line

MANY, MORE = 100_000, 1_000_000  # tasks; five votes each
HOPELESS = ("peerannot.DawidSkene", "peerannot.GLAD", "crowd-kit.GLAD")  # hours on this many tasks
HOPELESS_S, CLEANLAB_S = 60.0, 120.0  # how long they are watched: enough for a lower bound
EQUAL_STEPS = 10  # iterations of ours and theirs on the larger crowd
CURVE = (1_000, 10_000, 100_000, 1_000_000)  # tasks
LINEAR = 1.15  # slope of log time over log votes from 50,000 votes on: caches make it more than 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measurement in a process of its own."""

    measure: str
    n_tasks: int
    load: float  # of the machine before it
    seconds: float
    settings: dict[str, Any] = field(default_factory=dict)
    cpu_s: float | None = None  # of the processor: what is left when others use the machine too
    peak_mb: float | None = None  # above the input
    input_mb: float | None = None
    accuracy: float | None = None
    iterations: int | None = None
    value: float | None = None
    failure: str = ""


RunCall = Callable[..., Run | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A part of the benchmark that can be run alone."""

    title: str
    note: str
    plan: Callable[[RunCall], Iterator[Run | None]]
    lines: Callable[[Sequence[Run]], list[Line]]

    def runs(self, run: RunCall) -> Iterator[Run]:
        return (each for each in self.plan(run) if each is not None)


def turns(run: RunCall, repeats: int, *measures: tuple[str, int, dict[str, object]]) -> Iterator[Run | None]:
    """The measurements in turns; a peer that ran out of time once is not asked again."""
    given_up: set[str] = set()
    for _ in range(repeats):
        for name, n_tasks, settings in measures:
            if name in given_up:
                continue
            found = run(name, n_tasks, **settings)
            if found is not None and found.failure:
                given_up.add(name)
            yield found


def of(runs: Sequence[Run], measure: str) -> list[Run]:
    return [run for run in runs if run.measure == measure]


def ratio(what: str, above: Sequence[float], below: Sequence[float], *, least: float | None = None,
          most: float | None = None, unit: str = "x", open_end: bool = False) -> list[Line]:
    """Median of above / below, repeat by repeat; nothing where one side was not measured.

    `open_end`: the numerator ran out of time, so that the ratio is a lower bound.
    """
    n = min(len(above), len(below))
    if not n:
        return []
    values = np.asarray(above[:n]) / np.asarray(below[:n]) if unit == "x" else np.asarray(above[:n])
    middle = float(np.median(values))
    hit = None if not np.isfinite(middle) else middle >= least if least is not None else (
        middle <= most if most is not None else None)
    target = f"at least {least:g} {unit}" if least is not None else f"at most {most:g} {unit}" if most else ""
    return [Line(what=what + (", at least (out of time)" if open_end else ""), measured=middle, unit=unit,
                 low=float(values.min()), high=float(values.max()), target=target, hit=hit)]


def versus(runs: Sequence[Run], ours: str, theirs: str, what: str, *,
           faster: float | None = None) -> list[Line]:
    """How many times faster ours is than theirs."""
    mine, other = of(runs, ours), of(runs, theirs)
    late = any(run.failure.startswith("did not finish") for run in other)
    return ratio(what, [run.seconds for run in other], [run.seconds for run in mine], least=faster, open_end=late)


def figures(runs: Sequence[Run], measure: str, what: str, *, most_mb: float | None = None) -> list[Line]:
    """Seconds and memory of one measurement."""
    mine = [run for run in of(runs, measure) if not run.failure]
    if not mine:
        return []
    seconds, peak = [run.seconds for run in mine], [run.peak_mb or 0.0 for run in mine]
    steps = f" ({mine[0].iterations} iterations)" if mine[0].iterations else ""
    lines = [Line(what=f"{what}: time{steps}", measured=float(np.median(seconds)), unit="s", low=min(seconds),
                  high=max(seconds))]
    middle = float(np.median(peak))
    lines.append(Line(
        what="... memory above the input", measured=middle, unit="MB", low=min(peak), high=max(peak),
        target=f"at most {most_mb:g} MB" if most_mb else "", hit=middle <= most_mb if most_mb else None,
    ))
    return lines


def accuracy_gap(runs: Sequence[Run], ours: str, theirs: str) -> list[Line]:
    mine, other = of(runs, ours), of(runs, theirs)
    if not mine or not other or mine[0].accuracy is None or other[0].accuracy is None:
        return []
    gap = mine[0].accuracy - other[0].accuracy
    return [Line(what=f"... accuracy {mine[0].accuracy:.4f}, theirs {other[0].accuracy:.4f}: difference", measured=gap,
                 unit="", target="at least -0.001", hit=gap >= -0.001)]


def _dawid_skene(run: RunCall) -> Iterator[Run | None]:
    yield from turns(run, 3, ("ours.dawid-skene", MANY, {}), ("crowd-kit.DawidSkene", MANY, {}),
                     ("ours.majority", MANY, {}), ("crowd-kit.MajorityVote", MANY, {}), ("ours.glad", MANY, {}))
    yield run("peerannot.MajorityVoting", MANY)
    for name in HOPELESS:
        yield run(name, MANY, limit_s=HOPELESS_S)


def _dawid_skene_lines(runs: Sequence[Run]) -> list[Line]:
    ours, theirs = "ours.dawid-skene", "crowd-kit.DawidSkene"
    glad = [run.seconds for run in of(runs, "ours.glad")]
    lines = [
        *figures(runs, ours, "Dawid-Skene, ours", most_mb=60), *figures(runs, theirs, "Dawid-Skene, crowd-kit"),
        *versus(runs, ours, theirs, "Dawid-Skene: crowd-kit's time / ours", faster=10),
        *accuracy_gap(runs, ours, theirs),
        *figures(runs, "ours.majority", "majority vote, ours"),
        *figures(runs, "crowd-kit.MajorityVote", "majority vote, crowd-kit"),
        *versus(runs, "ours.majority", "crowd-kit.MajorityVote", "majority vote: crowd-kit's time / ours", faster=1),
        *figures(runs, "peerannot.MajorityVoting", "majority vote, peerannot"),
        *figures(runs, "ours.glad", "GLAD, ours"),
        *ratio("GLAD / our Dawid-Skene", glad, [run.seconds for run in of(runs, ours)], most=30),
    ]
    return lines + [
        line for name in HOPELESS
        for line in versus(runs, f"ours.{'glad' if 'GLAD' in name else 'dawid-skene'}", name,
                           f"{name}'s time / ours")
    ]


def _larger(run: RunCall) -> Iterator[Run | None]:
    yield from turns(run, 3, ("ours.dawid-skene", MORE, {"max_iter": EQUAL_STEPS, "tol": 0.0}),
                     ("crowd-kit.DawidSkene", MORE, {"n_iter": EQUAL_STEPS, "tol": 0.0}),
                     ("ours.majority", MORE, {}), ("crowd-kit.MajorityVote", MORE, {}))


def _larger_lines(runs: Sequence[Run]) -> list[Line]:
    ours, theirs = "ours.dawid-skene", "crowd-kit.DawidSkene"
    peaks = [[run.peak_mb for run in of(runs, name) if run.peak_mb is not None] for name in (ours, theirs)]
    return [
        *figures(runs, ours, "Dawid-Skene, ours"),
        *figures(runs, theirs, "Dawid-Skene, crowd-kit"),
        *versus(runs, ours, theirs, "Dawid-Skene: crowd-kit's time / ours", faster=10),
        *ratio("Dawid-Skene: our memory / crowd-kit's", *peaks, most=0.25), *accuracy_gap(runs, ours, theirs),
        *figures(runs, "ours.majority", "majority vote, ours"),
        *figures(runs, "crowd-kit.MajorityVote", "majority vote, crowd-kit"),
        *versus(runs, "ours.majority", "crowd-kit.MajorityVote", "majority vote: crowd-kit's time / ours", faster=1),
    ]


def _crowdlab(run: RunCall) -> Iterator[Run | None]:
    yield from turns(run, 5, ("ours.crowdlab", MANY, {}))
    yield run("cleanlab.CROWDLAB", MANY, limit_s=CLEANLAB_S)


def _crowdlab_lines(runs: Sequence[Run]) -> list[Line]:
    ours, theirs = of(runs, "ours.crowdlab"), of(runs, "cleanlab.CROWDLAB")
    late = any(run.failure for run in theirs)
    middle = float(np.median([run.seconds for run in ours]))
    return [
        *figures(runs, "ours.crowdlab", "CROWDLAB, ours"), *figures(runs, "cleanlab.CROWDLAB", "CROWDLAB, cleanlab"),
        *ratio("CROWDLAB: cleanlab's time / ours", [run.seconds for run in theirs], [middle], least=50, open_end=late),
        *accuracy_gap(runs, "ours.crowdlab", "cleanlab.CROWDLAB"),
    ]


def _alpha(run: RunCall) -> Iterator[Run | None]:
    yield from turns(run, 5, ("ours.alpha-ratio", MANY, {}), ("ours.alpha", MANY, {}))
    yield run("crowd-kit.alpha", MANY)


def _alpha_lines(runs: Sequence[Run]) -> list[Line]:
    values = [run.value or np.nan for run in of(runs, "ours.alpha-ratio")]
    return [
        *ratio("alpha / one np.bincount of the labels", values, [1.0] * len(values), most=20),
        *figures(runs, "ours.alpha", "Krippendorff's alpha, ours"),
        *figures(runs, "crowd-kit.alpha", "Krippendorff's alpha, crowd-kit"),
        *versus(runs, "ours.alpha", "crowd-kit.alpha", "alpha: crowd-kit's time / ours"),
    ]


# Iterations are fixed where time is to be compared over sizes, so that a curve shows the cost and not when it stopped.
CURVES: dict[str, tuple[str, dict[str, object]]] = {
    "majority vote": ("ours.majority", {}),
    "Dawid-Skene, 10 iterations": ("ours.dawid-skene", {"max_iter": 10, "tol": 0.0}),
    "GLAD, 10 iterations": ("ours.glad", {"max_iter": 10, "tol": 0.0}),
    "MACE, 10 iterations, 2 starts": ("ours.mace", {"max_iter": 10, "tol": 0.0, "restarts": 2}),
    "DSWC, 5 clusters, 10 iterations": ("ours.dswc", {"n_clusters": 5, "max_iter": 10, "tol": 0.0}),
    "DSWC, clusters chosen": ("ours.dswc", {}),
    "Krippendorff's alpha": ("ours.alpha", {}),
}
LINEAR_ONES = ("MACE, 10 iterations, 2 starts", "DSWC, 5 clusters, 10 iterations", "DSWC, clusters chosen")
OTHERS = tuple(name for name in CURVES if name not in LINEAR_ONES)


def _curves(run: RunCall, names: Sequence[str]) -> Iterator[Run | None]:
    for n_tasks in CURVE:
        for name in names:
            measure, settings = CURVES[name]
            yield run(measure, n_tasks, **settings)


def curve(runs: Sequence[Run], name: str) -> list[tuple[int, float, float, float | None]]:
    """(tasks, median seconds, median MB, value) of each size."""
    measure, settings = CURVES[name]
    mine = [run for run in runs if run.measure == measure and run.settings == settings]
    points = []
    for n_tasks in sorted({run.n_tasks for run in mine}):
        at = [run for run in mine if run.n_tasks == n_tasks]
        points.append((n_tasks, float(np.median([run.cpu_s or run.seconds for run in at])),
                       float(np.median([run.peak_mb or 0.0 for run in at])), at[-1].value))
    return points


def curves_in(runs: Sequence[Run]) -> list[str]:
    """The curves that these runs belong to."""
    return [name for name, chosen in CURVES.items() if any((run.measure, run.settings) == chosen for run in runs)]


def _curve_lines(runs: Sequence[Run]) -> list[Line]:
    lines = []
    for name in curves_in(runs):
        points = [point for point in curve(runs, name) if point[0] >= CURVE[1]]
        slope = float(np.polyfit(np.log([p[0] for p in points]), np.log([p[1] for p in points]), 1)[0])
        bound = LINEAR if name in LINEAR_ONES else None
        lines.append(Line(
            what=f"{name}: time grows with votes to the power of", measured=slope, unit="",
            target=f"at most {bound:g}" if bound else "", hit=slope <= bound if bound else None,
        ))
    return lines


_CURVE_NOTE = "Seconds of the processor, each size once. The exponent is fitted from 10,000 tasks on."
GROUPS: dict[str, Group] = {
    "dawid-skene": Group(
        title="100,000 tasks, 500,000 votes", plan=_dawid_skene, lines=_dawid_skene_lines,
        note="Every method with its own defaults and stopping rule. Ratios are taken repeat by repeat."),
    "larger": Group(
        title="1,000,000 tasks, 5,000,000 votes", plan=_larger, lines=_larger_lines,
        note=f"Dawid-Skene stopped after {EQUAL_STEPS} iterations on both sides, so that equal work is compared."),
    "crowdlab": Group(
        title="CROWDLAB, 100,000 tasks", plan=_crowdlab, lines=_crowdlab_lines,
        note="With the probabilities of a simulated classifier that is right in about 73 %; cleanlab's dense input is "
             "not counted. One repeat of cleanlab."),
    "alpha": Group(
        title="Krippendorff's alpha, 500,000 votes", plan=_alpha, lines=_alpha_lines,
        note="The ratio to np.bincount is taken in turns inside one process, 15 rounds in each repeat."),
    "curves": Group(
        title="Cost curves", plan=partial(_curves, names=OTHERS), lines=_curve_lines, note=_CURVE_NOTE),
    "linear": Group(
        title="Cost curves that should be linear", plan=partial(_curves, names=LINEAR_ONES), lines=_curve_lines,
        note=_CURVE_NOTE),
}

"""The lines that the evaluation has to meet, judged over all sets: hit or missed, with the figures behind it.

    unseen        on every set the paired 95 % interval of served minus the best baseline lies above -1 point of
                  accuracy, and the mean over sets is above every baseline's
    half-visible  the same against gap baselines; log-loss lower on the mean and on all sets but at most one;
                  accuracy better by 1.5 points on the mean (target)
    removal       at 40, 60 and 80 % best or not inferior in accuracy (1 point) and log-loss (0.01 nats)

The best baseline is picked by the very figure that is compared, set by set, which favours the baseline. Sets are
independent, so their bootstrap draws are averaged draw by draw for an interval of the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.metrics import Interval
from model.evaluate.bootstrap import interval
from model.evaluate.summary import Standings

Floats = NDArray[np.float64]
POINT = 0.01
NATS = 0.01
TARGET = 0.015
GAPS = ("visible-majority", "dawid-skene", "matrix-factorisation")
OURS = "served"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One line."""

    line: str
    hit: bool
    figures: str


def best(standing: Standings, setting: str, metric: str, among: Sequence[str] | None = None) -> str | None:
    """The best baseline of a set by a metric; None where none was run."""
    sign = -1.0 if metric == "log_loss" else 1.0
    found = {
        model: sign * float(standing.figures(model, setting, standing.seeds(model, setting))[metric][0])
        for model in standing.models(setting)
        if _is_baseline(model) and (among is None or model in among)
    }
    return max(found, key=lambda name: found[name]) if found else None


def against_best(
    tables: Mapping[str, Standings], setting: str, metric: str, among: Sequence[str] | None = None
) -> dict[str, tuple[str, Interval]]:
    """set -> its best baseline and the paired difference of served to it."""
    found = {}
    for name, standing in tables.items():
        other = best(standing, setting, metric, among)
        draws = standing.difference(OURS, other, setting, metric) if other is not None else None
        if other is not None and draws is not None:
            found[name] = other, interval(draws)
    return found


def mean_gaps(
    tables: Mapping[str, Standings], setting: str, metric: str, among: Sequence[str] | None = None
) -> dict[str, Interval]:
    """baseline -> mean over sets of served minus it; only baselines that were run on all sets."""
    names = set.intersection(*(set(standing.models(setting)) for standing in tables.values()))
    found = {}
    for model in sorted(name for name in names if _is_baseline(name) and (among is None or name in among)):
        gaps = [standing.difference(OURS, model, setting, metric) for standing in tables.values()]
        if all(gap is not None for gap in gaps):
            found[model] = interval(np.mean([gap for gap in gaps if gap is not None], axis=0))
    return found


def judge(tables: Mapping[str, Standings], removal: Sequence[str]) -> list[Judged]:
    """Every line that there are cells for."""
    lines = _unseen(tables) + _half(tables)
    for setting in (f"drop-{share}" for share in (40, 60, 80)):
        here = {name: tables[name] for name in removal if name in tables and OURS in tables[name].models(setting)}
        if here:
            lines += _removed(here, setting)
    return lines


def _unseen(tables: Mapping[str, Standings]) -> list[Judged]:
    return [
        _bound(against_best(tables, "unseen", "accuracy"), "unseen: not a point below the best baseline on any set"),
        _mean(mean_gaps(tables, "unseen", "accuracy"), "unseen: mean accuracy over sets above every baseline's"),
    ]


def _half(tables: Mapping[str, Standings]) -> list[Judged]:
    setting = "half-visible"
    mean_accuracy = mean_gaps(tables, setting, "accuracy", GAPS)
    mean_loss = mean_gaps(tables, setting, "log_loss", GAPS)
    losses = against_best(tables, setting, "log_loss", GAPS)
    higher = [name for name, (_, gap) in losses.items() if gap.mean >= 0.0]
    hardest = max(mean_loss.values(), key=lambda gap: gap.mean, default=None)
    least = min(mean_accuracy.values(), key=lambda gap: gap.mean, default=None)
    return [
        _bound(against_best(tables, setting, "accuracy", GAPS),
               "half-visible: not a point below the best gap baseline on any set"),
        _mean(mean_accuracy, "half-visible: mean accuracy over sets above every gap baseline's"),
        Judged(
            line="half-visible: log-loss lower on the mean and on all sets but at most one",
            hit=hardest is not None and hardest.mean < 0.0 and len(higher) <= 1,
            figures=f"mean {_nats(hardest)}; higher on {', '.join(higher) or 'none'}",
        ),
        Judged(
            line="half-visible: accuracy better by 1.5 points on the mean (target)",
            hit=least is not None and least.mean >= TARGET, figures=_points(least),
        ),
    ]


def _removed(tables: Mapping[str, Standings], setting: str) -> list[Judged]:
    losses = against_best(tables, setting, "log_loss")
    worst = max(losses, key=lambda name: losses[name][1].high)
    title = f"{setting.removeprefix('drop-')} % of the training votes removed"
    return [
        _bound(against_best(tables, setting, "accuracy"), f"{title}: accuracy best or not a point below"),
        Judged(
            line=f"{title}: log-loss best or not {NATS} nats above",
            hit=all(gap.high < NATS or gap.mean <= 0.0 for _, gap in losses.values()),
            figures=f"worst on {worst} against {losses[worst][0]}: {_nats(losses[worst][1])}",
        ),
    ]


def _bound(gaps: Mapping[str, tuple[str, Interval]], line: str) -> Judged:
    missed = [name for name, (_, gap) in gaps.items() if not gap.low > -POINT]
    worst = min(gaps, key=lambda name: gaps[name][1].low) if gaps else ""
    figures = f"lowest on {worst} against {gaps[worst][0]}: {_points(gaps[worst][1])}" if worst else "no cells"
    return Judged(
        line=line, hit=bool(gaps) and not missed,
        figures=figures + (f"; missed on {', '.join(missed)}" if missed else ""),
    )


def _mean(gaps: Mapping[str, Interval], line: str) -> Judged:
    nearest = min(gaps, key=lambda name: gaps[name].mean) if gaps else ""
    return Judged(
        line=line, hit=bool(gaps) and all(gap.mean > 0.0 for gap in gaps.values()),
        figures=f"nearest is {nearest}: {_points(gaps[nearest])}" if nearest else "no cells",
    )


def _is_baseline(model: str) -> bool:
    return model.partition("@")[0] not in ("served", "network")


def _points(gap: Interval | None) -> str:
    return "no cells" if gap is None else f"{100 * gap.mean:+.2f} points [{100 * gap.low:+.2f}, {100 * gap.high:+.2f}]"


def _nats(gap: Interval | None) -> str:
    return "no cells" if gap is None else f"{gap.mean:+.4f} nats [{gap.low:+.4f}, {gap.high:+.4f}]"

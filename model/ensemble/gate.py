"""The gate: is a freshly fitted ladder published?

The difference in log-loss between the new ladder and the published one (before the first: the annotator prior), vote by
vote on held-out units, with an interval from a bootstrap over units. Published unless the interval shows it worse.
With too few held-out votes the question is put to cross-validation on training votes instead, and marked so: the new
ladder must then be better than the naive rungs, or, as a first version, not shown worse than the annotator prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.dataset import TrainingSet, build_dataset
from model.ensemble.fitting import Fit
from model.ensemble.predictor import Ladder
from model.ensemble.scoring import Scored, score_heldout
from model.evaluate.metrics import Interval, paired_interval

Floats = NDArray[np.float64]
Pairs = tuple[Floats, NDArray[np.int64]]  # loss differences (n,) and the units they were measured on (n,)
_NAIVE = ("prior", "pooled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict, its reason in one sentence, and the numbers behind it (JSON-able)."""

    publish: bool
    reason: str
    figures: dict[str, Any]


def judge(fit: Fit, published: Ladder | None, data: TrainingSet, config: LadderConfig) -> Judgement:
    """Decide on `fit`, which was made from `data`; `published` is what it would replace."""
    votes = sum(len(item.targets) for item in fit.heldout.values())
    if votes < config.min_heldout_votes:
        return _by_cross_validation(fit, published, config, votes)
    if published is None:
        pairs = _against_rung(fit.heldout, "prior")
        against = "the annotator prior"
    else:
        dataset = build_dataset(data, config, fit.ladder.annotators)
        pairs = _against_ladder(fit.heldout, score_heldout(published, dataset, data.tokens))
        against = "the published version"
    if not len(pairs[0]):
        return Judgement(
            publish=True, figures={"test": "none", "heldout_votes": votes},
            reason="No held-out vote can be predicted by the published version, so there is nothing to compare with.",
        )
    interval = paired_interval(*pairs, level=config.gate_level)
    worse = interval.low > 0.0
    figures = {"test": "heldout", "against": against, "heldout_votes": len(pairs[0]), **_json(interval)}
    return Judgement(publish=not worse, figures=figures, reason=_sentence(interval, len(pairs[0]), "held-out", against))


def _by_cross_validation(fit: Fit, published: Ladder | None, config: LadderConfig, votes: int) -> Judgement:
    """The question put to training votes, because there are too few held-out ones."""
    marked = f"With only {votes} held-out votes this rests on cross-validation on training votes: "
    if published is None:
        pairs = _against_rung(fit.cross_validation, "prior")
        interval = paired_interval(*pairs, level=config.gate_level)
        sentence = _sentence(interval, len(pairs[0]), "training", "the annotator prior")
        publish, against = not interval.low > 0.0, "the annotator prior"
    else:
        rungs = {
            rung: paired_interval(*_against_rung(fit.cross_validation, rung), level=config.gate_level)
            for rung in _NAIVE
        }
        against, interval = max(rungs.items(), key=lambda item: item[1].mean)
        publish = interval.mean <= config.gate_margin
        count = sum(len(item.targets) for item in fit.cross_validation.values())
        sentence = (
            f"it {'holds its own' if publish else 'does not hold its own'} against the naive rungs "
            f"({interval.mean:+.4f} nats a vote against {against} on {count} votes)."
        )
    figures = {"test": "cross_validation", "against": against, "heldout_votes": votes, **_json(interval)}
    return Judgement(publish=publish, reason=marked + sentence[0].lower() + sentence[1:], figures=figures)


def _against_rung(scored: Mapping[str, Scored], rung: str) -> Pairs:
    """Loss of what is served minus loss of one of its own rungs."""
    return _join([(item.losses("served") - item.losses(rung), item.targets.unit) for item in scored.values()])


def _against_ladder(new: Mapping[str, Scored], old: Mapping[str, Scored]) -> Pairs:
    """Loss of the new ladder minus loss of the old one, on the votes whose value the old one could give at all."""
    pairs = []
    for name in new.keys() & old.keys():
        possible = (old[name].p["served"] * new[name].targets.y).sum(-1) > 0.0
        possible |= new[name].targets.y.sum(-1) == 0.0
        difference = new[name].losses("served") - old[name].losses("served")
        pairs.append((difference[possible], new[name].targets.unit[possible]))
    return _join(pairs)


def _join(pairs: list[Pairs]) -> Pairs:
    if not pairs:
        return np.empty(0), np.empty(0, np.int64)
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _sentence(interval: Interval, votes: int, kind: str, against: str) -> str:
    numbers = (
        f"({interval.mean:+.4f} nats a vote, {interval.low:+.4f} to {interval.high:+.4f} on {votes} {kind} votes)"
    )
    if interval.low > 0.0:
        return f"It is shown to be worse than {against} {numbers}."
    if interval.high < 0.0:
        return f"It is shown to be better than {against} {numbers}."
    return f"It is not shown to be worse than {against} {numbers}."


def _json(interval: Interval) -> dict[str, float | None]:
    """Unbounded ends become null."""
    return {key: value if np.isfinite(value) else None for key, value in asdict(interval).items()}

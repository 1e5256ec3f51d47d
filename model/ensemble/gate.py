"""The gate: is a freshly fitted ladder published?

The difference in log-loss between the new ladder and the published one (before the first: the annotator prior), vote by
vote on held-out units, with an interval clustered by task. Published unless the interval shows it worse and the
difference is more than `gate_margin`; less counts as none, or a candidate with votes that the other lacks would be held
back for a millionth of a nat. What published ones were shown to fall behind is added up over versions (`behind`), and
what is shown to be gained afterwards makes up for it, so that small steps do not become a large one; steps that may be
luck are not counted, and where the published one cannot be compared (another encoder, other modalities) it begins anew.
Two versions are compared on the classes that both know, since neither should pay for what the other could not say;
where many votes lie outside these, the new one must also not be shown worse than its own annotator prior on all votes.
Beyond that a candidate must not be shown worse than the best of the last ten published versions by more than the
margin (unless it is shown better than the one that answers now), nor for a single annotator by more than
`person_margin`; see `remembered`. A person holds a version back once: after the training from scratch that follows they
are `waived`, and the verdict says for how many people it is worse.
With too few held-out votes or tasks the question is put to cross-validation on training votes instead, and marked so:
the new ladder may then be `gate_margin` behind the better naive base model at most, or, as a first version, not be
shown worse than the annotator prior by more than that. Without any vote that may be scored nothing can be tested, and
the verdict says so. What predicts something that is not a number is never published.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from model.base_models.registry import NAIVE
from model.config import LadderConfig
from model.data.dataset import Dataset, TrainingSet, build_dataset
from model.data.judgement import Judgement
from model.data.metrics import Interval, paired_interval
from model.data.spaces import ValueKind
from model.data.splits import task_of
from model.ensemble.fitting import Fit
from model.ensemble.predictor import Ladder
from model.ensemble.remembered import Best, best_of, worse_for
from model.ensemble.scoring import Scored, common_classes, score_heldout
from model.quality.evidence import Evidence

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Pairs = tuple[Floats, Codes]  # loss differences (n,) and the tasks they were measured on (n,)
_HAIR = 1e-4  # nats a vote; a smaller step is none, whatever an interval shows and however much is added up


def judge(
    fit: Fit, published: Ladder | None, data: TrainingSet, config: LadderConfig, *, behind: float = 0.0,
    earlier: Sequence[tuple[str, Evidence]] = (), waived: Collection[str] = (),
) -> Judgement:
    """Decide on `fit`, which was made from `data`; `published` is what it would replace, and `behind` the figure of
    that name in the verdict that published it. `earlier` are published versions before that one, newest first, with
    what they left; `waived` annotators who cannot hold this one back.

    `data.heldout` may hold out fewer units than `fit` was made with: those that neither version was trained on.
    """
    if not all(np.isfinite(item.p["served"]).all() for part in (fit.heldout, fit.cross_validation)
               for item in part.values()):
        return Judgement(publish=False, reason="Some of its predictions are not numbers.", figures={"test": "none"})
    dataset = build_dataset(data, config, fit.ladder.annotators)
    tasks = _tasks(dataset)
    heldout = {name: item.select(dataset.heldout[item.targets.unit]) for name, item in fit.heldout.items()}
    votes = sum(len(item.targets) for item in heldout.values())
    on_tasks = len(np.unique(np.concatenate([tasks[item.targets.unit] for item in heldout.values()] or [tasks[:0]])))
    if votes < config.min_heldout_votes or on_tasks < config.min_heldout_tasks:
        found = _by_cross_validation(fit, published, config, tasks, votes, on_tasks)
    elif published is None:
        found = _verdict(_against_own(heldout, "prior", tasks), votes, "the annotator prior", config)
    else:
        old = score_heldout(published, dataset, data.tokens, data.texts)
        found = _of_versions(heldout, old, published, tasks, votes, behind, config)
        if found.publish:
            found = _of_the_last(found, best_of(heldout, earlier, dataset, tasks, config), config)
            found = _of_people(found, _worse(heldout, old, published, tasks, dataset, config), waived, config)
    return found if published is None else replace(found, figures={"behind": behind, **found.figures})


def _of_versions(
    heldout: Mapping[str, Scored], old: Mapping[str, Scored], published: Ladder, tasks: Codes, votes: int,
    behind: float, config: LadderConfig,
) -> Judgement:
    """The verdict on held-out votes against the published version, which answered `old`."""
    pairs = _against_ladder(heldout, old, published, tasks)
    if not len(pairs[0]) or _outside(heldout, old, published) >= config.min_heldout_votes:
        found = _verdict(_against_own(heldout, "prior", tasks), votes, "the annotator prior", config)
        if not found.publish or not len(pairs[0]):
            return found
    return _verdict(pairs, votes, "the published version", config, behind)


def _verdict(pairs: Pairs, votes: int, against: str, config: LadderConfig, behind: float | None = None) -> Judgement:
    """The verdict on held-out votes, of which there are `votes` in all. Without `behind` nothing is added up."""
    interval, compared = paired_interval(*pairs, level=config.gate_level), len(pairs[0])
    used, shown = behind or 0.0, interval.low > 0.0 or interval.high < 0.0
    limit = max(config.gate_margin - used, _HAIR)
    figures = {
        "test": "heldout", "against": against, "heldout_votes": votes, "compared_votes": compared, **_json(interval),
        "limit": limit,
    }
    if behind is not None:
        figures["behind"] = max(used + interval.mean, 0.0) if shown and abs(interval.mean) > _HAIR else used
    return Judgement(
        publish=not interval.exceeds(limit), figures=figures,
        reason=_sentence(interval, compared, "held-out", against, limit, used),
    )


def _by_cross_validation(
    fit: Fit, published: Ladder | None, config: LadderConfig, tasks: Codes, votes: int, on_tasks: int
) -> Judgement:
    """The question put to training votes, because there are too few held-out ones, or on too few tasks."""
    count = sum(len(item.targets) for item in fit.cross_validation.values())
    if not count:
        what = "version" if published is None else "replacement of the published version"
        return Judgement(
            publish=True, figures={"test": "none", "heldout_votes": votes},
            reason=f"This {what} is untested: too few votes were given without a pre-annotation in view.",
        )
    marked = (
        f"With only {votes} held-out votes on {on_tasks} tasks this rests on cross-validation on training votes: "
    )
    if published is None:
        pairs = _against_own(fit.cross_validation, "prior", tasks)
        interval, against = paired_interval(*pairs, level=config.gate_level), "the annotator prior"
        sentence = _sentence(interval, len(pairs[0]), "training", against, config.gate_margin)
        publish = not interval.exceeds(config.gate_margin)
    else:
        naive = {
            name: paired_interval(*_against_own(fit.cross_validation, name, tasks), level=config.gate_level)
            for name in NAIVE
        }
        against, interval = max(naive.items(), key=lambda item: item[1].mean)
        publish = interval.mean <= config.gate_margin
        sentence = (
            f"it {'holds its own' if publish else 'does not hold its own'} against the naive base models "
            f"({interval.mean:+.4f} nats a vote against {against} on {count} votes)."
        )
    figures = {"test": "cross_validation", "against": against, "heldout_votes": votes, **_json(interval)}
    return Judgement(publish=publish, reason=marked + sentence[0].lower() + sentence[1:], figures=figures)


def _tasks(dataset: Dataset) -> Codes:
    """A number for the task of each unit, (U,)."""
    return np.asarray(np.unique([task_of(unit) for unit in dataset.units], return_inverse=True)[1])


def _against_own(scored: Mapping[str, Scored], name: str, tasks: Codes) -> Pairs:
    """Loss of what is served minus loss of one of its own base models."""
    return _join([(item.losses("served") - item.losses(name), tasks[item.targets.unit]) for item in scored.values()])


def _against_ladder(
    new: Mapping[str, Scored], old: Mapping[str, Scored], published: Ladder, tasks: Codes
) -> Pairs:
    """Loss of the new ladder minus loss of the old one, both on the classes that both know.

    Left out: controls without any, votes for a single class that the old one could not give, and what it answers with
    no number.
    """
    return _join([(difference, task) for difference, task, _ in _differences(new, old, published, tasks)])


def _differences(
    new: Mapping[str, Scored], old: Mapping[str, Scored], published: Ladder, tasks: Codes
) -> list[tuple[Floats, Codes, Codes]]:
    """Of each control the differences, the tasks and the annotators."""
    found = []
    for name in sorted(new.keys() & old.keys()):
        targets = new[name].targets
        _, common = common_classes(published.controls[name].space, targets.space)
        if not common:
            continue
        here = np.ones(len(targets), dtype=np.bool_)
        if targets.space.kind is ValueKind.CLASS:
            here = targets.y[:, common].sum(-1) > 0.0
        here &= np.isfinite(old[name].p["served"]).all(-1)
        difference = new[name].losses_among("served", common) - old[name].losses_among("served", common)
        found.append((difference[here], tasks[targets.unit[here]], targets.annotator[here]))
    return found


def _worse(
    new: Mapping[str, Scored], old: Mapping[str, Scored], published: Ladder, tasks: Codes, dataset: Dataset,
    config: LadderConfig,
) -> dict[str, Interval]:
    """Annotators for whom it is shown to be worse."""
    parts = _differences(new, old, published, tasks)
    if not parts:
        return {}
    difference, task, annotator = (np.concatenate([part[at] for part in parts]) for at in range(3))
    return worse_for(difference, task, annotator.astype(np.int64), dataset.annotators, config)


def _of_the_last(found: Judgement, best: Best | None, config: LadderConfig) -> Judgement:
    """The verdict with the comparison with the best of the last published versions."""
    if best is None:
        return found
    interval, high = best.interval, found.figures.get("high")
    figures = {**found.figures, "best": {"version": best.version, "compared_votes": best.votes, "among": best.among,
                                         **_json(interval)}}
    better_now = found.figures.get("against") == "the published version" and high is not None and high < 0.0
    numbers = f"{interval.mean:+.4f} nats a vote, {interval.low:+.4f} to {interval.high:+.4f} on {best.votes} votes"
    several = f"the best of the last {best.among} before it" if best.among > 1 else "the one before it"
    if interval.exceeds(config.gate_margin) and not better_now:
        reason = (f"It holds its own against the published version, but is shown to be worse than {best.version}, "
                  f"{several} ({numbers}), so many small losses would add up.")
        return Judgement(publish=False, reason=reason, figures=figures)
    return replace(found, figures=figures)


def _of_people(
    found: Judgement, worse: Mapping[str, Interval], waived: Collection[str], config: LadderConfig
) -> Judgement:
    """The verdict with the annotators for whom it is shown to be worse; names stand in the figures alone."""
    if not found.publish or not worse:
        return found
    figures = {**found.figures, "worse_for": {name: _json(interval) for name, interval in worse.items()}}
    whom = "1 annotator" if len(worse) == 1 else f"{len(worse)} annotators"
    said = f"for {whom} it is shown to be worse by more than {config.person_margin:.2f} nats a vote"
    if set(worse) <= set(waived):
        return Judgement(publish=True, figures=figures, reason=(
            f"{found.reason} Even trained from scratch, {said}; nobody else waits for that any longer."))
    return Judgement(publish=False, figures=figures, reason=(
        f"On all votes together it could be published, but {said}, so it is trained from scratch first."))


def _outside(new: Mapping[str, Scored], old: Mapping[str, Scored], published: Ladder) -> int:
    """How many votes name a class, or answer a control, that the old ladder does not know."""
    count = 0
    for name, item in new.items():
        known = common_classes(published.controls[name].space, item.targets.space)[1] if name in old else []
        count += int(np.delete(item.targets.y, known, axis=1).any(-1).sum()) if known else len(item.targets)
    return count


def _join(pairs: list[Pairs]) -> Pairs:
    if not pairs:
        return np.empty(0), np.empty(0, np.int64)
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _sentence(interval: Interval, votes: int, kind: str, against: str, limit: float, used: float = 0.0) -> str:
    numbers = f"{interval.mean:+.4f} nats a vote, {interval.low:+.4f} to {interval.high:+.4f} on {votes} {kind} votes"
    if interval.low > 0.0:
        lead = f"It is shown to be worse than {against}"
        why = f", since earlier versions fell behind by {used:.4f}" if used else ""
        if interval.exceeds(limit):
            return f"{lead} ({numbers}; up to {limit:.4f} would count as no difference{why})."
        return f"{lead}, but up to {limit:.4f} counts as no difference ({numbers})."
    if interval.high < 0.0:
        return f"It is shown to be better than {against} ({numbers})."
    return f"It is not shown to be worse than {against} ({numbers})."


def _json(interval: Interval) -> dict[str, float | None]:
    """Unbounded ends become null."""
    return {key: value if np.isfinite(value) else None for key, value in asdict(interval).items()}

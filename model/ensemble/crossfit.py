"""Out-of-sample scores of every base model: what stacking and calibration are fitted on; and how a training goes on
from an earlier one.

Training units are split into folds by a hash of their id. For each fold, every base model is fitted on the other folds
and scores the votes of this one (`BaseModel.crossfit`); those that do not answer by these fits are fitted again on
everything.

Shape legend: A annotators, N votes of one control on training units that have out-of-sample scores, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Course, OutOfFold, Sample
from model.base_models.joint import trained
from model.base_models.registry import BASE_MODELS
from model.config import LadderConfig
from model.data.dataset import Dataset
from model.ensemble.carry_over import carry_over
from model.ensemble.control import ControlState
from model.ensemble.fingerprint import (
    Fingerprint,
    as_well_supported,
    changed_units,
    fingerprint_of,
    mostly_other_contents,
    much_is_gone,
)
from model.ensemble.out_of_sample import OutOfSample, out_of_sample, views_of
from model.ensemble.predictor import Ladder
from model.qumab.batches import TokenStore
from model.qumab.committee import Committee
from model.qumab.training import History

Singles = NDArray[np.float32]
_NEW_SHARE = 0.05  # newcomers matter when they have more of the votes than this
_NEW_VOTES = 40  # or one of them has as many
_LOOKED_AT = 500  # units that a brief training is stopped on, or three times those with new votes


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFit:
    """What comes out of going through the folds."""

    committee: Committee
    samples: dict[str, Sample]  # by control: all training votes
    found: dict[str, dict[str, OutOfFold]]  # control -> base model; without those that start from the stack
    votes: dict[str, OutOfSample]  # by control: those that have out-of-sample scores
    history: History
    warm: bool
    brief: bool  # only the units with new or changed votes and some others were gone through
    carried_over: dict[str, ControlState]  # by control: what stays as it was before a brief training
    learned: NDArray[np.int64]  # (A,) training votes of each annotator when the network last went through all units
    begun: dict[str, int]  # training votes of each control when the network was last trained from nothing
    fingerprint: Fingerprint  # by which the next training tells what has changed


def crossfit(
    dataset: Dataset, store: TokenStore, config: LadderConfig, *, previous: Ladder | None, device: str,
    progress: Callable[[float], None], features: Singles | None = None,
) -> CrossFit:
    """Fit every base model without each fold in turn. `features` (U, F) is what is read of content beside tokens; by
    default the mean tokens.

    `previous` is grown and trained on where its shape allows it.

    A few new votes are learned in a few steps, on their units and some drawn from all others, so that an annotator who
    labels on does not wait for a training over everything; what they cannot change much is carried over (`carry_over`).
    All units are gone through again once there are a quarter more votes than the last time
    (`LadderConfig.brief_until`), a fifth of these is gone, or a control has other classes than before. Once the votes
    of a control have doubled, or half of them are gone (`LadderConfig.warm_until`), or most contents are others than
    before, the networks are trained from nothing: what was learned from few votes holds back what is learned from many
    (`benchmarks.replay`).

    A short training on top of an earlier one would leave newcomers half learned (on the whole, everybody else is best
    left as they were), so while they matter it takes as long as one from scratch and is stopped on them as much as on
    all others. It takes as long where a control has other classes than before.
    """
    read = store.mean_tokens if features is None else features
    members = dataset.folds * dataset.members_per_fold
    votes_now, begun = _training_votes(dataset), _by_control(dataset)
    fingerprint = fingerprint_of(dataset, store.mean_tokens)
    warm = (
        previous is not None and _fits(previous, members, dataset, store, config)
        and not another_size(begun, previous.begun, config.warm_until)
        and not (previous.fingerprint is not None and mostly_other_contents(fingerprint, previous.fingerprint))
    )
    learned = _aligned(previous.learned, len(votes_now)) if previous is not None and warm else np.zeros_like(votes_now)
    new = newcomers(votes_now, learned)
    latest, carried = None, dict[str, ControlState]()
    if previous is not None and warm and not new.any() and votes_now.sum() <= config.brief_until * learned.sum():
        latest = _latest(dataset, fingerprint, previous, config.brief_until)
    if previous is not None and previous.fingerprint is not None and latest is not None:
        supported = as_well_supported(fingerprint, previous.fingerprint, config.brief_until)
        spaces = {name: targets.space for name, targets in dataset.controls.items() if name in supported}
        carried = carry_over(previous.controls, spaces, len(dataset.annotators))
        fingerprint = fingerprint.after(previous.fingerprint, carried)
    samples = {name: _sample(dataset, name, store, read, config) for name in dataset.controls}
    views = {name: views_of(sample.to_score(), len(dataset.units), config.seed) for name, sample in samples.items()}
    course = Course(
        store=store, config=config, members_per_fold=dataset.members_per_fold, device=device, progress=progress,
        previous=previous.committee if previous is not None and warm else None, newcomers=new, latest=latest,
        looked_at=None if latest is None else _looked_at(dataset, latest, config.seed),
        earlier={name: state.base_models for name, state in carried.items()},
    )
    made = {name: model.crossfit(samples, views, course) for name, model in BASE_MODELS.items() if not model.on_stack}
    found = {control: {name: each[control] for name, each in made.items()} for control in samples}
    networks = trained(samples, views, course)
    return CrossFit(
        committee=networks.committee, samples=samples, found=found, history=networks.history, warm=warm,
        votes={name: out_of_sample(sample.to_score(), views[name], found[name]) for name, sample in samples.items()},
        brief=latest is not None, carried_over=carried, learned=_learned(votes_now, learned, new, latest),
        begun=_handed_on(previous.begun, begun) if previous is not None and warm else begun, fingerprint=fingerprint,
    )


def _sample(dataset: Dataset, name: str, store: TokenStore, features: Singles, config: LadderConfig) -> Sample:
    """All training votes of a control."""
    targets = dataset.rows(name, ~dataset.heldout)
    return Sample(
        control=name, targets=targets, people=len(dataset.annotators), config=config, store=store,
        fold=dataset.fold[targets.unit], folds=tuple(range(dataset.folds)), features=features,
        surface=features.shape[1] > store.dim,
    )


def _latest(dataset: Dataset, fingerprint: Fingerprint, previous: Ladder, most: float) -> NDArray[np.int64] | None:
    """Training units that `previous` was not trained with as they are; None where all units must be gone through: these
    are half of them or more, or it is unknown, controls are no more what they were, or too much is gone."""
    spaces = {name: targets.space for name, targets in dataset.controls.items()}
    before = previous.fingerprint
    if before is None or spaces != previous.spaces or much_is_gone(fingerprint, before, dataset, most):
        return None
    latest = changed_units(fingerprint, before, dataset)
    return latest if 2 * len(latest) < np.count_nonzero(~dataset.heldout) else None


def _learned(
    votes: NDArray[np.int64], learned: NDArray[np.int64], new: NDArray[np.bool_], latest: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """What counts as learned from now on: after going through all units briefly, all but those who are still few."""
    if new.any():
        return votes
    return np.where(votes > 2 * learned, learned, votes) if latest is None else learned


def _looked_at(dataset: Dataset, latest: NDArray[np.int64], seed: int) -> NDArray[np.bool_]:
    """Units (U,) whose votes stop a brief training: the latest and a sample of the others."""
    found = np.zeros(len(dataset.units), np.bool_)
    some = np.random.default_rng([seed, 4]).permutation(np.flatnonzero(~dataset.heldout))
    found[some[: max(_LOOKED_AT, 3 * len(latest))]] = True
    found[latest] = True
    return found


def _training_votes(dataset: Dataset) -> NDArray[np.int64]:
    """How many votes each annotator has to learn from, (A,)."""
    people = len(dataset.annotators)
    rows = [dataset.rows(name, ~dataset.heldout).annotator for name in dataset.controls]
    return np.bincount(np.concatenate(rows), minlength=people)[:people].astype(np.int64)


def _by_control(dataset: Dataset) -> dict[str, int]:
    """How many votes there are to learn each control from."""
    return {name: len(dataset.rows(name, ~dataset.heldout)) for name in dataset.controls}


def another_size(now: Mapping[str, int], begun: Mapping[str, int], most: float) -> bool:
    """Whether a control has more than `most` times the votes it had when the networks began, or so many times fewer, by
    a number that matters among all votes. A control that had none is new."""
    few = _NEW_SHARE * sum(now.values())
    pairs = [(now.get(name, 0), begun.get(name, 0)) for name in now.keys() | begun.keys()]
    return not begun or any(
        abs(votes - before) > few and (votes > most * before or before > most * votes) for votes, before in pairs
    )


def _handed_on(begun: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """What is kept of the votes that networks began with; a control that is gone is new when it comes back."""
    return {name: votes for name, votes in begun.items() if now.get(name)}


def _aligned(learned: NDArray[np.int64], people: int) -> NDArray[np.int64]:
    return np.concatenate([learned, np.zeros(people - len(learned), np.int64)])


def newcomers(votes: NDArray[np.int64], learned: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Annotators most of whose votes (A,) came after the last full training, if together or alone they matter."""
    new = votes > 2 * learned
    matter = votes[new].sum() > _NEW_SHARE * votes.sum() or votes[new].max(initial=0) >= _NEW_VOTES
    return np.asarray(new if matter else np.zeros_like(new))


def _fits(previous: Ladder, members: int, dataset: Dataset, store: TokenStore, config: LadderConfig) -> bool:
    """Whether training can go on from an earlier committee."""
    shape = ("width", "heads", "blocks", "head", "rank", "pooled_path", "self_attention", "labels")
    old = previous.committee.network
    return (
        old.members == members
        and previous.config.folds == config.folds  # or members would have trained on what is their fold now
        and previous.config.members_per_fold == config.members_per_fold
        and old.token_width == store.dim
        and old.annotators <= len(dataset.annotators)
        and all(getattr(old.config, key) == getattr(config.network, key) for key in shape)
    )

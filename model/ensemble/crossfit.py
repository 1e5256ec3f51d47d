"""Out-of-sample scores of every rung: what stacking and calibration are fitted on.

Training units are split into folds by a hash of their id. For each fold, every rung is fitted on the other folds and
scores the votes of this one. The network members of a fold are also early-stopped on it (which flatters them a little,
as it picks one of some twenty epochs) and serve in the committee; the other rungs are fitted again on everything. Since
a unit never changes its fold, a member that is trained on from an earlier version has still never seen its fold.

Shape legend: A annotators, N votes of one control on training units that have out-of-sample scores, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig, NetworkConfig
from model.data.dataset import Dataset, Targets
from model.ensemble.control import ControlState
from model.ensemble.gap_rungs import OutOfSample, with_network
from model.ensemble.kept import keep
from model.ensemble.pooled import PENALTIES, Pooled, fit_pooled
from model.ensemble.predictor import Ladder
from model.ensemble.prior import fit_prior
from model.ensemble.scores import loss_and_slope, to_scores
from model.ensemble.seen import Seen, as_well_supported, changed_units, mostly_other_contents, much_is_gone, see
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.committee import Committee
from model.qumab.growth import grow, new_network
from model.qumab.slots import lay_out
from model.qumab.training import History, train, vote_weights

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
_ENOUGH_SCORED = 20  # votes of a fold given without a pre-annotation; with fewer, all votes of the fold are looked at

_NEW_SHARE = 0.05  # newcomers matter when they have more of the votes than this
_NEW_VOTES = 40  # or one of them has as many
_LOOKED_AT = 500  # units that a brief training is stopped on, or three times those with new votes


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossFit:
    """What comes out of going through the folds."""

    committee: Committee
    votes: dict[str, OutOfSample]  # by control
    penalties: dict[str, float]  # of the pooled rung, by control
    history: History
    warm: bool
    brief: bool  # only the units with new or changed votes and some others were gone through
    kept: dict[str, ControlState]  # by control: what stays as it was before a brief training
    learned: NDArray[np.int64]  # (A,) training votes of each annotator when the network last went through all units
    begun: dict[str, int]  # training votes of each control when the network was last trained from nothing
    seen: Seen  # by which the next training tells what has changed


def crossfit(
    dataset: Dataset, store: TokenStore, config: LadderConfig, *, previous: Ladder | None, device: str,
    progress: Callable[[float], None], features: Singles | None = None,
) -> CrossFit:
    """Fit every rung without each fold in turn. `features` (U, F) is what the pooled rung reads; by default the mean
    tokens.

    `previous` is grown and trained on where its shape allows it.

    A few new votes are learned in a few steps, on their units and some drawn from all others, so that an annotator who
    labels on does not wait for a training over everything; what they cannot change much is kept (`kept`). All units are
    gone through again once there are a quarter more votes than the last time (`LadderConfig.brief_until`), a fifth of
    these is gone, or a control has other classes than before. Once the votes of a control have doubled, or half of them
    are gone (`LadderConfig.warm_until`), or most contents are others than before, the networks are trained from
    nothing: what was learned from few votes holds back what is learned from many (`benchmarks.replay`).

    A short training on top of an earlier one would leave newcomers half learned (on the whole, everybody else is best
    left as they were), so while they matter it takes as long as one from scratch and is stopped on them as much as on
    all others. It takes as long where a control has other classes than before.
    """
    read = store.mean_tokens if features is None else features
    members = dataset.folds * dataset.members_per_fold
    votes_now, begun, seen = _training_votes(dataset), _by_control(dataset), see(dataset, store.mean_tokens)
    warm = (
        previous is not None and _fits(previous, members, dataset, store, config)
        and not another_size(begun, previous.begun, config.warm_until)
        and not (previous.seen is not None and mostly_other_contents(seen, previous.seen))
    )
    learned = _aligned(previous.learned, len(votes_now)) if previous is not None and warm else np.zeros_like(votes_now)
    new = newcomers(votes_now, learned)
    latest, kept = None, dict[str, ControlState]()
    if previous is not None and warm and not new.any() and votes_now.sum() <= config.brief_until * learned.sum():
        latest = _latest(dataset, seen, previous, config.brief_until)
    if previous is not None and previous.seen is not None and latest is not None:
        supported = as_well_supported(seen, previous.seen, config.brief_until)
        spaces = {name: targets.space for name, targets in dataset.controls.items() if name in supported}
        kept = keep(previous.controls, spaces, len(dataset.annotators))
        seen = seen.after(previous.seen, kept)
    votes, penalties = {}, {}
    for name in dataset.controls:
        targets = dataset.rows(name, (dataset.fold >= 0) & (dataset.fold < dataset.folds))
        penalties[name], models = _pick_penalty(
            dataset, name, read, read.shape[1] > store.dim, kept[name].pooled if name in kept else None
        )
        rungs = {
            "prior": _prior_scores(dataset, name, targets, config),
            "pooled": _pooled_scores(dataset, targets, models, read),
        }
        votes[name] = OutOfSample(targets=targets, fold=dataset.fold[targets.unit], rungs=rungs)
    committee, history = _train(
        dataset, store, config, members, previous.committee if previous is not None and warm else None, new, latest,
        device, progress,
    )
    votes = with_network(dataset, store, committee, votes, config)
    return CrossFit(
        committee=committee, votes=votes, penalties=penalties, history=history, warm=warm,
        brief=latest is not None, kept=kept, learned=_learned(votes_now, learned, new, latest),
        begun=_handed_on(previous.begun, begun) if previous is not None and warm else begun, seen=seen,
    )


def _latest(dataset: Dataset, seen: Seen, previous: Ladder, most: float) -> NDArray[np.int64] | None:
    """Training units that `previous` was not trained with as they are; None where all units must be gone through: these
    are half of them or more, or it is unknown, controls are no more what they were, or too much is gone."""
    spaces = {name: targets.space for name, targets in dataset.controls.items()}
    if previous.seen is None or spaces != previous.spaces or much_is_gone(seen, previous.seen, dataset, most):
        return None
    latest = changed_units(seen, previous.seen, dataset)
    return latest if 2 * len(latest) < np.count_nonzero(~dataset.heldout) else None


def _learned(
    votes: NDArray[np.int64], learned: NDArray[np.int64], new: NDArray[np.bool_], latest: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """What counts as learned from now on: after going through all units briefly, all but those who are still few."""
    if new.any():
        return votes
    return np.where(votes > 2 * learned, learned, votes) if latest is None else learned


def _sides(dataset: Dataset, name: str, fold: int) -> tuple[Targets, Targets]:
    """Votes to learn from and votes of the fold."""
    learn = dataset.rows(name, ~dataset.heldout & (dataset.fold != fold))
    return learn, dataset.rows(name, dataset.fold == fold)


def _pick_penalty(
    dataset: Dataset, name: str, features: Singles, surface: bool, kept: Pooled | None = None
) -> tuple[float, list[Pooled]]:
    """The penalty with the least out-of-sample loss, or that which is kept, and the models of all folds for it."""
    people = len(dataset.annotators)
    sides = [_sides(dataset, name, fold) for fold in range(dataset.folds)]
    best: tuple[float, float, list[Pooled]] | None = None
    models: list[Pooled | None] = [kept] * dataset.folds
    for penalty in PENALTIES[::-1] if kept is None else (kept.penalty,):
        fitted = [
            fit_pooled(features, learn, people, penalty, start, surface=surface)
            for (learn, _), start in zip(sides, models, strict=True)
        ]
        loss = sum(_check_loss(model, features, check) for (_, check), model in zip(sides, fitted, strict=True))
        if best is None or loss < best[0]:
            best = (loss, penalty, fitted)
        models = list(fitted)  # from strong to weak, each starts where the one before ended
    assert best is not None
    return best[1], best[2]


def _check_loss(model: Pooled, features: Singles, check: Targets) -> float:
    """Nats that a model pays for the votes of one fold."""
    weight = _preferably_scored(check, np.zeros(len(check), np.int64))
    return float(loss_and_slope(check.space, model.votes(features, check), check.y)[0] @ weight)


def _prior_scores(dataset: Dataset, name: str, targets: Targets, config: LadderConfig) -> Floats:
    scores = np.empty(targets.y.shape, np.float64)
    for fold in range(dataset.folds):
        learn, _ = _sides(dataset, name, fold)
        table = to_scores(targets.space, fit_prior(learn, len(dataset.annotators), config.prior_strength))
        here = dataset.fold[targets.unit] == fold
        scores[here] = table[targets.annotator[here]]
    return scores


def _pooled_scores(dataset: Dataset, targets: Targets, models: list[Pooled], features: Singles) -> Floats:
    scores = np.empty(targets.y.shape, np.float64)
    for fold, model in enumerate(models):
        here = dataset.fold[targets.unit] == fold
        scores[here] = model.votes(features, targets.select(here))
    return scores


def _train(
    dataset: Dataset, store: TokenStore, config: LadderConfig, members: int, previous: Committee | None,
    new: NDArray[np.bool_], latest: NDArray[np.int64] | None, device: str, progress: Callable[[float], None],
) -> tuple[Committee, History]:
    """Train all members side by side; member m never learns from fold m % folds."""
    people = len(dataset.annotators)
    spaces = {name: targets.space for name, targets in dataset.controls.items()}
    slots = lay_out(spaces)
    priors = [
        {
            name: to_scores(space, fit_prior(_sides(dataset, name, fold)[0], people, config.prior_strength))
            for name, space in spaces.items()
        }
        for fold in range(dataset.folds)
    ]
    priors = [priors[member % dataset.folds] for member in range(members)]
    network = new_network(people, slots, priors, store, config.network, seed=config.seed)
    if previous is not None:
        network = grow(previous.network, previous.slots, network, slots)
    rows, steps = {name: dataset.rows(name, ~dataset.heldout) for name in spaces}, config.network
    looked_at = _looked_at(dataset, latest, config.seed)
    same = previous is not None and {name: slot.space for name, slot in previous.slots.items()} == spaces
    history = train(
        network.to(store.device), slots, store,
        VoteTable(rows, {n: _shares(dataset, t, vote_weights(t, steps.tau), members, False) for n, t in rows.items()}),
        VoteTable(rows, {
            n: _shares(dataset, t, _checking(dataset, t, new if previous else None) * looked_at[t.unit], members, True)
            for n, t in rows.items()
        }),
        steps, seed=config.seed, latest=latest, progress=progress,
        epochs=_epochs(steps, same and not bool(new.any()), latest),
    )
    return Committee(network, spaces, device=device), history


def _looked_at(dataset: Dataset, latest: NDArray[np.int64] | None, seed: int) -> NDArray[np.bool_]:
    """Units (U,) whose votes stop a training: all, and where it is brief the latest and a sample of the others."""
    if latest is None:
        return np.ones(len(dataset.units), np.bool_)
    found = np.zeros(len(dataset.units), np.bool_)
    some = np.random.default_rng([seed, 4]).permutation(np.flatnonzero(~dataset.heldout))
    found[some[: max(_LOOKED_AT, 3 * len(latest))]] = True
    found[latest] = True
    return found


def _epochs(config: NetworkConfig, warm: bool, latest: NDArray[np.int64] | None) -> int:
    if latest is not None:  # nothing to learn where votes came on held-out units only, or were taken back
        return config.brief_epochs if len(latest) else 0
    return config.warm_epochs if warm else config.epochs


def _shares(
    dataset: Dataset, targets: Targets, weight: NDArray[np.floating], members: int, own_fold: bool
) -> NDArray[np.float64]:
    """The weights (M, N) that each member gives the votes (N,): those of its own fold, or all but those."""
    fold = np.arange(members)[:, None] % dataset.folds
    return np.asarray(np.where((dataset.fold[targets.unit] == fold) == own_fold, weight, 0.0))


def _preferably_scored(targets: Targets, fold: NDArray[np.int64]) -> NDArray[np.floating]:
    """What votes weigh in early stopping: only those given without a pre-annotation, in folds (N,) with enough."""
    number, place = np.unique(fold, return_inverse=True)
    enough = np.bincount(place, weights=targets.scored, minlength=len(number)) >= _ENOUGH_SCORED
    return targets.weight * (targets.scored | ~enough[place])


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


def _checking(dataset: Dataset, targets: Targets, new: NDArray[np.bool_] | None) -> NDArray[np.floating]:
    """What votes weigh in early stopping, (N,); newcomers as much as all others together."""
    weight = _preferably_scored(targets, dataset.fold[targets.unit])
    if new is None:
        return weight
    theirs = np.append(new, False)[targets.annotator]
    own, others = float(weight[theirs].sum()), float(weight[~theirs].sum())
    return np.where(theirs, weight * others / own, weight) if own > 0.0 and others > 0.0 else weight


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

"""Fitting a committee of networks to all controls and folds together, and its scores of votes it never learned from.

Member m never learns from fold m % folds and is stopped early on it, which flatters it a little, as it picks one of
some twenty epochs. Since a unit never changes its fold, a member that is trained on from an earlier version has still
never seen its fold.

Shape legend: M members, A annotators, U units, B units of a batch, Q = A + 1 queries, N votes of a control, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Codes, Course, Flags, Floats, Sample, preferably_scored
from model.base_models.prior import fit_prior
from model.config import NetworkConfig
from model.data.dataset import Targets
from model.data.observed_votes import ObservedVotes
from model.data.scores import to_scores
from model.qumab.asked import Asked
from model.qumab.batches import TokenStore, VoteTable
from model.qumab.committee import Committee
from model.qumab.growth import grow, new_network
from model.qumab.labels import GivenColumns, LabelTokens, tokens_of
from model.qumab.slots import lay_out
from model.qumab.training import History, train, vote_weights

Rows = Mapping[str, Codes]  # control -> positions of votes
Views = Mapping[str, Sequence[Flags]]  # control -> which of its votes are visible, one mask a view


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A committee, and what its members said of votes of their own fold, control -> (N, C)."""

    committee: Committee
    history: History
    alone: dict[str, Floats]  # from content alone
    conditioned: list[dict[str, Floats]]  # for each view, with the visible votes read


def trained(samples: Mapping[str, Sample], views: Views, course: Course) -> Trained:
    """Train once in a course, whichever base model asks first."""
    if "committee" not in course.shared:
        committee, history = fit_committee(samples, course)
        asked = {name: sample.to_score() for name, sample in samples.items()}
        alone, conditioned = scores_of_votes(committee, asked, views, by_fold=True)
        course.shared["committee"] = Trained(
            committee=committee, history=history, alone=alone, conditioned=conditioned)
    found = course.shared["committee"]
    assert isinstance(found, Trained)
    return found


def committee_of(sample: Sample) -> Committee:
    """A committee for one control alone."""
    course = Course(store=_store(sample), config=sample.config, device=str(_store(sample).device),
                    members_per_fold=sample.config.members_per_fold)
    return fit_committee({sample.control: sample}, course)[0]


def fit_committee(samples: Mapping[str, Sample], course: Course) -> tuple[Committee, History]:
    """Train all members side by side on samples that share their units and folds."""
    some = next(iter(samples.values()))
    folds, people, steps = len(some.folds), some.people, course.config.network
    members, previous = folds * course.members_per_fold, course.previous
    spaces = {name: sample.targets.space for name, sample in samples.items()}
    slots = lay_out(spaces)
    priors = [
        {name: to_scores(spaces[name], fit_prior(sample.without(fold).targets, people, course.config.prior_strength))
         for name, sample in samples.items()}
        for fold in some.folds
    ]
    network = new_network(
        people, slots, [priors[member % folds] for member in range(members)], course.store, steps,
        seed=course.config.seed,
    )
    if previous is not None:
        network = grow(previous.network, previous.slots, network, slots)
    new = course.newcomers if course.newcomers is not None else np.zeros(people, np.bool_)
    same = previous is not None and {name: slot.space for name, slot in previous.slots.items()} == spaces
    rows = {name: sample.targets for name, sample in samples.items()}
    learn = {
        name: shares(sample, vote_weights(sample.targets, steps.tau), members, own_fold=False)
        for name, sample in samples.items()
    }
    theirs = new if previous is not None else None
    check = {
        name: shares(sample, _checking(sample, theirs, course.looked_at), members, own_fold=True)
        for name, sample in samples.items()
    }
    history = train(
        network.to(course.store.device), slots, course.store, VoteTable(rows, learn), VoteTable(rows, check), steps,
        seed=course.config.seed, latest=course.latest, progress=course.progress,
        epochs=_epochs(steps, same and not bool(new.any()), course.latest),
    )
    return Committee(network, spaces, device=course.device), history


def _epochs(config: NetworkConfig, warm: bool, latest: Codes | None) -> int:
    if latest is not None:  # nothing to learn where votes came on held-out units only, or were taken back
        return config.brief_epochs if len(latest) else 0
    return config.warm_epochs if warm else config.epochs


def shares(sample: Sample, weight: NDArray[np.floating], members: int, *, own_fold: bool) -> Floats:
    """The weights (M, N) that each member gives the votes (N,): those of its own fold, or all but those."""
    fold = np.array(sample.folds)[np.arange(members) % len(sample.folds)][:, None]
    return np.asarray(np.where((sample.fold_of_each == fold) == own_fold, weight, 0.0))


def _checking(sample: Sample, new: Flags | None, looked_at: Flags | None) -> NDArray[np.floating]:
    """What votes weigh in early stopping, (N,); newcomers as much as all others together."""
    targets = sample.targets
    weight = _with_newcomers(targets, preferably_scored(targets, sample.fold_of_each), new)
    return weight if looked_at is None else weight * looked_at[targets.unit]


def _with_newcomers(
    targets: Targets, weight: NDArray[np.floating], new: Flags | None
) -> NDArray[np.floating]:
    if new is None:
        return weight
    theirs = np.append(new, False)[targets.annotator]
    own, others = float(weight[theirs].sum()), float(weight[~theirs].sum())
    return np.where(theirs, weight * others / own, weight) if own > 0.0 and others > 0.0 else weight


def scores_of_votes(
    committee: Committee, samples: Mapping[str, Sample], views: Views, *, by_fold: bool = False
) -> tuple[dict[str, Floats], list[dict[str, Floats]]]:
    """control -> scores (N, C) of each vote: from content alone, and for each view with the visible votes read.

    With `by_fold` each vote is scored by the members that never trained on its fold, else by all.
    """
    some = next(iter(samples.values()))
    store, members = _store(some), np.arange(committee.network.members)
    count = max(map(len, views.values()))
    ways = [{name: np.empty(item.targets.y.shape) for name, item in samples.items()} for _ in range(1 + count)]
    for at, fold in enumerate(some.folds if by_fold else (None,)):
        mine = members if fold is None else members[members % len(some.folds) == at]
        units = np.unique(np.concatenate([_units(item, fold) for item in samples.values()]))
        units = units[np.argsort(store.lengths[units], kind="stable")]
        with committee.network.only(mine):
            for positions in committee.split(units, store.lengths):
                _enter(committee, store, samples, views, np.sort(positions), ways)
    return ways[0], ways[1:]


def _units(sample: Sample, fold: int | None) -> Codes:
    return sample.targets.unit if fold is None else sample.targets.unit[sample.fold_of_each == fold]


def _enter(
    committee: Committee, store: TokenStore, samples: Mapping[str, Sample], views: Views, positions: Codes,
    ways: list[dict[str, Floats]],
) -> None:
    """Enter the scores of the votes on the units at these positions."""
    here = {name: np.flatnonzero(np.isin(item.targets.unit, positions)) for name, item in samples.items()}
    labels = [
        _tokens(committee, samples, {name: masks[view] for name, masks in views.items()}, here, positions)
        for view in range(len(ways) - 1)
    ]
    at = {
        name: (np.searchsorted(positions, item.targets.unit[rows]), item.targets.annotator[rows])
        for (name, item), rows in zip(samples.items(), here.values(), strict=True)
    }
    asked = Asked.of(list(at.values()), len(positions), committee.network.annotators + 1, committee.device)
    found = committee.member_scores(*store.batch(positions), labels, asked)
    for way, scores in zip(ways, found, strict=True):
        for name, rows in here.items():
            way[name][rows] = scores[name].mean(0)[at[name]]  # (B, Q, C)


def _tokens(
    committee: Committee, samples: Mapping[str, Sample], visible: Mapping[str, Flags], here: Rows, positions: Codes
) -> LabelTokens | None:
    """Label tokens of what one view shows on the units at these positions."""
    if not committee.network.config.labels:
        return None
    found = {}
    for name, item in samples.items():
        rows = here[name][visible[name][here[name]]]
        found[name] = GivenColumns(
            row=np.searchsorted(positions, item.targets.unit[rows]), giver=item.targets.annotator[rows],
            y=item.targets.y[rows], trust=item.targets.weight[rows],
        )
    return tokens_of(found, committee.slots, len(positions), committee.device)


def columns(votes: ObservedVotes) -> GivenColumns:
    """Observed votes as label tokens see them; all unknown givers are the generic query."""
    unit, person = np.nonzero(votes.has)
    known = votes.has.shape[1] - len(votes.strangers)
    return GivenColumns(
        row=unit, giver=np.minimum(person, known), y=votes.y[unit, person], trust=votes.weight[unit, person]
    )


def _store(sample: Sample) -> TokenStore:
    assert sample.store is not None, "the tokens of the units are needed"
    return sample.store

"""Out-of-sample scores of the rungs that look at units through networks and votes.

For a vote of fold f: the members that never trained on f, from content alone (`network`) and with some of the unit's
other votes visible (`conditioned`); and the latent classes fitted without f, from the same visible votes (`others`).
The masks are those of use: all votes of others, as where one annotator is missing, and a random share of them.

Shape legend: N votes of one control on training units, M members, B units, Q queries, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.data.dataset import Dataset, Targets
from model.ensemble.latent import fit_latent
from model.qumab.asked import Asked
from model.qumab.batches import TokenStore
from model.qumab.committee import Committee
from model.qumab.labels import GivenColumns, LabelTokens, tokens_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
_MASKS = 2  # the first: a random share of each unit's votes; the second: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Visible:
    """What the rungs that read votes say of N votes when others on their units are visible, never the vote itself."""

    seen: NDArray[np.bool_]  # (N,) which votes are visible to others
    count: NDArray[np.int64]  # (N,) how many visible votes of others each has on its unit
    rungs: dict[str, Floats]  # conditioned, others -> (N, C)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfSample:
    """Votes of one control with the scores that each rung gave without having seen their units, (N, C) each."""

    targets: Targets
    fold: NDArray[np.int64]  # (N,)
    rungs: dict[str, Floats]
    visible: tuple[Visible, ...] = ()  # the same with some of the votes on each unit visible


def with_network(
    dataset: Dataset, store: TokenStore, committee: Committee, votes: dict[str, OutOfSample], config: LadderConfig
) -> dict[str, OutOfSample]:
    """The same votes with the rungs `network`, `conditioned` and `others`."""
    masks = {name: _masks(dataset, item.targets, config.seed) for name, item in votes.items()}
    alone, conditioned = _network_scores(dataset, store, committee, votes, masks)
    found = {}
    for name, item in votes.items():
        others = _latent_scores(dataset, name, item, masks[name], config)
        visible = tuple(
            Visible(
                seen=seen, count=_others_seen(item.targets, seen),
                rungs={"conditioned": conditioned[index][name], "others": others[index]},
            )
            for index, seen in enumerate(masks[name])
        )
        found[name] = replace(item, rungs={**item.rungs, "network": alone[name]}, visible=visible)
    return found


def _masks(dataset: Dataset, targets: Targets, seed: int) -> list[Flags]:
    """Which votes (N,) are visible to others, for each mask."""
    rng = np.random.default_rng([seed, 2])
    share = rng.random(len(dataset.units))
    return [rng.random(len(targets)) < share[targets.unit], np.ones(len(targets), np.bool_)]


def _others_seen(targets: Targets, seen: Flags) -> NDArray[np.int64]:
    """How many visible votes of others each vote has on its unit, (N,)."""
    _, place = np.unique(targets.unit, return_inverse=True)
    return np.asarray(np.bincount(place, weights=seen)[place] - seen).astype(np.int64)


def _latent_scores(
    dataset: Dataset, name: str, item: OutOfSample, masks: list[Flags], config: LadderConfig
) -> list[Floats]:
    """Scores (N, C) of `others` for each mask, through matrices that have not seen the fold."""
    found = [np.empty(item.targets.y.shape, np.float64) for _ in masks]
    for fold in range(dataset.folds):
        learn = dataset.rows(name, ~dataset.heldout & (dataset.fold != fold))
        model = fit_latent(learn, len(dataset.annotators), config.confusion_strength)
        here = item.fold == fold
        for scores, seen in zip(found, masks, strict=True):
            scores[here] = model.votes(item.targets.select(here), seen[here])
    return found


def _network_scores(
    dataset: Dataset, store: TokenStore, committee: Committee, votes: dict[str, OutOfSample],
    masks: dict[str, list[Flags]],
) -> tuple[dict[str, Floats], list[dict[str, Floats]]]:
    """Scores (N, C) of each vote by the members that never trained on its fold: from content alone, and for each mask
    with the visible votes read."""
    ways = [{name: np.empty(item.targets.y.shape) for name, item in votes.items()} for _ in range(1 + _MASKS)]
    members = np.arange(committee.network.members)
    for fold in range(dataset.folds):
        units = np.flatnonzero(dataset.fold == fold)
        units = units[np.argsort(store.lengths[units], kind="stable")]
        with committee.network.only(members[members % dataset.folds == fold]):
            for positions in committee.split(units, store.lengths):
                positions = np.sort(positions)
                here = {name: np.flatnonzero(np.isin(item.targets.unit, positions)) for name, item in votes.items()}
                labels = [_tokens(committee, votes, masks, index, here, positions) for index in range(_MASKS)]
                at = {
                    name: (np.searchsorted(positions, item.targets.unit[rows]), item.targets.annotator[rows])
                    for (name, item), rows in zip(votes.items(), here.values(), strict=True)
                }
                asked = Asked.of(
                    list(at.values()), len(positions), committee.network.annotators + 1, committee.device
                )
                found = committee.member_scores(*store.batch(positions), labels, asked)
                for way, scores in zip(ways, found, strict=True):
                    for name, rows in here.items():
                        way[name][rows] = scores[name].mean(0)[at[name]]  # (B, Q, C)
    return ways[0], ways[1:]


def _tokens(
    committee: Committee, votes: dict[str, OutOfSample], masks: dict[str, list[Flags]], index: int,
    here: dict[str, NDArray[np.int64]], positions: NDArray[np.int64],
) -> LabelTokens | None:
    """Label tokens of what one mask shows on the units at these positions."""
    if not committee.network.config.labels:
        return None
    columns = {}
    for name, item in votes.items():
        rows = here[name][masks[name][index][here[name]]]
        columns[name] = GivenColumns(
            row=np.searchsorted(positions, item.targets.unit[rows]), giver=item.targets.annotator[rows],
            y=item.targets.y[rows], trust=item.targets.weight[rows],
        )
    return tokens_of(columns, committee.slots, len(positions), committee.device)

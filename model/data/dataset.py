"""From votes to arrays: what every base model is fitted on.

Shape legend: U units with votes, A annotators, N votes of one control, C classes of its space.
Invariants: a vote whose value is outside its space, or whose control has no space, is not there; an annotator keeps
the index that an earlier ladder gave them; folds and held-out units depend on ids alone; a vote of somebody anonymous
teaches what people have in common and is never scored, since nobody will be shown what is predicted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.data.spaces import Space
from model.data.splits import fold_of
from model.data.votes import Provenance, Votes
from model.errors import ModelError, NotEnoughVotes

Tokens = NDArray[np.float16]  # (T, D) of one unit


def nobody(annotator: str) -> bool:
    """The predicate of projects in which every annotator is a person."""
    return False


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """Everything that a fit may look at."""

    votes: Votes
    spaces: Mapping[str, Space]  # control -> space
    tokens: Callable[[Sequence[str]], list[Tokens]]  # units -> tokens of each
    heldout: Callable[[str], bool]  # unit -> never trained on
    texts: Callable[[Sequence[str]], Sequence[str]] | None = None  # units -> the text of each, "" where it shows none
    anonymous: Callable[[str], bool] = nobody  # annotator -> nobody whom a later vote could come from


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The votes of one control as arrays."""

    space: Space
    unit: NDArray[np.int64]  # (N,) index into Dataset.units
    annotator: NDArray[np.int64]  # (N,) index into Dataset.annotators; A: anonymous, answered for by the generic row
    y: NDArray[np.float32]  # (N, C)
    weight: NDArray[np.float32]  # (N,) accepted suggestions weigh less
    scored: NDArray[np.bool_]  # (N,)

    def __len__(self) -> int:
        return len(self.unit)

    def select(self, rows: NDArray[np.bool_]) -> Targets:
        return replace(
            self, unit=self.unit[rows], annotator=self.annotator[rows], y=self.y[rows], weight=self.weight[rows],
            scored=self.scored[rows],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """All usable votes of a project over common unit and annotator tables."""

    units: tuple[str, ...]  # U ids, those with a usable vote
    annotators: tuple[str, ...]  # A ids
    controls: dict[str, Targets]
    heldout: NDArray[np.bool_]  # (U,)
    fold: NDArray[np.int64]  # (U,) inner validation fold of a training unit; -1 when held out
    folds: int  # 1: only fold 0 is validated on
    members_per_fold: int

    def rows(self, name: str, units: NDArray[np.bool_]) -> Targets:
        """The votes of a control on the units of a mask (U,)."""
        targets = self.controls[name]
        return targets.select(units[targets.unit])


def build_dataset(data: TrainingSet, config: LadderConfig, known: Sequence[str] = ()) -> Dataset:
    """Encode the votes; `known` annotators come first, in their order. Raises NotEnoughVotes when nothing is usable."""
    votes = data.votes
    usable = [name for name, space in data.spaces.items() if space.classes]
    columns = {name: _rows(votes, name, data.spaces[name]) for name in usable}
    used = np.unique(np.concatenate([votes.unit[rows] for rows, _ in columns.values()] or [np.empty(0, np.int32)]))
    if not len(used):
        raise NotEnoughVotes("there are no votes that fit the controls of this project")
    unit_position = np.full(len(votes.units), -1)
    unit_position[used] = np.arange(len(used))
    annotators, annotator_position = _annotators(votes, columns, known, data.anonymous)
    controls = {}
    for name, (rows, encoded) in columns.items():
        if not len(rows):
            continue
        accepted = votes.provenance[rows] == Provenance.ACCEPTED
        controls[name] = Targets(
            space=data.spaces[name],
            unit=unit_position[votes.unit[rows]],
            annotator=annotator_position[votes.annotator[rows]],
            y=encoded,
            weight=votes.weight[rows] * np.where(accepted, np.float32(config.echo_weight), np.float32(1.0)),
            scored=votes.scored[rows] & (annotator_position[votes.annotator[rows]] < len(annotators)),
        )
    units = tuple(votes.units[index] for index in used)
    heldout = np.array([data.heldout(unit) for unit in units], dtype=np.bool_)
    if heldout.all():
        raise NotEnoughVotes("all units with votes are held out, so there is nothing to train on")
    total = sum(map(len, controls.values()))
    folds = 1 if total > config.single_above_votes else config.folds
    pair = 1 if total > config.pairs_below_votes else config.members_per_fold
    splits = folds if folds > 1 else _SPLITS_OF_ONE
    fold = np.array([-1 if out else fold_of(unit, splits) for unit, out in zip(units, heldout, strict=True)])
    return Dataset(
        units=units, annotators=annotators, controls=controls, heldout=heldout, fold=fold, folds=folds,
        members_per_fold=pair,
    )


_SPLITS_OF_ONE = 4  # a single network is validated on one of four folds


def _rows(votes: Votes, control: str, space: Space) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Row numbers of the usable votes of a control, and their encoded values (n, C)."""
    if control not in votes.controls:
        return np.empty(0, np.int64), np.empty((0, len(space.classes)), np.float32)
    inside = np.array([space.contains(value) for value in votes.values], dtype=np.bool_)
    table = np.zeros((len(votes.values), len(space.classes)), np.float32)
    for index in np.flatnonzero(inside):
        table[index] = space.encode(votes.values[index])
    mine = votes.control == votes.controls.index(control)
    rows = np.flatnonzero(mine & inside[votes.value] & (votes.weight > 0))
    return rows, table[votes.value[rows]]


def _annotators(
    votes: Votes, columns: Mapping[str, tuple[NDArray[np.int64], NDArray[np.float32]]], known: Sequence[str],
    anonymous: Callable[[str], bool],
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The annotator table, and the position in it of each annotator of `votes` (-1 for those without usable votes, A
    for those who are anonymous)."""
    used = np.unique(np.concatenate([votes.annotator[rows] for rows, _ in columns.values()]))
    names = [votes.annotators[index] for index in used]
    table = tuple(known) + tuple(sorted({name for name in names if not anonymous(name)} - set(known)))
    position_of = {name: index for index, name in enumerate(table)}
    position = np.full(len(votes.annotators), -1, dtype=np.int64)
    position[used] = [position_of.get(name, len(table)) for name in names]
    return table, position


def check_tokens(units: Sequence[str], tokens: Sequence[Tokens], dim: int | None = None) -> int:
    """The common dimension D of the tokens. Raises ModelError naming the first unit whose tokens are unusable."""
    if len(tokens) != len(units):
        raise ModelError(f"{len(units)} units were asked for, but the tokens of {len(tokens)} came back")
    for unit, array in zip(units, tokens, strict=True):
        if array.ndim != 2 or not array.shape[0]:
            raise ModelError(f"the features of unit {unit} are not a (tokens, dim) array with at least one token")
        dim = array.shape[1] if dim is None else dim
        if array.shape[1] != dim:
            raise ModelError(f"the features of unit {unit} have dimension {array.shape[1]}, not {dim}")
        if not np.isfinite(array).all():
            raise ModelError(f"the features of unit {unit} contain NaN or infinity")
    if dim is None:  # neither units nor a dimension to check against
        raise ModelError("there are no units, so the dimension of the features is unknown")
    return dim

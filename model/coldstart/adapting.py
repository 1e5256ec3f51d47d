"""From a newcomer's votes and what a version knows of their units to answers that are moved by them.

    moved = adapt(ladder, "7", votes, tokens, texts)                      # once for each new vote
    ladder.predict(..., newcomers={"7": moved})                           # with every request

A newcomer is somebody whom the version does not know, or whom its network learned from fewer than `LITTLE` votes. What
is served to everybody else does not change, nor does the consensus. On a unit that a newcomer has voted on, they are
answered as without any of their votes' moves, so that no vote comes back to its giver.

Shape legend: N votes, B units, A annotators asked for, R rows of answers (the last one generic), C classes, F features.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from model.base_models.pooled import plain_of
from model.coldstart.newcomer import Experience, Newcomer, fits, learn, most_votes
from model.coldstart.people import People
from model.data.spaces import Space
from model.data.votes import Provenance, Votes

if TYPE_CHECKING:
    from model.base_models.pooled import FittedPooled
    from model.quality.evidence import Evidence

Floats = NDArray[np.float64]
LITTLE = 40  # votes; with more, the version's own answers are taken as they are
_FAR = 3.0  # standard deviations; a rare feature says no more than this
_PLAIN = 0.5  # of own scores on one plain feature, beside those on all content together


class Control(Protocol):
    """What is asked of what a version learned of one control."""

    @property
    def space(self) -> Space: ...
    @property
    def panel(self) -> NDArray[np.bool_]: ...
    @property
    def pooled(self) -> FittedPooled: ...
    @property
    def prior(self) -> Floats: ...
    @property
    def people(self) -> People | None: ...


class Config(Protocol):
    """What is asked of how it was fitted."""

    @property
    def echo_weight(self) -> float: ...


class Version(Protocol):
    """What is asked of a version (`model.ensemble.predictor.Ladder`)."""

    @property
    def reads(self) -> bool: ...
    @property
    def controls(self) -> Mapping[str, Control]: ...
    @property
    def config(self) -> Config: ...
    def trained_on(self, annotator: str) -> int: ...
    def place(self, annotator: str) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """What a newcomer's votes taught, control by control."""

    controls: Mapping[str, Newcomer]
    units: frozenset[str]  # on which they have voted

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return sum(each.size for each in self.controls.values()) + 100 * len(self.units)


def is_newcomer(ladder: Version, annotator: str) -> bool:
    """Whether their own votes may say more than the version does."""
    return ladder.reads and ladder.trained_on(annotator) < LITTLE


def adapt(
    ladder: Version, annotator: str, votes: Votes, features: Mapping[str, NDArray[np.floating]],
    evidence: Evidence | None = None, *, voted: Collection[str] = (),
) -> Adapted | None:
    """Learn from the votes of `annotator` on units whose features (F,), as `Ladder.features` makes them, are at hand.

    `evidence` holds out-of-sample answers for those whom the version was trained on a little; `voted` are units that
    they voted on beside those in `votes`, such as held-out ones. None where nothing can be learned.
    """
    theirs = votes.select(np.array([name == annotator for name in votes.annotators], np.bool_)[votes.annotator])
    there = np.array([unit in features for unit in theirs.units], np.bool_)
    usable = theirs.select(there[theirs.unit])
    usable = usable.select(np.lexsort((usable.unit, usable.time)))
    found = {
        name: learned for name in ladder.controls
        if (learned := _control(ladder, name, annotator, usable.of_control(name), features, evidence)) is not None
    }
    if not found:
        return None
    return Adapted(controls=found, units=frozenset([*voted, *(theirs.units[code] for code in np.unique(theirs.unit))]))


def _control(
    ladder: Version, name: str, annotator: str, votes: Votes, features: Mapping[str, NDArray[np.floating]],
    evidence: Evidence | None,
) -> Newcomer | None:
    state = ladder.controls[name]
    if not fits(state.space, len(state.panel)):
        return None
    inside = np.array([state.space.contains(value) for value in votes.values], np.bool_)
    rows = np.flatnonzero(inside[votes.value] & (votes.weight > 0))[-most_votes(state.space):] if len(votes) else ()
    if not len(rows):
        return None
    part = votes.select(np.asarray(rows))
    units = [part.units[code] for code in part.unit]
    read = np.array([features[unit] for unit in units])
    itself = ladder.place(annotator)
    return learn(Experience(
        space=state.space, rows=stand_in(state, read), content=content_of(state.pooled, read),
        y=np.array([state.space.encode(part.values[code]) for code in part.value]),
        weight=np.where(part.provenance == Provenance.ACCEPTED, ladder.config.echo_weight, 1.0) * part.weight,
        frequencies=state.prior[-1], itself=itself,
        out_of_sample=None if itself is None or evidence is None else _known(
            evidence, name, annotator, units, state.space.classes),
    ))


def _known(
    evidence: Evidence, control: str, annotator: str, units: Sequence[str], classes: Sequence[str]
) -> Floats | None:
    """(N, C) what was served to an annotator on units by models that had not seen them; NaN where nothing was."""
    item = evidence.controls.get(control)
    if item is None or annotator not in evidence.annotators or tuple(item.classes) != tuple(classes):
        return None
    mine = np.flatnonzero(item.annotator == evidence.annotators.index(annotator))
    at = {evidence.units[code]: row for code, row in zip(item.unit[mine].tolist(), mine.tolist(), strict=True)}
    found = np.full((len(units), len(classes)), np.nan)
    for row, unit in enumerate(units):
        if unit in at:
            found[row] = item.served[at[unit]]
    return found


def stand_in(state: Control, features: NDArray[np.floating]) -> Floats:
    """Scores (B, P + 1, C) of known annotators and somebody unknown from features (B, F), without the network."""
    found = state.pooled.of_units(features)
    return found if state.people is None else found + state.people.scores(content_of(state.pooled, features))


def content_of(pooled: FittedPooled, features: NDArray[np.floating]) -> Floats:
    """Features (B, F) as own scores read them, (B, F + K): standardised, of about unit length; and the plain ones of
    how a text is written once more, since people's rules are often about these."""
    f = pooled.standardised(features)
    z = np.clip(f, -_FAR, _FAR) / np.sqrt(max(f.shape[1], 1))
    if pooled.own is None:
        return np.asarray(z)
    return np.concatenate([z, _PLAIN * np.clip(plain_of(f), -_FAR, _FAR)], 1)


def moved(
    alike: Floats, control: str, newcomers: Mapping[str, Adapted], annotators: Sequence[str], units: Sequence[str],
    scores: Floats, content: Floats,
) -> Floats:
    """Probabilities (B, A, C) with the answers for newcomers instead of those that are `alike` for anybody unknown:
    from what is served to everybody, scores (B, R, C)."""
    served = alike
    for column, annotator in enumerate(annotators):
        one = newcomers.get(annotator)
        learned = None if one is None else one.controls.get(control)
        if one is None or learned is None:
            continue
        rows = np.flatnonzero([unit not in one.units for unit in units])
        if served is alike:
            served = served.copy()
        served[rows, column] = learned.probabilities(scores[rows], content[rows])
    return served

"""One control of a ladder: what was learned about it, and its answers from the scores of its base models.

Answers have R = P + E + 1 rows: the P known annotators, the E unknown givers of votes on the units (so that an unknown
one's vote does not come back to them either), and somebody unknown who gave nothing.

Shape legend: B units, A annotators asked for, P, E, R as above, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.base_models.base import Batch, Fitted, Reading
from model.base_models.pooled import FittedPooled
from model.base_models.prior import FittedPrior
from model.base_models.registry import BASE_MODELS
from model.coldstart.people import People
from model.data.observed_votes import ObservedVotes
from model.data.scores import to_probabilities
from model.data.spaces import Space
from model.ensemble.calibration import Calibration, undecided
from model.ensemble.consensus import majority
from model.ensemble.floor import Floor
from model.ensemble.gaps import Gaps
from model.ensemble.stack import Stack

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPrediction:
    """Probabilities for one control; single choice: a distribution, several choices: one Bernoulli a class."""

    served: Floats  # (B, A, C) stacked and calibrated: what people are shown
    network: Floats  # (B, A, C) the network alone, from content
    base_models: dict[str, Floats]  # those that speak about it -> (B, A, C)
    consensus: Floats  # (B, C) probability to be the majority of the whole panel


@dataclass(frozen=True, kw_only=True)
class ControlState:
    """What the ladder learned about one control."""

    space: Space
    base_models: Mapping[str, Fitted]  # by name; those that a checkpoint from before there was one lacks are not there
    stack: Stack
    panel: NDArray[np.bool_]  # (P,) annotators who ever used this control
    panel_noise: float  # sigma of `consensus`
    gaps: Gaps | None = None  # None in a checkpoint from before there was any
    people: People | None = None  # what newcomers are compared with; None as above
    floor: Floor | None = None  # the same
    calibration: Calibration | None = None  # of the consensus; None as above

    @property
    def pooled(self) -> FittedPooled:
        """What newcomers are compared by; every ladder has it."""
        found = self.base_models["pooled"]
        assert isinstance(found, FittedPooled)
        return found

    @property
    def prior(self) -> Floats:
        """(P + 1, C) how often each annotator gives each label; every ladder has it."""
        found = self.base_models["prior"]
        assert isinstance(found, FittedPrior)
        return found.table

    def alone(self, features: NDArray[np.floating], reading: Reading, votes: ObservedVotes) -> dict[str, Floats]:
        """Scores (B, P + 1, C) of the base models that read no votes, of features (B, F)."""
        batch = Batch(source=np.arange(len(self.panel) + 1), votes=votes, features=features, reading=reading,
                      reads_votes=False)
        return {name: self.base_models[name].scores(batch) for name, model in BASE_MODELS.items()
                if name in self.base_models and not model.reads_votes}

    def answer(
        self, alone: Mapping[str, Floats], features: NDArray[np.floating], reading: Reading, votes: ObservedVotes, *,
        reads_votes: bool,
    ) -> Answers:
        """From what `alone` gave and the votes on the units; without `reads_votes` there are none to be read."""
        known, strangers = len(self.panel), len(votes.strangers)
        scores, wide = self.stack.pool(alone), dict(alone)  # (B, P + 1, C)
        served = scores if self.floor is None else self.floor.serve(self.space, scores, alone)
        source = np.minimum(np.arange(known + strangers + 1), known)  # (R,)
        if strangers:
            scores, served = scores[:, source], served[:, source]
            wide = {name: array[:, source] for name, array in alone.items()}
        if self.gaps is not None:
            batch = Batch(source=source, votes=votes, features=features, reading=reading, reads_votes=reads_votes,
                          stacked=scores)
            for name, model in BASE_MODELS.items():
                if model.reads_votes and name in self.base_models:
                    wide[name] = self.base_models[name].scores(batch)
            if votes.has.any():
                served = self._given(served, self.gaps.pool(scores, wide, votes, source), votes, source)
        return Answers(state=self, votes=votes, scores=served, base_models=wide)

    def _given(self, alone: Floats, pooled: Floats, votes: ObservedVotes, source: NDArray[np.int64]) -> Floats:
        """Scores (B, R, C): `alone`, where nobody else voted; elsewhere the stacks of the gaps, on their floor."""
        if self.gaps is None or self.gaps.share is None or self.floor is None:
            mixed = pooled
        else:
            mixed = self.floor.serve_gaps(self.space, self.gaps.share[source], pooled, alone, source)
        return np.where(self.gaps_seen(votes)[..., None], mixed, alone)

    @staticmethod
    def gaps_seen(votes: ObservedVotes) -> NDArray[np.bool_]:
        """(B, R): where somebody else voted."""
        has = np.concatenate([votes.has, np.zeros((len(votes.has), 1), np.bool_)], 1)
        return np.asarray(votes.has.sum(1)[:, None] > has)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of one control on B units."""

    state: ControlState
    votes: ObservedVotes
    scores: Floats  # (B, R, C) stacked and calibrated
    base_models: dict[str, Floats]  # (B, R, C)

    def prediction(
        self, annotators: Sequence[str], index: Mapping[str, int], consensus: Floats | None
    ) -> ControlPrediction:
        """For the annotators asked for; `index` holds the known ones. Without a consensus its rows are 0."""
        column = {**{name: len(index) + at for at, name in enumerate(self.votes.strangers)}, **index}
        last = self.scores.shape[1] - 1
        asked = np.array([column.get(name, last) for name in annotators], dtype=np.int64)
        space = self.state.space
        own = {name: to_probabilities(space, array[:, asked]) for name, array in self.base_models.items()}
        return ControlPrediction(
            served=to_probabilities(space, self.scores[:, asked]), network=own["network"], base_models=own,
            consensus=np.zeros((len(self.scores), len(space.classes))) if consensus is None else consensus,
        )

    def consensus(self, draws: int, among: NDArray[np.bool_] | None = None) -> Floats:
        """Probability of each class to be the majority, (B, C), calibrated; with `among` (B, P), to be the majority of
        those known ones, as it comes.

        Scores that are conditioned on the given votes already hold what these say, so the given votes then only count
        as what they are; scores from content alone are weighed by them.
        """
        state, votes = self.state, self.votes
        known = np.broadcast_to(state.panel, (len(votes.has), len(state.panel))) if among is None else among
        panel = np.pad(known, ((0, 0), (0, len(votes.strangers))))
        found = self._sampled(panel, draws)
        if among is not None or state.calibration is None:
            return found
        open_ = undecided(state.space, votes.y, votes.has, panel)
        return state.calibration.apply(state.space, found, votes.has.sum(1), open_)

    def _sampled(self, panel: NDArray[np.bool_], draws: int) -> Floats:
        state, votes, people = self.state, self.votes, self.scores[:, :-1]
        if state.gaps is None:
            return majority(state.space, people, votes.y, votes.has, panel, state.panel_noise, draws, votes.weight)
        found = np.empty((len(people), len(state.space.classes)))
        voted = votes.has.any(1)
        for rows, sigma in ((voted, state.gaps.panel_noise), (~voted, state.panel_noise)):
            if rows.any():
                found[rows] = majority(
                    state.space, people[rows], votes.y[rows], votes.has[rows], panel[rows], sigma, draws,
                    np.zeros_like(votes.weight[rows]),
                )
        return found

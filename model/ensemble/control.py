"""One control of a ladder: what was learned about it, and its answers from the scores of the rungs.

Answers have R = P + E + 1 rows: the P known annotators, the E unknown givers of votes on the units (so that an unknown
one's vote does not come back to them either), and somebody unknown who gave nothing.

Shape legend: B units, A annotators asked for, P, E, R as above, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.coldstart.people import People
from model.data.spaces import Space
from model.ensemble.calibration import Calibration, undecided
from model.ensemble.consensus import majority
from model.ensemble.floor import Floor
from model.ensemble.gaps import Gaps
from model.ensemble.given import GivenVotes
from model.ensemble.pooled import Pooled
from model.ensemble.scores import to_probabilities
from model.ensemble.stack import Stack

Floats = NDArray[np.float64]
RUNGS = ("prior", "pooled", "network")
GAP_RUNGS = ("conditioned", "others", "factors")  # these read given votes


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPrediction:
    """Probabilities for one control; single choice: a distribution, several choices: one Bernoulli a class."""

    served: Floats  # (B, A, C) stacked and calibrated: what people are shown
    network: Floats  # (B, A, C) the network alone, from content
    rungs: dict[str, Floats]  # RUNGS and, where the ladder has them, GAP_RUNGS -> (B, A, C)
    consensus: Floats  # (B, C) probability to be the majority of the whole panel


@dataclass(frozen=True, kw_only=True)
class ControlState:
    """What the ladder learned about one control, apart from the network."""

    space: Space
    prior: Floats  # (P + 1, C) probabilities
    pooled: Pooled
    stack: Stack
    panel: NDArray[np.bool_]  # (P,) annotators who ever used this control
    spread: float  # sigma of `consensus`
    gaps: Gaps | None = None  # None in a checkpoint from before there was any
    people: People | None = None  # what newcomers are compared with; None as above
    floor: Floor | None = None  # the same
    calibration: Calibration | None = None  # of the consensus; None as above

    def answer(self, rungs: Mapping[str, Floats], votes: GivenVotes) -> Answers:
        """From the scores of rungs (B, P + 1, C) and the votes on the units."""
        known, strangers = len(self.panel), len(votes.strangers)
        scores, wide = self.stack.pool(rungs), dict(rungs)  # (B, P + 1, C)
        content = {name: rungs[name] for name in RUNGS}
        served = scores if self.floor is None else self.floor.serve(self.space, scores, content)
        source = np.minimum(np.arange(known + strangers + 1), known)  # (R,)
        if strangers:
            scores, served = scores[:, source], served[:, source]
            wide = {name: array[:, source] for name, array in rungs.items()}
        if self.gaps is not None:
            wide["others"] = self.gaps.others(votes, source)
            if self.gaps.factors is not None:
                wide["factors"] = self.gaps.factors.scores(scores, votes, source)
            if votes.has.any():
                served = self._given(served, self.gaps.pool(scores, wide, votes, source), votes, source)
        return Answers(state=self, votes=votes, scores=served, rungs=wide)

    def _given(self, alone: Floats, pooled: Floats, votes: GivenVotes, source: NDArray[np.int64]) -> Floats:
        """Scores (B, R, C): `alone`, where nobody else voted; elsewhere the stacks of the gaps, on their floor."""
        if self.gaps is None or self.gaps.share is None or self.floor is None:
            mixed = pooled
        else:
            mixed = self.floor.serve_gaps(self.space, self.gaps.share[source], pooled, alone, source)
        return np.where(self.gaps_seen(votes)[..., None], mixed, alone)

    @staticmethod
    def gaps_seen(votes: GivenVotes) -> NDArray[np.bool_]:
        """(B, R): where somebody else voted."""
        has = np.concatenate([votes.has, np.zeros((len(votes.has), 1), np.bool_)], 1)
        return np.asarray(votes.has.sum(1)[:, None] > has)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The answers of one control on B units."""

    state: ControlState
    votes: GivenVotes
    scores: Floats  # (B, R, C) stacked and calibrated
    rungs: dict[str, Floats]  # (B, R, C)

    def prediction(
        self, annotators: Sequence[str], index: Mapping[str, int], consensus: Floats | None
    ) -> ControlPrediction:
        """For the annotators asked for; `index` holds the known ones. Without a consensus its rows are 0."""
        column = {**{name: len(index) + at for at, name in enumerate(self.votes.strangers)}, **index}
        last = self.scores.shape[1] - 1
        asked = np.array([column.get(name, last) for name in annotators], dtype=np.int64)
        space = self.state.space
        own = {name: to_probabilities(space, array[:, asked]) for name, array in self.rungs.items()}
        return ControlPrediction(
            served=to_probabilities(space, self.scores[:, asked]), network=own["network"], rungs=own,
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
            return majority(state.space, people, votes.y, votes.has, panel, state.spread, draws, votes.weight)
        found = np.empty((len(people), len(state.space.classes)))
        voted = votes.has.any(1)
        for rows, sigma in ((voted, state.gaps.spread), (~voted, state.spread)):
            if rows.any():
                found[rows] = majority(
                    state.space, people[rows], votes.y[rows], votes.has[rows], panel[rows], sigma, draws,
                    np.zeros_like(votes.weight[rows]),
                )
        return found

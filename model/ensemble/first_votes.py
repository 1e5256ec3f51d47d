"""Answers from votes alone: before there is a training, or where units have no content.

    scores[b, a] = the stack of prior[a] and others[b, a]   where somebody else voted on b,      prior[a] elsewhere

`prior` is the annotator prior, `others` the latent classes (Dawid-Skene), as are any base models that do without
content; `votes_fit` says how they are stacked. The consensus is that of `consensus`, calibrated on units whose majority
is known (`hidden`). An annotator's own vote on a unit never comes back to them. No torch.

Shape legend: B units, A annotators asked for, P known annotators, E unknown givers, R = P + E + 1, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.data.dataset import TrainingSet, build_dataset
from model.data.observed_votes import observed_votes
from model.data.scores import to_probabilities
from model.data.votes import Votes
from model.ensemble.calibration import undecided
from model.ensemble.consensus import majority
from model.ensemble.hidden import HiddenCheck
from model.ensemble.votes_fit import VotesControl, answers, fit_votes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesAlone:
    """Probabilities for one control, from votes alone."""

    served: Floats  # (B, A, C)
    base_models: dict[str, Floats]  # prior, others -> (B, A, C)
    consensus: Floats  # (B, C) probability to be the majority of the whole panel, calibrated


class FirstVotes:
    """What the votes of a project say, fitted in about a second. Immutable; safe to share between threads."""

    def __init__(self, data: TrainingSet, config: LadderConfig) -> None:
        """Fit on all votes of `data`; its tokens are never asked for. Raises NotEnoughVotes when none is usable."""
        dataset = build_dataset(data, config)
        self.annotators = dataset.annotators
        self.config = config
        self._index = {name: index for index, name in enumerate(dataset.annotators)}
        self._controls = {name: fit_votes(dataset, name, config) for name in dataset.controls}

    @property
    def checks(self) -> dict[str, HiddenCheck]:
        """Control -> how the consensus did on units whose majority is known; without those that have none."""
        return {name: control.check for name, control in self._controls.items() if control.check is not None}

    def predict(self, units: Sequence[str], annotators: Sequence[str], given: Votes) -> dict[str, VotesAlone]:
        """For B units and the annotators asked for, from the votes that the units have."""
        return {name: self._answer(name, control, units, annotators, given) for name, control in self._controls.items()}

    def _answer(
        self, name: str, control: VotesControl, units: Sequence[str], annotators: Sequence[str], given: Votes
    ) -> VotesAlone:
        votes = observed_votes(given, name, control.space, units, self._index, self.config.echo_weight)
        columns = votes.has.shape[1]
        source = np.minimum(np.arange(columns + 1), len(self.annotators))  # (R,) whose habits answer
        said = answers(control.habits, votes, source)
        seen = votes.has.sum(1)[:, None] - np.pad(votes.has, ((0, 0), (0, 1)))  # (B, R)
        scores = np.where((seen > 0)[..., None], control.pool(said, seen, source), said["prior"])
        column = _columns(self._index, votes.strangers)
        asked = np.array([column.get(annotator, columns) for annotator in annotators], dtype=np.int64)
        panel = np.broadcast_to(np.append(control.panel, np.zeros(len(votes.strangers), np.bool_)), votes.has.shape)
        agreed = majority(
            control.space, scores[:, :-1], votes.y, votes.has, panel, control.panel_noise,
            self.config.consensus_samples, np.zeros_like(votes.weight),
        )
        return VotesAlone(
            served=to_probabilities(control.space, scores[:, asked]),
            base_models={name: to_probabilities(control.space, array[:, asked]) for name, array in said.items()},
            consensus=control.calibration.apply(
                control.space, agreed, votes.has.sum(1), undecided(control.space, votes.y, votes.has, panel)),
        )


def _columns(known: Mapping[str, int], strangers: Sequence[str]) -> dict[str, int]:
    return {**{name: len(known) + at for at, name in enumerate(strangers)}, **known}

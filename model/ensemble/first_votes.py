"""The ladder's lowest rungs alone: answers from votes, before there is a training, or where units have no content.

    scores[b, a] = w prior[a] + (1 - w) others[b, a]   where somebody else voted on b,      prior[a] elsewhere

`prior` is the annotator prior, `others` the latent classes; w is what `GAP_WEIGHTS` gives the two before any vote has
spoken, since so few votes fit no weights. An annotator's own vote on a unit never comes back to them. No torch.

Shape legend: B units, A annotators asked for, P known annotators, E unknown givers, R = P + E + 1, C classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.config import LadderConfig
from model.dataset import Dataset, TrainingSet, build_dataset
from model.ensemble.consensus import majority
from model.ensemble.given import given_votes
from model.ensemble.latent import LatentClasses, fit_latent
from model.ensemble.prior import fit_prior
from model.ensemble.scores import to_probabilities, to_scores
from model.ensemble.stack import GAP_WEIGHTS
from model.spaces import Space
from model.votes import Votes

Floats = NDArray[np.float64]
_PRIOR_SHARE = GAP_WEIGHTS["prior"] / (GAP_WEIGHTS["prior"] + GAP_WEIGHTS["others"])


@dataclass(frozen=True, slots=True, kw_only=True)
class VotesAlone:
    """Probabilities for one control, from votes alone."""

    served: Floats  # (B, A, C)
    rungs: dict[str, Floats]  # prior, others -> (B, A, C)
    consensus: Floats  # (B, C) probability to be the majority of the whole panel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Control:
    space: Space
    prior: Floats  # (P + 1, C) scores
    latent: LatentClasses
    panel: NDArray[np.bool_]  # (P,)


class FirstVotes:
    """What the votes of a project say, fitted in milliseconds. Immutable; safe to share between threads."""

    def __init__(self, data: TrainingSet, config: LadderConfig) -> None:
        """Fit on all votes of `data`; its tokens are never asked for. Raises NotEnoughVotes when none is usable."""
        dataset = build_dataset(data, config)
        self.annotators = dataset.annotators
        self.config = config
        self._index = {name: index for index, name in enumerate(dataset.annotators)}
        self._controls = {name: _fitted(dataset, name, config) for name in dataset.controls}

    def predict(self, units: Sequence[str], annotators: Sequence[str], given: Votes) -> dict[str, VotesAlone]:
        """For B units and the annotators asked for, from the votes that the units have."""
        return {name: self._answer(name, control, units, annotators, given) for name, control in self._controls.items()}

    def _answer(
        self, name: str, control: _Control, units: Sequence[str], annotators: Sequence[str], given: Votes
    ) -> VotesAlone:
        votes = given_votes(given, name, control.space, units, self._index, self.config.echo_weight)
        columns = votes.has.shape[1]
        source = np.minimum(np.arange(columns + 1), len(self.annotators))  # (R,) whose prior and matrix answer
        others = control.latent.scores(
            votes.y, votes.has, votes.weight, giver=source[:-1], asked=np.append(np.arange(columns), -1), row=source
        )
        prior = np.broadcast_to(control.prior[source], others.shape)
        seen = votes.has.sum(1)[:, None] - np.pad(votes.has, ((0, 0), (0, 1)))  # (B, R)
        scores = np.where((seen > 0)[..., None], _PRIOR_SHARE * prior + (1.0 - _PRIOR_SHARE) * others, prior)
        column = _columns(self._index, votes.strangers)
        asked = np.array([column.get(annotator, columns) for annotator in annotators], dtype=np.int64)
        panel = np.broadcast_to(np.append(control.panel, np.zeros(len(votes.strangers), np.bool_)), votes.has.shape)
        return VotesAlone(
            served=to_probabilities(control.space, scores[:, asked]),
            rungs={rung: to_probabilities(control.space, array[:, asked])
                   for rung, array in (("prior", prior), ("others", others))},
            consensus=majority(
                control.space, scores[:, :-1], votes.y, votes.has, panel, 0.0, self.config.consensus_samples
            ),
        )


def _fitted(dataset: Dataset, name: str, config: LadderConfig) -> _Control:
    targets, people = dataset.controls[name], len(dataset.annotators)
    return _Control(
        space=targets.space, prior=to_scores(targets.space, fit_prior(targets, people, config.prior_strength)),
        latent=fit_latent(targets, people, config.confusion_strength),
        panel=np.bincount(targets.annotator, minlength=people)[:people] > 0,
    )


def _columns(known: Mapping[str, int], strangers: Sequence[str]) -> dict[str, int]:
    return {**{name: len(known) + at for at, name in enumerate(strangers)}, **known}

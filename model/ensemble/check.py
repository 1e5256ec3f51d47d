"""A ladder's consensus against majorities that are known: units that it never trained on, with some votes hidden.

What is found calibrates the consensus of a new ladder (`calibrated`) and shows people how far the confidence of a
published one is true (`checked`).

Shape legend: D units, P annotators, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Tokens
from model.data.observed_votes import observed_votes
from model.data.splits import fold_of
from model.data.votes import Votes
from model.ensemble.calibration import FROM_VERSION, fit_calibration
from model.ensemble.hidden import DenseUnits, HiddenCheck, cross_checked, with_hidden
from model.ensemble.predictor import Ladder

Floats = NDArray[np.float64]
TokensOf = Callable[[Sequence[str]], list[Tokens]]
TextsOf = Callable[[Sequence[str]], Sequence[str]]
FOLDS = 4


def calibrated(ladder: Ladder, votes: Votes, tokens: TokensOf, texts: TextsOf | None) -> Ladder:
    """The ladder with a calibration of each control, fitted on `votes` on units that it never trained on."""
    controls = {}
    for name, state in ladder.controls.items():
        raw, dense, _ = _said(ladder, name, votes, tokens, texts)
        truth = dense.truth(state.space)
        weight = np.asarray(dense.undecided(state.space).any(1), np.float64)
        found = fit_calibration(state.space, raw, dense.votes, truth, weight, FROM_VERSION)
        controls[name] = replace(state, calibration=found)
    return ladder.having(controls)


def checked(
    ladder: Ladder, name: str, votes: Votes, tokens: TokensOf, texts: TextsOf | None
) -> HiddenCheck | None:
    """What it says of units that it never trained on, calibrated by a map that was fitted on other units; None where
    none has many votes."""
    raw, dense, units = _said(ladder, name, votes, tokens, texts)
    if not units:
        return None
    state = ladder.controls[name]
    if state.calibration is None:  # of a version from before there was any
        return HiddenCheck(space=state.space, p=raw, truth=dense.truth(state.space), votes=dense.votes)
    fold = np.array([fold_of(unit, FOLDS) for unit in units])
    return cross_checked(state.space, raw, dense, fold, FROM_VERSION)


def _said(
    ladder: Ladder, name: str, votes: Votes, tokens: TokensOf, texts: TextsOf | None
) -> tuple[Floats, DenseUnits, list[str]]:
    """(D, C) the consensus among those who voted, from the votes left, as it comes; the votes; the units."""
    state, place = ladder.controls[name], {who: at for at, who in enumerate(ladder.annotators)}
    known = np.array([who in place for who in votes.annotators], np.bool_)
    inside = np.array([state.space.contains(value) for value in votes.values], np.bool_)
    rows = known[votes.annotator] & inside[votes.value] if len(votes) else np.zeros(0, np.bool_)
    every, left, units = with_hidden(votes.select(rows), name)
    raw = np.zeros((0, len(state.space.classes)))
    if units:
        raw = ladder.predict(tokens(units), (), units=units, given=left, among=every,
                             texts=texts and texts(units))[name].consensus
    given, some = (observed_votes(each, name, state.space, units, place) for each in (every, left))
    dense = DenseUnits(unit=np.arange(len(units)), y=given.y, has=given.has, left=some.has, weight=given.weight)
    return raw, dense, units

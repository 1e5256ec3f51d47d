"""Deep baselines: networks on the mean token that are trained on all votes and know who gave each.

    user-token           an embedding of the annotator          Deng et al., Findings of EMNLP 2023
    head-per-annotator   a classifier of their own              Davani et al., TACL 2022
    separate             a network of their own                 Davani et al., TACL 2022
    crowd-layer          true answer, then a matrix             Rodrigues & Pereira, AAAI 2018
    conal                the same, shared and own matrices      Chu, Ma & Wang, AAAI 2021
    madl                 the same, matrices that read content   Herde et al., TMLR 2023
    padl                 common mean, preference, error         Liao et al., 2021 (segmentation)
    d-lema               Bayesian network of each annotator     Mirikharaji et al., CVPR workshops 2021 (segmentation)

All are re-implementations of one size (`deep_models`) with one way of training: AdamW, and early stopping on a tenth
of the training units by the log-loss of votes. Nothing of it was tuned on any set. An annotator without training votes
is answered for by the mean over all others.

Shape legend: N votes, B units asked for, A annotators, D dim, G questions, K answers, C classes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.crowd_networks.annotators import CoNAL, CrowdLayer
from model.data.dataset import Targets
from model.data.spaces import ValueKind
from model.data.votes import Votes
from model.errors import ModelError, NotEnoughVotes
from model.evaluate.baselines.base import Baseline, Fitted, Floats, Fold
from model.evaluate.baselines.deep_models import (
    DLEMA,
    PADL,
    Deep,
    HeadEach,
    Layered,
    MaDL,
    Separate,
    UserToken,
)
from model.evaluate.baselines.naive import training_targets

_BATCH, _EPOCHS, _PATIENCE, _KEPT_BACK = 512, 60, 6, 0.1
_RATE, _DECAY, _BETTER = 1e-3, 1e-2, 1e-4


@dataclass(frozen=True, kw_only=True)
class DeepBaseline:
    """One of them; `build` makes its network from (annotators, dim, questions, answers)."""

    uses_visible: ClassVar[bool] = False
    name: str
    source: str
    build: Callable[[int, int, int, int], Deep]
    epochs: int = _EPOCHS

    def fit(self, fold: Fold) -> Fitted:
        """Train on the votes of a fold. Raises NotEnoughVotes without any, ModelError for features with NaN."""
        targets, features = training_targets(fold), fold.features(fold.units)
        if not np.isfinite(features).all():
            raise ModelError("the features of the training units hold NaN or infinity")
        if len(np.unique(targets.unit)) < 2:
            raise NotEnoughVotes("a network needs votes on at least two units, one to learn from and one to stop by")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(fold.seed)
            return _Training(self, fold, targets, features).run()


class _Training:
    """One fit: standardised features, votes as tensors, early stopping."""

    def __init__(
        self, baseline: DeepBaseline, fold: Fold, targets: Targets, features: NDArray[np.float32]
    ) -> None:
        self.fold, self.epochs = fold, baseline.epochs
        self.device = torch.device(fold.device)
        self.rng = np.random.default_rng(fold.seed)
        seen = features[np.unique(targets.unit)]
        self.centre, self.scale = seen.mean(0), np.maximum(seen.std(0), 1e-3)
        self.x = torch.from_numpy((features - self.centre) / self.scale).float().to(self.device)  # (U, D)
        # Anonymous votes are nobody's; the order of rows must not matter.
        order = np.lexsort((targets.annotator, targets.unit))
        order = order[targets.annotator[order] < len(fold.annotators)]
        self.unit, self.who = targets.unit[order], targets.annotator[order]
        single = fold.space.kind is ValueKind.CLASS
        self.y = targets.y[order].argmax(1)[:, None] if single else (targets.y[order] > 0.5).astype(np.int64)  # (N, G)
        self.weight = targets.weight[order]
        classes = len(fold.space.classes)
        questions, answers = (1, classes) if single else (classes, 2)
        self.network = baseline.build(len(fold.annotators), features.shape[1], questions, answers).to(self.device)

    def run(self) -> Fitted:
        units = self.rng.permutation(np.unique(self.unit))
        held = np.isin(self.unit, units[: max(1, round(_KEPT_BACK * len(units)))])
        learn, check = np.flatnonzero(~held), np.flatnonzero(held)
        optimiser = torch.optim.AdamW(self.network.parameters(), lr=_RATE, weight_decay=_DECAY)
        best, kept, worse = np.inf, copy.deepcopy(self.network.state_dict()), 0
        for _ in range(self.epochs):
            self.network.train()
            for rows in self._batches(self.rng.permutation(learn)):
                optimiser.zero_grad(set_to_none=True)
                self._loss(rows).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            loss = self._validate(check)
            worse = 0 if loss < best - _BETTER else worse + 1
            if not worse:
                best, kept = loss, copy.deepcopy(self.network.state_dict())
            if worse > _PATIENCE:
                break
        self.network.load_state_dict(kept)
        known = np.bincount(self.who, minlength=len(self.fold.annotators)) > 0
        return _FittedDeep(
            fold=self.fold, network=self.network.eval(), centre=self.centre, scale=self.scale, known=known
        )

    @torch.no_grad()
    def _validate(self, rows: NDArray[np.int64]) -> float:
        self.network.eval()
        return sum(float(self._loss(part)) * len(part) for part in self._batches(rows)) / len(rows)

    def _loss(self, rows: NDArray[np.int64]) -> Tensor:
        unit, who, y, weight = (
            torch.from_numpy(column[rows]).to(self.device) for column in (self.unit, self.who, self.y, self.weight)
        )
        return self.network.loss(self.x[unit], who, y, weight)

    @staticmethod
    def _batches(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        return [rows[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]


@dataclass(frozen=True, kw_only=True)
class _FittedDeep:
    """Answers for everybody in a few large forwards."""

    fold: Fold
    network: Deep
    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    known: NDArray[np.bool_]  # (A,) who has training votes

    @torch.no_grad()
    def predict(self, units: Sequence[str], *, visible: Votes | None) -> Floats:
        features = (self.fold.features(units) - self.centre) / self.scale
        people, device = len(self.fold.annotators), torch.device(self.fold.device)
        found = np.empty((len(units), people, self.network.questions, self.network.answers))
        size = max(1, self.network.rows // max(1, people))
        for start in range(0, len(units), size):
            x = torch.from_numpy(features[start : start + size]).float().to(device)
            who = torch.arange(people, device=device).repeat(len(x))
            p = self.network(x.repeat_interleave(people, 0), who).exp()
            found[start : start + size] = p.view(len(x), people, *p.shape[1:]).double().cpu().numpy()
        found[:, ~self.known] = found[:, self.known].mean(1, keepdims=True)
        if self.fold.space.kind is ValueKind.CLASS:
            return np.asarray(found[:, :, 0] / found[:, :, 0].sum(-1, keepdims=True))
        return np.asarray(found[..., 1])


DEEP: tuple[Baseline, ...] = (
    DeepBaseline(name="user-token", source="Deng et al., Findings of EMNLP 2023", build=UserToken),
    DeepBaseline(name="head-per-annotator", source="Davani et al., TACL 2022", build=HeadEach),
    DeepBaseline(name="separate", source="Davani et al., TACL 2022", build=Separate),
    DeepBaseline(
        name="crowd-layer", source="Rodrigues & Pereira, AAAI 2018", build=partial(Layered, layer=CrowdLayer)
    ),
    DeepBaseline(name="conal", source="Chu, Ma & Wang, AAAI 2021", build=partial(Layered, layer=CoNAL)),
    DeepBaseline(name="madl", source="Herde et al., TMLR 2023", build=MaDL),
    DeepBaseline(name="padl", source="Liao et al., 2021", build=PADL),
    DeepBaseline(name="d-lema", source="Mirikharaji et al., CVPR workshops 2021", build=DLEMA),
)

"""Learning a classifier from crowd votes on cached features: one interface for all methods.

    learn("crowd-layer", features, answers, TrainingConfig(seed=1)).classify(features)  # (B, C)

`train-<aggregate>` fits the classifier to what an aggregator of `model.crowd` says (mv: the label of the majority;
soft: shares of the votes, ds: Dawid-Skene, glad: GLAD, by their posteriors), every unit weighing the same. A tenth of
the units is kept back for early stopping, by the same loss: no method ever sees a gold label.

Shape legend: U units, B units asked for, N votes, A annotators, C classes, D dim of the features.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from model.crowd import AnswerMatrix, make
from model.crowd_networks.annotators import CoNAL, CrowdLayer
from model.errors import ModelError, NotEnoughVotes

Floats = NDArray[np.float64]
_FLOOR = 1e-6
_AGGREGATES: Mapping[str, str] = {
    "train-mv": "majority", "train-soft": "soft", "train-ds": "dawid-skene", "train-glad": "glad",
}
_LAYERS: Mapping[str, Callable[[int, int, int], nn.Module]] = {"crowd-layer": CrowdLayer, "conal": CoNAL}
METHODS = (*_AGGREGATES, *_LAYERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How the classifier is trained."""

    hidden: int = 128
    dropout: float = 0.3
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    batch: int = 512  # votes (units, where votes are aggregated first)
    epochs: int = 60
    patience: int = 6
    kept_back: float = 0.1  # of the units, for early stopping
    seed: int = 0
    device: str = "cpu"


class CrowdClassifier:
    """What was learned. Immutable."""

    def __init__(
        self, classes: tuple[str, ...], annotators: tuple[str, ...], network: nn.Module, layer: nn.Module | None,
        centre: Tensor, scale: Tensor,
    ) -> None:
        self.classes = classes
        self.annotators = annotators
        self._network = network.eval()
        self._layer = layer.eval() if layer is not None else None
        self._centre, self._scale = centre, scale

    @torch.inference_mode()
    def classify(self, features: NDArray[np.floating]) -> Floats:
        """(B, C) probabilities of the true label."""
        return self._truth(self._ready(features)).double().cpu().numpy()

    @torch.inference_mode()
    def annotator_probabilities(self, features: NDArray[np.floating]) -> Floats | None:
        """(B, A, C) probabilities of each annotator's vote; None for methods that aggregate first."""
        if self._layer is None:
            return None
        x = self._ready(features)
        p, people = self._truth(x), len(self.annotators)
        who = torch.arange(people, device=x.device).repeat(len(x))
        scores = self._layer(p.repeat_interleave(people, 0), x.repeat_interleave(people, 0), who)
        return F.softmax(scores, -1).reshape(len(x), people, -1).double().cpu().numpy()

    def _truth(self, x: Tensor) -> Tensor:
        return F.softmax(self._network(x), -1)

    def _ready(self, features: NDArray[np.floating]) -> Tensor:
        x = torch.as_tensor(np.asarray(features, np.float32), device=self._centre.device)
        if x.ndim != 2 or x.shape[1] != len(self._centre):
            raise ModelError(f"features have shape {tuple(x.shape)}; the classifier takes {len(self._centre)} columns")
        return (x - self._centre) / self._scale


def learn(
    method: str, features: NDArray[np.floating], answers: AnswerMatrix, config: TrainingConfig | None = None
) -> CrowdClassifier:
    """Learn from `features` (U, D), rows in the order of `answers.units`.

    Units without votes are left out. Raises ModelError for an unknown method, features of another length or with NaN,
    NotEnoughVotes for fewer than two units with votes or fewer than two classes.
    """
    config = config or TrainingConfig()
    if method not in METHODS:
        raise ModelError(f"no method is called {method!r}; there are {', '.join(METHODS)}")
    features = np.asarray(features, np.float32)
    if features.ndim != 2 or len(features) != len(answers.units):
        raise ModelError(f"there are {len(features)} rows of features for {len(answers.units)} units")
    if not np.isfinite(features).all():
        raise ModelError("features hold NaN or infinity")
    voted = np.flatnonzero(answers.voted)
    if len(voted) < 2 or len(answers.classes) < 2:
        raise NotEnoughVotes("a classifier needs at least two units with votes and two classes")
    return _Training(method, features, answers, voted, config).run()


class _Training:
    """One run: targets, network, early stopping."""

    def __init__(
        self, method: str, features: NDArray[np.float32], answers: AnswerMatrix, voted: NDArray[np.int64],
        config: TrainingConfig,
    ) -> None:
        self.config, self.answers = config, answers
        self.rng = np.random.default_rng(config.seed)
        device, dim, classes = torch.device(config.device), features.shape[1], len(answers.classes)
        seen = features[voted]
        self.centre = torch.as_tensor(seen.mean(0), device=device)
        self.scale = torch.as_tensor(np.maximum(seen.std(0), 1e-3), device=device)
        self.x = (torch.as_tensor(features, device=device) - self.centre) / self.scale  # (U, D)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.network = nn.Sequential(
                nn.Linear(dim, config.hidden), nn.ReLU(), nn.Dropout(config.dropout), nn.Linear(config.hidden, classes)
            ).to(device)
            make_layer = _LAYERS.get(method)
            self.layer = make_layer(len(answers.annotators), classes, dim).to(device) if make_layer else None
        kept = self.rng.permutation(voted)[: max(round(config.kept_back * len(voted)), 1)]
        self.check = np.zeros(len(features), np.bool_)
        self.check[kept] = True
        if self.layer is None:
            fitted = make(_AGGREGATES[method]).fit(answers)
            hard = np.eye(classes)[np.maximum(fitted.label, 0)]  # of a majority only the winner counts
            target = hard if method == "train-mv" else fitted.posterior
            self.target = torch.as_tensor(target, dtype=torch.float32, device=device)  # (U, C)
            self.rows = voted  # units
            self.unit = voted
        else:
            self.rows = np.arange(len(answers))  # votes
            self.unit = answers.unit.astype(np.int64)

    def run(self) -> CrowdClassifier:
        held = self.check[self.unit]
        learn_rows, check_rows = self.rows[~held], self.rows[held]
        parameters = [*self.network.parameters(), *(self.layer.parameters() if self.layer is not None else ())]
        optimiser = torch.optim.AdamW(
            parameters, lr=self.config.learning_rate, weight_decay=self.config.weight_decay
        )
        best, best_state, worse = np.inf, self._state(), 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.config.seed + 1)  # dropout
            for _ in range(self.config.epochs):
                self._epoch(learn_rows, optimiser)
                loss = self._validate(check_rows)
                if not np.isfinite(loss):
                    raise ModelError("the training diverged: try a lower learning rate")
                worse = 0 if loss < best - 1e-4 else worse + 1
                if worse == 0:
                    best, best_state = loss, self._state()
                if worse > self.config.patience:
                    break
        self.network.load_state_dict(best_state[0])
        if self.layer is not None:
            self.layer.load_state_dict(best_state[1])
        return CrowdClassifier(
            self.answers.classes, self.answers.annotators, self.network, self.layer, self.centre, self.scale
        )

    def _epoch(self, rows: NDArray[np.int64], optimiser: torch.optim.Optimizer) -> None:
        self.network.train()
        for batch in self._batches(self.rng.permutation(rows)):
            optimiser.zero_grad(set_to_none=True)
            loss = self._loss(batch)
            if self.layer is not None:
                loss = loss + self.layer.penalty()  # type: ignore[operator]
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    @torch.inference_mode()
    def _validate(self, rows: NDArray[np.int64]) -> float:
        self.network.eval()
        parts = [(float(self._loss(batch)), len(batch)) for batch in self._batches(rows)]
        return sum(loss * n for loss, n in parts) / max(sum(n for _, n in parts), 1)

    def _loss(self, rows: NDArray[np.int64]) -> Tensor:
        """Mean loss of votes (or units, where votes are aggregated first)."""
        if self.layer is None:
            x = self.x[torch.as_tensor(rows)]
            return F.cross_entropy(self.network(x), self.target[torch.as_tensor(rows)])
        answers, device = self.answers, self.x.device
        unit, who, said = (
            torch.as_tensor(column[rows].astype(np.int64), device=device)
            for column in (answers.unit, answers.annotator, answers.label)
        )
        x = self.x[unit]
        scores = self.layer(F.softmax(self.network(x), -1).clamp_min(_FLOOR), x, who)
        weight = torch.as_tensor(answers.weights[rows], dtype=torch.float32, device=device)
        loss: Tensor = (F.cross_entropy(scores, said, reduction="none") * weight).sum()
        return loss / weight.sum().clamp_min(_FLOOR)

    def _batches(self, rows: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(rows), self.config.batch):
            yield rows[start : start + self.config.batch]

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        layer = {} if self.layer is None else self.layer.state_dict()
        return copy.deepcopy(self.network.state_dict()), copy.deepcopy(layer)

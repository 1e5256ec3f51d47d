"""A ladder against votes: the probabilities it gave to each held-out vote, and figures made of them.

Only votes with `scored` count, and only on held-out units: nothing here was trained, stacked or calibrated on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.data.dataset import Dataset, Targets, Tokens, TrainingSet
from model.data.metrics import correct, log_losses, summarise
from model.data.spaces import Space, ValueKind
from model.ensemble.control import ControlPrediction
from model.ensemble.predictor import Ladder

Floats = NDArray[np.float64]
TokensOf = Callable[[Sequence[str]], list[Tokens]]
TextsOf = Callable[[Sequence[str]], Sequence[str]]
_BATCH_UNITS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Votes of one control with the probabilities that each way of predicting gave them, (n, C) each."""

    targets: Targets
    p: dict[str, Floats]  # "served" and every base model

    def losses(self, way: str) -> Floats:
        """Log-loss of each vote, (n,)."""
        return log_losses(self.targets.space, self.p[way], self.targets.y)

    def select(self, rows: NDArray[np.bool_]) -> Scored:
        """The chosen votes, mask (n,)."""
        return Scored(targets=self.targets.select(rows), p={way: p[rows] for way, p in self.p.items()})

    def losses_among(self, way: str, classes: Sequence[int]) -> Floats:
        """Log-loss of each vote where only these classes may be given; (n,).

        A distribution over classes is renormalised to them, as in serving; of several choices only theirs count. Ask
        for it only for votes that lie within them.
        """
        space, p, y = self.targets.space, self.p[way][:, classes], self.targets.y[:, classes]
        return log_losses(space, renormalised(p) if space.kind is ValueKind.CLASS else p, y)


def score_heldout(
    ladder: Ladder, dataset: Dataset, tokens: TokensOf, texts: TextsOf | None = None
) -> dict[str, Scored]:
    """control -> its scored votes on held-out units, as `ladder` (maybe an older one) predicts them.

    Controls that the ladder lacks are left out. A class that it does not know gets probability 0; what it gives to a
    class that is gone goes to the others, as in serving.
    """
    sheet = _Sheet(ladder, dataset, gaps=False)
    for batch, names in sheet.batches():
        sheet.enter(batch, ladder.predict(
            tokens(names), dataset.annotators, units=names, consensus=False, texts=texts and texts(names)
        ))
    return sheet.scored()


def score_both(ladder: Ladder, dataset: Dataset, data: TrainingSet) -> tuple[dict[str, Scored], dict[str, Scored]]:
    """The same, and once more where all votes of others on the unit are known, as for an annotator who is the only one
    missing; content is read once for both."""
    asked = {unit for unit, out in zip(dataset.units, dataset.heldout, strict=True) if out}
    theirs = np.array([unit in asked for unit in data.votes.units], dtype=np.bool_)
    given = data.votes.select(theirs[data.votes.unit])
    sheets = _Sheet(ladder, dataset, gaps=False), _Sheet(ladder, dataset, gaps=True)
    for batch, names in sheets[0].batches():
        answers = ladder.predict_both(
            data.tokens(names), dataset.annotators, units=names, given=given, texts=data.texts and data.texts(names)
        )
        for sheet, answer in zip(sheets, answers, strict=True):
            sheet.enter(batch, answer)
    return sheets[0].scored(), sheets[1].scored()


class _Sheet:
    """The votes that are scored, and the probabilities they get, entered batch by batch."""

    def __init__(self, ladder: Ladder, dataset: Dataset, *, gaps: bool) -> None:
        """With `gaps`, the base models that read votes are entered too."""
        self._ladder, self._dataset = ladder, dataset
        wanted = {name: dataset.rows(name, dataset.heldout) for name in dataset.controls}
        self._wanted = {
            name: targets.select(targets.scored) for name, targets in wanted.items()
            if name in ladder.controls and ladder.controls[name].space.kind is targets.space.kind
        }
        self._p: dict[str, dict[str, Floats]] = {
            name: {way: np.zeros(targets.y.shape) for way in ("served", *ladder.base_models(name, observed=gaps))}
            for name, targets in self._wanted.items()
        }

    def batches(self) -> Iterator[tuple[NDArray[np.int64], list[str]]]:
        """Units with scored votes: their sorted indices, and their names."""
        units = np.unique(np.concatenate([part.unit for part in self._wanted.values()] or [np.empty(0, np.int64)]))
        for start in range(0, len(units), _BATCH_UNITS):
            batch = units[start : start + _BATCH_UNITS]
            yield batch, [self._dataset.units[u] for u in batch]

    def enter(self, batch: NDArray[np.int64], answer: Mapping[str, ControlPrediction]) -> None:
        """Enter what was answered about a batch."""
        for name, targets in self._wanted.items():
            here = np.flatnonzero(np.isin(targets.unit, batch))
            at = (np.searchsorted(batch, targets.unit[here]), targets.annotator[here])
            old, new = common_classes(self._ladder.controls[name].space, targets.space)
            every = {"served": answer[name].served, **answer[name].base_models}
            for way, p in self._p[name].items():
                common = np.asarray(every[way][at][:, old], dtype=np.float64)
                single = targets.space.kind is ValueKind.CLASS
                p[here[:, None], new] = renormalised(common) if single else common

    def scored(self) -> dict[str, Scored]:
        return {name: Scored(targets=targets, p=self._p[name]) for name, targets in self._wanted.items()}


def renormalised(p: Floats) -> Floats:
    """Rows that sum to 1, (n, C); a row without any mass is spread evenly."""
    total = p.sum(-1, keepdims=True)
    return np.asarray(np.divide(p, total, out=np.full_like(p, 1.0 / max(p.shape[-1], 1)), where=total > 0.0))


def common_classes(old: Space, new: Space) -> tuple[list[int], list[int]]:
    """Positions of the classes that both spaces have."""
    pairs = [(old.classes.index(label), index) for index, label in enumerate(new.classes) if label in old.classes]
    return [a for a, _ in pairs], [b for _, b in pairs]


def summaries(scored: Scored) -> dict[str, Any]:
    """way -> metrics; JSON-able."""
    targets = scored.targets
    return {way: summarise(targets.space, p, targets.y, targets.annotator) for way, p in scored.p.items()}


def by_annotator(scored: Scored, annotators: Sequence[str], most: int = 400) -> dict[str, list[float]]:
    """annotator -> [votes, accuracy and log-loss of what is served, log-loss of their frequencies], of those with most
    votes; JSON-able and short, since every version keeps it."""
    targets, people = scored.targets, len(annotators)
    count = np.bincount(targets.annotator, minlength=people)[:people]
    columns = (correct(targets.space, scored.p["served"], targets.y).astype(np.float64), scored.losses("served"),
               scored.losses("prior"))
    means = [np.bincount(targets.annotator, each, people)[:people] / np.maximum(count, 1) for each in columns]
    chosen = [at for at in np.argsort(-count, kind="stable")[:most].tolist() if count[at]]
    return {annotators[at]: [int(count[at]), *(round(float(each[at]), 4) for each in means)] for at in chosen}

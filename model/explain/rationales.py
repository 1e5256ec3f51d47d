"""Agreement of token weights with what annotators marked as their reasons.

    AUC = P(weight of a marked token > weight of an unmarked one) + P(equal) / 2

0.5 is chance. A mark is a passage of text; a token is marked when it overlaps one. Where a passage occurs several times
all occurrences count, since annotators give its words and not its place.

Shape legend: T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def marked_tokens(text: str, spans: NDArray[np.integer], passages: Sequence[str]) -> NDArray[np.bool_]:
    """Which tokens, at `spans` (T, 2) from (inclusive) to (exclusive) in the text, overlap a passage; (T,)."""
    inside = np.zeros(len(text) + 1, dtype=bool)
    for passage in passages:
        at = text.find(passage) if passage else -1
        while at >= 0:
            inside[at : at + len(passage)] = True
            at = text.find(passage, at + 1)
    total = np.concatenate([[0], np.cumsum(inside)])
    return np.asarray(total[spans[:, 1]] > total[spans[:, 0]])


def token_auc(weights: Floats, marked: NDArray[np.bool_]) -> float:
    """Of weights (T,) against marks (T,); NaN where all tokens are marked or none is."""
    positive = int(marked.sum())
    negative = len(marked) - positive
    if not positive or not negative:
        return float("nan")
    ranks = rankdata(weights)
    return float((ranks[marked].sum() - positive * (positive + 1) / 2) / (positive * negative))

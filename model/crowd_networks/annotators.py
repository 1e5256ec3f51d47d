"""What stands between the classifier and the votes: how each annotator turns the true label into theirs.

    CrowdLayer   s_a = W_a p(x),  W_a = I at the start; votes ~ softmax(s_a)
                 (Rodrigues & Pereira, AAAI 2018, doi 10.1609/aaai.v32i1.11506; the variant with a matrix an annotator)
    CoNAL        s_a = w V p(x) + (1 - w) W_a p(x),  w = sigmoid(u_a . v(x)): a confusion that all share and one of the
                 annotator's own, weighed by who it is and what they see; the own ones are kept away from the shared one
                 (Chu, Ma & Wang, AAAI 2021, doi 10.1609/aaai.v35i7.16730)

Both are as in the papers but for their size. After training only the classifier's p(x) is needed for true labels.

Shape legend: N votes, A annotators, C classes, D dim of the features, E width of the embeddings.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class CrowdLayer(nn.Module):
    """One matrix an annotator."""

    def __init__(self, annotators: int, classes: int, dim: int) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.eye(classes).repeat(annotators, 1, 1))  # (A, C, C)

    def forward(self, p: Tensor, x: Tensor, annotator: Tensor) -> Tensor:
        """Scores (N, C) of the votes of `annotator` (N,), from p (N, C) and features x (N, D)."""
        return torch.einsum("nkc,nc->nk", self.own[annotator], p)

    def penalty(self) -> Tensor:
        """Nothing: the start at the identity (and the optimiser's decay) is all that holds the matrices."""
        return self.own.new_zeros(())


class CoNAL(nn.Module):
    """A shared and an own confusion, weighed vote by vote."""

    def __init__(self, annotators: int, classes: int, dim: int, *, width: int = 20, apart: float = 1e-5) -> None:
        super().__init__()
        self.common = nn.Parameter(2.0 * torch.eye(classes))  # (C, C)
        self.own = nn.Parameter(2.0 * torch.eye(classes).repeat(annotators, 1, 1))  # (A, C, C)
        self.who = nn.Parameter(torch.randn(annotators, width) / width**0.5)  # (A, E)
        self.what = nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, width))
        self.apart = apart

    def forward(self, p: Tensor, x: Tensor, annotator: Tensor) -> Tensor:
        """As in `CrowdLayer`."""
        seen, who = F.normalize(self.what(x), dim=-1), F.normalize(self.who, dim=-1)[annotator]
        w = torch.sigmoid((seen * who).sum(-1, keepdim=True))  # (N, 1)
        shared = p @ self.common.T
        own = torch.einsum("nkc,nc->nk", self.own[annotator], p)
        return w * shared + (1.0 - w) * own

    def penalty(self) -> Tensor:
        """The further the own matrices are from the shared one, the lower."""
        distance = (self.own - self.common).square().sum(dim=(1, 2))  # 0 at the start, where a root has no slope
        return -self.apart * (distance + 1e-6).sqrt().sum()

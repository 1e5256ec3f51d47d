"""The networks of the deep baselines: what an annotator says of a unit, from its features and who it is.

Re-implementations for classification on cached features, not the authors' code; where a paper is about segmentation or
images, its idea is carried over and the class says what was left out. All share one trunk: a hidden layer with dropout.
A single choice is one question with C answers; several choices are C questions with the answers no and yes.

Shape legend: n rows (a unit and an annotator each), A annotators, D dim, H hidden, E embedding, G questions, K answers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from model.crowd_networks.annotators import CoNAL, CrowdLayer

HIDDEN, DROPOUT, EMBEDDING = 128, 0.3, 16
_FLOOR = 1e-6


class Trunk(nn.Module):
    """Features to scores that everybody shares, and the hidden layer below them."""

    def __init__(self, dim: int, questions: int, answers: int) -> None:
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(dim, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT))
        self.out = nn.Linear(HIDDEN, questions * answers)
        self.shape = (questions, answers)

    def scores(self, h: Tensor) -> Tensor:
        """(n, H) -> (n, G, K)."""
        return cast(Tensor, self.out(h)).view(len(h), *self.shape)


class Deep(nn.Module, ABC):
    """An annotator model: log-probabilities of the answers of rows of units and annotators."""

    rows = 20_000  # at most so many at once when everybody is asked

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__()
        self.annotators, self.dim, self.questions, self.answers = annotators, dim, questions, answers

    @abstractmethod
    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        """(n, D) and (n,) -> (n, G, K), log-probabilities."""

    def loss(self, x: Tensor, who: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        """Mean loss of votes y (n, G) with weights (n,): their negative log-likelihood, nats."""
        return (-self._chosen(self(x, who), y) * weight).sum() / weight.sum().clamp_min(_FLOOR)

    def _log_p(self, scores: Tensor) -> Tensor:
        """Scores (n, G K) to log-probabilities."""
        return F.log_softmax(scores.view(len(scores), self.questions, self.answers), -1)

    @staticmethod
    def _chosen(log_p: Tensor, y: Tensor) -> Tensor:
        return log_p.gather(-1, y[..., None]).sum((-1, -2))


class UserToken(Deep):
    """The hidden layer plus an embedding of the annotator, one classifier for all."""

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.trunk = Trunk(dim, questions, answers)
        self.who = nn.Parameter(torch.randn(annotators, HIDDEN) / math.sqrt(HIDDEN))
        self.mix = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT))

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        return F.log_softmax(self.trunk.scores(self.mix(self.trunk.hidden(x) + self.who[who])), -1)


class HeadEach(Deep):
    """A shared hidden layer, a classifier of its own for each annotator."""

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.trunk = Trunk(dim, questions, answers)
        self.own = nn.Parameter(torch.randn(annotators, HIDDEN, questions * answers) / math.sqrt(HIDDEN))
        self.bias = nn.Parameter(torch.zeros(annotators, questions * answers))

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        scores = torch.einsum("nh,nhk->nk", self.trunk.hidden(x), self.own[who]) + self.bias[who]
        return self._log_p(scores)


class Separate(Deep):
    """A network of its own for each annotator, narrower since it has fewer votes."""

    rows = 1_000
    width = 32

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.into = nn.Parameter(torch.randn(annotators, dim, self.width) / math.sqrt(dim))
        self.into_bias = nn.Parameter(torch.zeros(annotators, self.width))
        self.out = nn.Parameter(torch.randn(annotators, self.width, questions * answers) / math.sqrt(self.width))
        self.bias = nn.Parameter(torch.zeros(annotators, questions * answers))
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        return self._answer(self.drop(self._hidden(x, who)), who)

    def _hidden(self, x: Tensor, who: Tensor) -> Tensor:
        return F.relu(torch.einsum("nd,ndh->nh", x, self.into[who]) + self.into_bias[who])

    def _answer(self, h: Tensor, who: Tensor) -> Tensor:
        return self._log_p(torch.einsum("nh,nhk->nk", h, self.out[who]) + self.bias[who])


class Layered(Deep):
    """A classifier of the true answer, then a layer that turns it into the annotator's: CrowdLayer or CoNAL."""

    def __init__(
        self, annotators: int, dim: int, questions: int, answers: int, *, layer: type[CrowdLayer] | type[CoNAL]
    ) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.trunk = Trunk(dim, questions, answers)
        self.layer = layer(annotators * questions, answers, dim)

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        p = F.softmax(self.trunk.scores(self.trunk.hidden(x)), -1).clamp_min(_FLOOR)
        question = torch.arange(self.questions, device=x.device)
        person = (who[:, None] * self.questions + question).flatten()  # an annotator confuses each question otherwise
        again = x if self.questions == 1 else x.repeat_interleave(self.questions, 0)
        return F.log_softmax(self.layer(p.flatten(0, 1), again, person), -1).view(p.shape)

    def loss(self, x: Tensor, who: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        return super().loss(x, who, y, weight) + (self.layer.penalty() if self.training else 0.0)


class MaDL(Deep):
    """A classifier of the true answer and a confusion matrix that depends on the annotator and on what they see.

    P(vote l) = sum_k p_k(x) C_kl(x, a). Annotators who resemble many others weigh less: w_a is one over the density of
    their embeddings under a Gaussian kernel. Its width is 1 here; the paper learns it under a Gamma prior.
    """

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.trunk = Trunk(dim, questions, answers)
        self.who = nn.Parameter(torch.randn(annotators, EMBEDDING) / math.sqrt(EMBEDDING))
        self.seen = nn.Linear(HIDDEN, EMBEDDING)
        self.confuse = nn.Sequential(
            nn.Linear(3 * EMBEDDING, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, questions * answers * answers)
        )
        self.register_buffer("start", 2.0 * torch.eye(answers).expand(questions, -1, -1))

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        h = self.trunk.hidden(x)
        seen, person = torch.tanh(self.seen(h.detach())), self.who[who]  # the performance model does not shape h
        scores = self.confuse(torch.cat([seen, person, seen * person], -1))
        matrix = F.log_softmax(scores.unflatten(-1, (self.questions, self.answers, self.answers)) + self.start, -1)
        return torch.logsumexp(F.log_softmax(self.trunk.scores(h), -1)[..., None] + matrix, -2)

    def loss(self, x: Tensor, who: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        if not self.training:
            return super().loss(x, who, y, weight)
        density = torch.exp(-0.5 * torch.cdist(self.who, self.who).square()).sum(1).detach()  # (A,)
        rare = 1.0 / density
        return super().loss(x, who, y, weight * (rare / rare.mean())[who])


class PADL(Deep):
    """What all say, an annotator's preference on top, and a Gaussian error of the scores that is sampled in training.

    The paper segments images; carried over are the two estimators (of the common mean with its error, of each
    annotator's preference with theirs) and the two losses (of the vote, and of the common part).
    """

    common_share = 0.5

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        self.trunk = Trunk(dim, questions, answers)
        size = questions * answers
        self.preference = nn.Parameter(torch.randn(annotators, HIDDEN, size) * (0.1 / math.sqrt(HIDDEN)))
        self.bias = nn.Parameter(torch.zeros(annotators, size))
        self.spread = nn.Linear(HIDDEN, 2 * size)  # log standard deviations of the common part and of the preference
        nn.init.constant_(self.spread.bias, -2.0)

    def _parts(self, x: Tensor, who: Tensor) -> tuple[Tensor, Tensor]:
        h = self.trunk.hidden(x)
        common = self.trunk.out(h)
        own = torch.einsum("nh,nhk->nk", h, self.preference[who]) + self.bias[who]
        if self.training:
            wide, narrow = self.spread(h).clamp(max=2.0).exp().chunk(2, -1)
            common = common + wide * torch.randn_like(common)
            own = own + narrow * torch.randn_like(own)
        shape = (self.questions, self.answers)
        return common.unflatten(-1, shape), (common + own).unflatten(-1, shape)

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        return F.log_softmax(self._parts(x, who)[1], -1)

    def loss(self, x: Tensor, who: Tensor, y: Tensor, weight: Tensor) -> Tensor:
        if not self.training:
            return super().loss(x, who, y, weight)
        common, own = (self._chosen(F.log_softmax(part, -1), y) for part in self._parts(x, who))
        return (-(own + self.common_share * common) * weight).sum() / weight.sum().clamp_min(_FLOOR)


class DLEMA(Separate):
    """Bayesian networks of single annotators: dropout stays on when they are asked, and several passes are averaged.

    What is dropped in each pass is drawn once, so that an answer does not depend on what else is asked.
    The paper fuses them by their confidence into one segmentation; here a network answers for its own annotator. Its
    handling of pixels on which annotators contradict each other has no counterpart where each sees one label a unit.
    """

    passes = 10
    masks: Tensor  # (passes, A, width)

    def __init__(self, annotators: int, dim: int, questions: int, answers: int) -> None:
        super().__init__(annotators, dim, questions, answers)
        kept = torch.rand(self.passes, annotators, self.width) >= DROPOUT
        self.register_buffer("masks", kept.float() / (1.0 - DROPOUT))

    def forward(self, x: Tensor, who: Tensor) -> Tensor:
        if self.training:
            return super().forward(x, who)
        h = self._hidden(x, who)
        passes = torch.stack([self._answer(h * mask[who], who) for mask in self.masks])
        return torch.logsumexp(passes, 0) - math.log(self.passes)


"""Votes for ordered classes stand a little for their neighbours, in the network's loss and nowhere else."""

import pytest
import torch

from model.data.numbers import number_bins
from model.data.spaces import SingleChoice, Value
from model.qumab.training import vote_losses

NAMES = ("1", "2", "3", "4", "5")
STARS, PLAIN = SingleChoice(NAMES, ordered=True), SingleChoice(NAMES)


def vote(place: int) -> torch.Tensor:
    return torch.eye(5)[place][None]


def test_a_near_miss_costs_less_than_a_far_one():
    sure = torch.tensor([[0.0, 8.0, 0.0, 0.0, 0.0]])
    near, far = torch.tensor([[0.0, 0.0, 8.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, 0.0, 0.0, 8.0]])
    right, close, wide = (float(vote_losses(STARS, logits, vote(1))) for logits in (sure, near, far))
    assert right < close < wide
    assert float(vote_losses(PLAIN, near, vote(1))) == pytest.approx(float(vote_losses(PLAIN, far, vote(1))))


def test_the_best_answer_is_the_vote_and_a_little_of_its_neighbours():
    logits = torch.zeros(1, 5, requires_grad=True)
    optimiser = torch.optim.LBFGS([logits], max_iter=200)

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = vote_losses(STARS, logits, vote(2)).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    p = torch.softmax(logits.detach(), -1)[0]
    assert p[2] > 0.9 and 0.02 < p[1] < 0.05 and torch.allclose(p[1], p[3], atol=1e-4) and p[0] < p[1] / 10


def test_plain_classes_and_bins_of_numbers_are_learned_as_they_are():
    bins = number_bins({Value.of_number(float(n)): 1 for n in range(5)})
    logits = torch.randn(1, 5, generator=torch.Generator().manual_seed(0))
    expected = -torch.log_softmax(logits, -1)[0, 3]
    for space in (PLAIN, bins):
        assert torch.allclose(vote_losses(space, logits, vote(3))[0], expected)

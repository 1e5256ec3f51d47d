import numpy as np
import pytest
import torch

from model.errors import ModelError
from model.qumab.fast_step import TrainStep
from model.qumab.resident import ResidentFeatures, StreamedFeatures, place, shuffled

CPU = torch.device("cpu")


def _features():
    tokens = torch.randn(7, 3, 4, generator=torch.Generator().manual_seed(0))
    hidden = torch.zeros(7, 3)
    hidden[2, 1:] = -torch.inf
    return tokens, hidden


def test_streamed_and_resident_features_are_the_same():
    tokens, hidden = _features()
    order = [torch.tensor([3, 1]), torch.tensor([6, 2])]
    ways = [ResidentFeatures(tokens, hidden, CPU), StreamedFeatures(tokens, hidden, CPU, 2)]
    found = [list(way.batches(order)) for way in ways]
    for (rows, one), (others, two), expected in zip(*found, order, strict=True):
        assert torch.equal(rows, expected) and torch.equal(others, expected)
        assert torch.equal(one.gathered(), two.gathered()) and torch.equal(one.gathered(), tokens[expected])
        assert torch.equal(one.hidden, two.hidden)


def test_features_with_nan_are_refused():
    tokens, hidden = _features()
    tokens[4, 2, 3] = torch.nan
    with pytest.raises(ModelError, match=r"1 tasks hold NaN or infinity.*task 4"):
        place(tokens, hidden, CPU, largest=2)
    assert place(_features()[0], hidden, CPU, largest=2).tasks == 7


def test_batches_are_whole_and_each_task_comes_once_an_epoch():
    batches = list(shuffled(7, 3, 3, seed=1))
    assert [len(rows) for rows in batches] == [3] * 7
    assert np.array_equal(np.sort(torch.cat(batches).numpy()), np.sort(np.tile(np.arange(7), 3)))


def test_a_step_descends_and_sums_its_losses():
    tokens, hidden = _features()
    weight = torch.nn.Parameter(torch.zeros(4))
    target = tokens.mean(1) @ torch.tensor([1.0, -2.0, 0.5, 0.0])

    def loss(rows, reading):
        return (reading.gathered().mean(1) @ weight - target[rows]).square().mean()

    step = TrainStep(loss, [weight], learning_rate=0.05, weight_decay=0.0, clip=1.0)
    rows, reading = next(ResidentFeatures(tokens, hidden, CPU).batches([torch.arange(7)]))
    step(rows, reading)
    first = step.take_total()
    assert first == pytest.approx(float(target.square().mean()), rel=1e-5)
    for _ in range(100):
        step(rows, reading)
    assert step.take_total() / 100 < first / 2
    assert step.take_total() == 0.0

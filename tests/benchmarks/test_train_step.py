import torch

from benchmarks.train_step_report import summary
from benchmarks.train_work import ANNOTATORS, CLASSES, CONTROLS, Ours, Plain, operations
from model.qumab.folded import Reading
from model.qumab.qformer_layers import QFormerShape

SHAPE = QFormerShape(width=24, heads=3, layers=3, inner=48, token_width=20, dropout=0.0)


def test_both_train_the_same_function():
    torch.manual_seed(0)
    plain, ours = Plain(SHAPE), Ours(SHAPE)
    ours.copy(plain)
    tokens = torch.randn(4, 6, 20)
    votes = torch.randint(-1, CLASSES, (4, ANNOTATORS, CONTROLS))
    votes[0] = 0  # each head has a vote; without any, a mean over nothing is not a number
    one, two = plain(tokens, votes), ours(Reading.of(tokens, torch.zeros(4, 6)), votes)
    torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-6)
    left, right = torch.autograd.grad(one, plain.queries)[0], torch.autograd.grad(two, ours.queries)[0]
    torch.testing.assert_close(left, right[0], rtol=1e-4, atol=1e-6)


def test_operations_of_one_layer_by_hand():
    """One layer of width 1 with one head: ten queries, three tokens of width two."""
    shape = QFormerShape(width=1, heads=1, layers=1, inner=4, token_width=2)
    heads = 2 * 10 * CONTROLS * CLASSES
    feed_forward = 2 * (2 * 10 * 4)
    tokens_folded = 2 * (2 * 10 * 3 * 2)
    others = heads + feed_forward + 2 * 10 * 2 + 2 * 10  # values of what was read, output; the rest is once a batch
    assert operations(shape, 3, folded=True) == {
        "forward": tokens_folded + others, "step": 2 * tokens_folded + 3 * others
    }
    tokens_projected = 2 * (2 * 3 * 2)
    others = heads + feed_forward + 2 * (2 * 10 * 3) + 2 * 10
    assert operations(shape, 3, folded=False) == {
        "forward": tokens_projected + others, "step": 2 * tokens_projected + 3 * others
    }


def test_summary_compares_the_best_of_each_and_judges_by_the_floor():
    rows = [
        {"name": "plain loop", "batch": 8, "images_per_s": 10.0},
        {"name": "plain loop", "batch": 16, "images_per_s": 8.0},
        {"name": "ours, eager", "batch": 8, "images_per_s": 30.0},
        {"name": "ours, compiled streamed", "batch": 16, "images_per_s": 99.0},
    ]
    settings = {"width": 768, "heads": 12, "layers": 12, "token_width": 1408, "tokens": 257}
    step = operations(QFormerShape(), 257, folded=True)["step"]
    peaks = {"operations_per_s": 100.0 * step, "bytes_per_s": 1e18}
    found = summary({"rows": rows, "settings": settings, "peaks": peaks, "parameters": 10})
    assert found["ratio"] == 3.0 and found["ratio by batch"] == {"8": 3.0}
    assert found["cheaper order"] == "folded" and abs(found["share of floor"] - 0.3) < 1e-9
    assert found["targets"] == {"ratio at least 5": False, "share of floor at least 25 %": True}

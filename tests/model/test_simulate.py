import numpy as np
import pytest

from model.data.spaces import ValueKind
from model.errors import ModelError
from model.simulate import simulate_annotators


def _votes(simulated):
    return sorted(zip(simulated.votes.unit, simulated.votes.annotator, simulated.votes.value, strict=True))


def test_same_seed_same_project():
    first, second = (simulate_annotators(np.random.default_rng(3), units=30) for _ in range(2))
    assert _votes(first) == _votes(second)
    assert all(np.array_equal(first.tokens[unit], second.tokens[unit]) for unit in first.tokens)
    assert _votes(first) != _votes(simulate_annotators(np.random.default_rng(4), units=30))


def test_content_matters_only_when_asked_for():
    reacting = simulate_annotators(np.random.default_rng(0), units=400, annotators=3)
    ignoring = simulate_annotators(np.random.default_rng(0), units=400, annotators=3, content=False)
    assert reacting.probabilities.std(0).min() > 0.1
    assert ignoring.probabilities.std(0).max() < 1e-9


def test_votes_follow_the_probabilities():
    simulated = simulate_annotators(np.random.default_rng(1), units=4000, annotators=2, classes=("a", "b", "c"))
    votes = simulated.votes
    for annotator in range(2):
        share = np.bincount(votes.value[votes.annotator == annotator], minlength=3) / 4000
        np.testing.assert_allclose(share, simulated.probabilities[:, annotator].mean(0), atol=0.03)


def test_coverage_and_multiple_choice():
    simulated = simulate_annotators(np.random.default_rng(2), units=500, annotators=4, coverage=0.25, multiple=True)
    assert 400 < len(simulated.votes) < 600
    assert simulated.space.kind is ValueKind.CLASSES
    assert any(value.data == () for value in simulated.votes.values)


@pytest.mark.parametrize("wrong", [{"coverage": 0.0}, {"units": 0}, {"classes": ()}])
def test_impossible_projects(wrong):
    with pytest.raises(ModelError):
        simulate_annotators(np.random.default_rng(0), **wrong)

"""Every method on one contract, and what learning annotators is for: a crowd with bad annotators."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from model.crowd import AnswerMatrix
from model.crowd_networks import METHODS, CrowdClassifier, TrainingConfig, learn
from model.errors import ModelError, NotEnoughVotes

torch.set_num_threads(1)
QUICK = TrainingConfig(hidden=32, epochs=40, batch=256, learning_rate=5e-3)


def world(seed: int, *, units: int = 400, classes: int = 3) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Features whose true label is readable, and the label."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=units)
    centres = rng.normal(size=(classes, 8)) * 1.5
    return (centres[truth] + rng.normal(size=(units, 8))).astype(np.float32), truth


def crowd(truth: NDArray[np.int64], seed: int, *, inverters: int = 0, sound: int = 3) -> AnswerMatrix:
    """Three votes a unit by sound annotators; inverters vote on everything and shift every class by one."""
    rng = np.random.default_rng(seed)
    rows = []
    for unit, label in enumerate(truth.tolist()):
        for who in range(sound + inverters):
            if who < sound and rng.random() < 0.5:
                continue
            said = label if rng.random() < 0.8 else int(rng.integers(3))
            rows.append((unit, who, (said + 1) % 3 if who >= sound else said))
    unit, annotator, label = (np.array(column) for column in zip(*rows, strict=True))
    return AnswerMatrix.from_codes(
        units=tuple(f"u{n}" for n in range(len(truth))), annotators=tuple(f"a{n}" for n in range(sound + inverters)),
        classes=("x", "y", "z"), unit=unit, annotator=annotator, label=label,
    )


def accuracy(fitted: CrowdClassifier, features: NDArray[np.float32], truth: NDArray[np.int64]) -> float:
    return float((fitted.classify(features).argmax(1) == truth).mean())


@pytest.mark.parametrize("method", METHODS)
def test_contract(method: str) -> None:
    features, truth = world(0)
    answers = crowd(truth, 1)
    fitted = learn(method, features[:300], answers.take_units(np.arange(len(truth)) < 300), QUICK)
    p = fitted.classify(features[300:])
    assert p.shape == (100, 3) and np.allclose(p.sum(1), 1.0) and accuracy(fitted, features[300:], truth[300:]) > 0.8
    people = fitted.annotator_probabilities(features[300:])
    if people is not None:
        assert people.shape == (100, 3, 3) and np.allclose(people.sum(2), 1.0, atol=1e-6)
    assert (people is None) == method.startswith("train-")


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_classifier_and_leaves_torch_alone(method: str) -> None:
    features, truth = world(2, units=80)
    answers = crowd(truth, 3)
    quick = TrainingConfig(hidden=16, epochs=4)
    before = torch.random.get_rng_state()
    first, second = (learn(method, features, answers, quick).classify(features) for _ in range(2))
    assert np.array_equal(first, second) and torch.equal(before, torch.random.get_rng_state())
    other = learn(method, features, answers, TrainingConfig(hidden=16, epochs=4, seed=1)).classify(features)
    assert not np.array_equal(first, other)


def test_learning_annotators_is_better_than_the_majority_where_many_are_wrong_the_same_way() -> None:
    features, truth = world(4, units=500)
    answers = crowd(truth, 5, sound=4, inverters=2)
    majority, together = (learn(method, features, answers, QUICK) for method in ("train-mv", "crowd-layer"))
    assert accuracy(together, features, truth) > accuracy(majority, features, truth) + 0.05


def test_every_method_is_a_method_of_its_own() -> None:
    features, truth = world(9, units=120)
    answers = crowd(truth, 10)
    quick = TrainingConfig(hidden=16, epochs=4)
    found = {learn(method, features, answers, quick).classify(features).tobytes() for method in METHODS}
    assert len(found) == len(METHODS)


@pytest.mark.parametrize("method", ["crowd-layer", "conal"])
def test_votes_weigh_what_they_weigh(method: str) -> None:
    features, truth = world(11, units=200)
    answers = crowd(truth, 12)
    lying = answers.annotator == 0
    liars = dataclasses.replace(answers, label=np.where(lying, (answers.label + 1) % 3, answers.label).astype(np.int32))
    hushed = dataclasses.replace(liars, weight=np.where(lying, 1e-6, 1.0))
    quick = TrainingConfig(hidden=16, epochs=8)
    loud, quiet = (learn(method, features, each, quick).classify(features) for each in (liars, hushed))
    assert not np.allclose(loud, quiet, atol=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_odd_crowds(method: str) -> None:
    features, truth = world(6, units=30)
    lonely = AnswerMatrix.from_codes(
        units=tuple(f"u{n}" for n in range(30)), annotators=("one", "once"), classes=("x", "y", "z"),
        unit=np.array([*range(20), 3]), annotator=np.array([0] * 20 + [1]), label=np.array([*(truth[:20] % 2), 1]),
    )  # ten units without votes, somebody with one vote, a class that nobody gave
    p = learn(method, features, lonely, TrainingConfig(hidden=8, epochs=3)).classify(features)
    assert np.isfinite(p).all()


def test_what_cannot_be_learned_is_an_error_with_a_sentence() -> None:
    features, truth = world(7, units=20)
    answers = crowd(truth, 8)
    with pytest.raises(ModelError, match="no method"):
        learn("magic", features, answers)
    with pytest.raises(ModelError, match="19 rows of features for 20 units"):
        learn("conal", features[:19], answers)
    with pytest.raises(ModelError, match="NaN"):
        learn("conal", np.full_like(features, np.nan), answers)
    with pytest.raises(NotEnoughVotes):
        learn("train-mv", features, answers.select(np.zeros(len(answers), np.bool_)))
    with pytest.raises(ModelError, match="takes 8 columns"):
        learn("train-mv", features, answers, TrainingConfig(epochs=1)).classify(features[:, :3])

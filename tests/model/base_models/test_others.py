"""The base model `others`: Dawid-Skene from everybody else's votes."""

import numpy as np
import pytest

from model.base_models.base import Batch, Sample
from model.base_models.others import LatentClasses, fit_latent
from model.data.dataset import Targets
from model.data.observed_votes import ObservedVotes
from model.data.scores import to_probabilities
from model.data.spaces import MultipleChoice, SingleChoice

SPACE = SingleChoice(("x", "y"))
RIGHT, WRONG = [[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]
MODEL = LatentClasses(
    space=SPACE, prior=np.array([[0.6, 0.4]]), confusion=np.array([[RIGHT], [WRONG], [[[0.5, 0.5], [0.5, 0.5]]]])
)


def _targets(space, unit, annotator, y, weight=None):
    n = len(unit)
    return Targets(
        space=space, unit=np.asarray(unit), annotator=np.asarray(annotator), y=np.asarray(y, np.float32),
        weight=np.ones(n, np.float32) if weight is None else np.asarray(weight, np.float32), scored=np.ones(n, bool),
    )


def _batch(y, has, trust=None):
    weight = np.ones(has.shape) if trust is None else np.asarray(trust)
    return Batch(source=np.arange(has.shape[1] + 1), votes=ObservedVotes(y=y, has=has, weight=weight))


def _scores(y, has, trust=None):
    y, has = np.asarray(y, np.float32), np.asarray(has)
    return to_probabilities(SPACE, MODEL.scores(_batch(y, has, trust)))


def test_by_hand():
    found = _scores([[[1, 0], [0, 1]]], [[True, True]])
    believed = np.array([0.6 * 0.7, 0.4 * 0.4])  # from annotator 1's "y" alone
    np.testing.assert_allclose(found[0, 0], believed / believed.sum() @ np.array(RIGHT))
    believed = np.array([0.6 * 0.9, 0.4 * 0.2])  # from annotator 0's "x" alone
    np.testing.assert_allclose(found[0, 1], believed / believed.sum() @ np.array(WRONG))


def test_without_votes_it_is_the_class_prior_through_the_matrix():
    found = _scores(np.zeros((1, 2, 2)), np.zeros((1, 2), bool))
    np.testing.assert_allclose(found[0, 0], [0.6 * 0.9 + 0.4 * 0.2, 0.6 * 0.1 + 0.4 * 0.8])


def test_an_echo_says_less():
    y, has = [[[1, 0], [0, 1]]], [[True, True]]
    nothing = _scores(y, [[False, True]])
    assert nothing[0, 1, 0] < 0.5
    gaps = [abs(_scores(y, has, [[trust, 1.0]])[0, 1] - nothing[0, 1]).max() for trust in (1e-9, 0.3, 1.0)]
    assert gaps[0] < 1e-6 < gaps[1] < gaps[2]


@pytest.mark.parametrize("space", [SingleChoice(("a", "b", "c")), MultipleChoice(("p", "q"))])
def test_dense_and_single_votes_agree(space):
    rng = np.random.default_rng(0)
    units, people, classes = 40, 5, len(space.classes)
    said = rng.integers(0, classes, (units, people))
    y = np.eye(classes)[said] if isinstance(space, SingleChoice) else rng.integers(0, 2, (units, people, classes))
    unit, annotator = (axis.ravel() for axis in np.indices((units, people)))
    targets = _targets(space, unit, annotator, y.reshape(-1, classes))
    model = fit_latent(targets, people, 4.0)
    visible = rng.random(len(unit)) < 0.5
    has = visible.reshape(units, people)
    dense = model.scores(_batch(y.astype(np.float32), has))[:, :-1]
    single = model.votes(Sample(targets=targets, people=people, visible=visible))
    np.testing.assert_allclose(single.reshape(dense.shape), dense)
    np.testing.assert_allclose(model.confusion.sum(-1), 1.0)


def test_it_finds_who_says_the_opposite():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    said = np.stack([np.where(rng.random(300) < 0.9, truth, 1 - truth) for _ in range(4)], 1)
    said[:, 3] = 1 - said[:, 3]
    unit, annotator = (axis.ravel() for axis in np.indices(said.shape))
    model = fit_latent(_targets(SPACE, unit, annotator, np.eye(2)[said.ravel()]), 4, 4.0)
    y, has = np.zeros((1, 4, 2), np.float32), np.array([[True, True, False, False]])
    y[0, :2, 0] = 1.0
    found = to_probabilities(SPACE, model.scores(_batch(y, has)))[0]
    assert found[2, 0] > 0.8 and found[3, 0] < 0.2


def test_votes_of_nobody_are_left_out():
    y = np.eye(2)[[0, 1, 0, 1]]
    with_nobody = fit_latent(_targets(SPACE, [0, 0, 1, 1], [0, 1, 2, 2], y), 2, 4.0)
    without = fit_latent(_targets(SPACE, [0, 0], [0, 1], y[:2]), 2, 4.0)
    np.testing.assert_array_equal(with_nobody.confusion, without.confusion)
    assert np.isfinite(fit_latent(_targets(SPACE, [0], [2], y[:1]), 2, 4.0).confusion).all()

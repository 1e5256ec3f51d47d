"""What a newcomer's own votes teach: rules that nobody else has, people who are like them, and never much harm."""

import time

import numpy as np
import pytest

from model.coldstart.newcomer import REGRET, Experience, fits, learn, most_votes
from model.data.metrics import log_losses
from model.data.spaces import MultipleChoice, SingleChoice

SPACE = SingleChoice(("rude", "plain", "kind"))
SETS = MultipleChoice(("late", "loud"))
PEOPLE, VOTES, DIM = 8, 40, 12


def _world(seed, space=SPACE):
    """Scores of known annotators and of anybody, (N, R, C), and content, (N, F)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((VOTES + 60, DIM))
    direction = rng.standard_normal((PEOPLE + 1, DIM, len(space.classes)))
    direction[:-1] = direction[-1] + 0.8 * direction[:-1]
    return np.einsum("nf,rfc->nrc", x, 0.6 * direction), x / np.sqrt(DIM), rng


def _seen(rows, x, y, space=SPACE, **more):
    frequencies = np.full(len(space.classes), 1.0 / len(space.classes))
    return Experience(space=space, rows=rows[: len(y)], content=x[: len(y)], y=y, weight=np.ones(len(y)),
                      frequencies=frequencies, **more)


def _one_hot(codes):
    return np.eye(3)[codes]


def _generic_loss(rows, y):
    p = np.exp(rows[:, -1])
    return log_losses(SPACE, p / p.sum(1, keepdims=True), y).mean()


def _loss(learned, rows, x, y):
    return log_losses(learned.space, learned.probabilities(rows, x), y).mean()


def _own(y):
    """Own frequencies before each vote, as the mixture shrinks them."""
    count = np.concatenate([np.zeros((1, y.shape[1])), np.cumsum(y, 0)])[:-1]
    return [(count + k) / (count + k).sum(1, keepdims=True) for k in (0.5, 4.0 / 3.0)]


def test_somebody_who_says_the_opposite_is_learned_from_a_handful_of_votes():
    rows, x, _ = _world(0)
    y = _one_hot(rows[:, -1].argmin(1))  # whatever anybody would never say
    few, many = (learn(_seen(rows, x, y[:n])) for n in (6, VOTES))
    later = slice(VOTES, None)
    assert _loss(few, rows[later], x[later], y[later]) < np.log(3) < _generic_loss(rows[later], y[later])
    assert _loss(many, rows[later], x[later], y[later]) < 0.6


def test_somebody_like_a_known_annotator_is_answered_like_them():
    rows, x, _ = _world(1)
    y = _one_hot(rows[:, 3].argmax(1))
    learned = learn(_seen(rows, x, y[:20]))
    weight = learned.weights[:, 0]
    told = weight[: PEOPLE + 1] + weight[PEOPLE + 1 : 2 * PEOPLE + 2]
    assert told[:PEOPLE].argmax() == 3
    later = slice(VOTES, None)
    assert _loss(learned, rows[later], x[later], y[later]) < _generic_loss(rows[later], y[later]) - 0.1


@pytest.mark.parametrize("seed", range(6))
def test_never_more_than_a_small_regret_against_own_frequencies(seed):
    """Over any sequence of votes, one that fits nothing that others do as well."""
    rows, x, rng = _world(seed)
    y = _one_hot(rng.choice(3, VOTES, p=[0.85, 0.1, 0.05]))
    learned = learn(_seen(20.0 * rows, x, y))  # others would be very sure, and wrong
    paid = -np.log((learned.before * y).sum(1)).sum()
    assert paid <= min(-np.log((habit * y).sum(1)).sum() for habit in _own(y)) + REGRET + 1e-9


def test_what_was_expected_of_a_vote_never_knew_it_nor_later_ones():
    rows, x, rng = _world(2)
    y = _one_hot(rng.integers(0, 3, VOTES))
    other = y.copy()
    other[10:] = np.roll(other[10:], 1, axis=1)
    first, second = learn(_seen(rows, x, y)), learn(_seen(rows, x, other))
    np.testing.assert_allclose(first.before[:11], second.before[:11], atol=1e-12)
    assert np.abs(first.before[11:] - second.before[11:]).max() > 0.01


def test_a_lesson_is_that_of_the_expected_answers():
    """The last fit is what would have been expected of a next vote."""
    rows, x, rng = _world(3)
    y = _one_hot(rng.integers(0, 3, VOTES))
    shorter, longer = learn(_seen(rows, x, y[:12])), learn(_seen(rows, x, y[:13]))
    np.testing.assert_allclose(shorter.probabilities(rows[12:13], x[12:13]), longer.before[12:13], atol=0.02)


def test_several_choices_are_learned_class_by_class():
    rows, x, _ = _world(4, SETS)
    y = np.stack([rows[:, -1, 0] < 0, rows[:, -1, 1] > 0], 1).astype(float)  # one turned round, one as everybody
    learned = learn(_seen(rows, x, y[:30], SETS))
    p = learned.probabilities(rows[VOTES:], x[VOTES:])
    assert ((p > 0.5) == (y[VOTES:] > 0.5)).mean(0).min() > 0.85


def test_accepted_suggestions_teach_less():
    rows, x, _ = _world(5)
    y = _one_hot(rows[:, -1].argmin(1))
    weak = _seen(rows, x, y[:10])
    weak = Experience(**{name: getattr(weak, name) for name in weak.__slots__} | {"weight": np.full(10, 0.1)})
    apart = [np.abs(learn(each).probabilities(rows[VOTES:], x[VOTES:]) - np.exp(rows[VOTES:, -1])
                    / np.exp(rows[VOTES:, -1]).sum(1, keepdims=True)).mean() for each in (weak, _seen(rows, x, y[:10]))]
    assert apart[0] < apart[1]


def test_somebody_trained_on_a_little_is_answered_by_themselves_where_that_held():
    rows, x, _ = _world(6)
    y = _one_hot(rows[:, 2].argmax(1))
    good = np.where(y[:20] > 0, 0.9, 0.05)
    mine = learn(_seen(rows, x, y[:20], itself=2, out_of_sample=good))
    assert mine.weights[-1, 0] > 0.9 and 2 not in mine.others
    bad = learn(_seen(rows, x, y[:20], itself=2, out_of_sample=good[:, ::-1]))
    assert bad.weights[-1, 0] < 0.1


def test_many_classes_are_learned_from_fewer_votes():
    assert most_votes(SPACE) == 120
    assert most_votes(SingleChoice(tuple(map(str, range(20))))) == 30
    assert most_votes(SETS) == 120


@pytest.mark.parametrize("space", [
    SingleChoice(tuple(map(str, range(40)))), MultipleChoice(tuple(map(str, range(200)))),
])
def test_many_classes_keep_nobody_waiting(space):
    rng = np.random.default_rng(0)
    classes, n = len(space.classes), most_votes(space)
    rows, x = rng.standard_normal((n, 5, classes)), rng.standard_normal((n, 50)) / 7.0
    y = np.eye(classes)[rng.integers(classes, size=n)]
    begun = time.process_time()
    learned = learn(_seen(rows, x, y, space))
    assert time.process_time() - begun < 1.5
    assert np.isfinite(learned.before).all() and np.isfinite(learned.probabilities(rows, x)).all()


def test_what_cannot_be_learned_is_said_beforehand():
    assert fits(SPACE, PEOPLE) and fits(MultipleChoice(("only",)), PEOPLE)
    assert not fits(SingleChoice(("only",)), PEOPLE)  # a single class teaches nothing
    assert not fits(SingleChoice(tuple(map(str, range(1000)))), PEOPLE)  # 72 MB of matrices

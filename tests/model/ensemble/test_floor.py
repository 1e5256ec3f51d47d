"""The floor: nobody is served much worse than by the best of the ways that are mixed for them."""

from dataclasses import replace

import numpy as np
import pytest

from model.base_models.base import Sample
from model.base_models.registry import starting_weights
from model.data.dataset import Targets
from model.data.scores import losses, to_probabilities
from model.data.spaces import MultipleChoice, SingleChoice
from model.data.votes import Vote, Votes
from model.ensemble import floor as floor_of
from model.ensemble.floor import PRIOR, fit_floor, fit_own
from model.ensemble.ladder import Ladder, fit
from model.ensemble.out_of_sample import OutOfSample
from model.ensemble.stack import fit_stack

SPACE = SingleChoice(("a", "b"))
PEOPLE, VOTES = 8, 60
CONTRARY, CONSTANT = 0, 1


@pytest.fixture(scope="module")
def crowd():
    """Base models that foresee six of eight annotators well; 0 says the opposite, 1 always says the same."""
    rng = np.random.default_rng(3)
    unit, annotator = np.arange(PEOPLE * VOTES), np.repeat(np.arange(PEOPLE), VOTES)
    signal = rng.normal(size=len(unit)) * 2.0
    says = rng.random(len(unit)) < 1.0 / (1.0 + np.exp(-signal))
    says = np.where(annotator == CONTRARY, ~says, np.where(annotator == CONSTANT, True, says))
    y = np.eye(2, dtype=np.float32)[says.astype(int)]
    score = np.stack([np.zeros(len(unit)), signal], 1)
    even = np.zeros((len(unit), 2))
    ones = np.ones(len(unit), np.float32)
    targets = Targets(space=SPACE, unit=unit, annotator=annotator, y=y, weight=ones, scored=ones > 0)
    sample = Sample(targets=targets, people=PEOPLE, fold=unit % 4, folds=(0, 1, 2, 3))
    return OutOfSample(sample=sample, scores={"prior": even, "pooled": score, "network": score})


def _stack(item, rows):
    targets = item.targets.select(rows)
    return fit_stack(SPACE, {name: scores[rows] for name, scores in item.scores.items()}, targets.annotator, targets.y,
                     targets.weight, PEOPLE, stack_strength=20.0, bias_strength=20.0,
                     centre_of=starting_weights(observed=False))


@pytest.fixture(scope="module")
def floor(crowd):
    without = {fold: _stack(crowd, crowd.fold != fold) for fold in range(4)}
    stack = _stack(crowd, crowd.fold >= 0)
    return stack, without, fit_floor(
        crowd, stack, without, lambda fold: crowd.targets.select(crowd.fold != fold), PEOPLE)


def _lost(item, scores, who):
    mine = item.targets.annotator == who
    return losses(SPACE, scores[mine], item.targets.y[mine]).mean()


def test_nobody_is_served_worse_than_by_their_own_frequencies(crowd, floor):
    """Out of sample: each vote by a mixture that has not seen its fold."""
    _, without, found = floor
    stacked = np.empty(found.served.shape)
    for fold, stack in without.items():
        here = crowd.fold == fold
        stacked[here] = stack.pool_votes(crowd.scores, crowd.targets.annotator)[here]
    for who in (CONTRARY, CONSTANT):
        own = _lost(crowd, found.frequencies, who)
        assert _lost(crowd, stacked, who) > own + 0.03  # before: much worse than their own habits
        assert _lost(crowd, found.served, who) < own + 0.03
    assert _lost(crowd, found.served, CONTRARY) < _lost(crowd, found.frequencies, CONTRARY) - 0.05  # foreseen, turned
    for who in range(2, PEOPLE):
        assert _lost(crowd, found.served, who) < _lost(crowd, stacked, who) + 0.01


def test_the_mixture_loses_little_to_the_best_way_by_construction(crowd, floor):
    """At most log(1 / prior) in all to each way, on the votes that its shares come from taken one by one."""
    _, _, found = floor
    assert found.floor.share.sum(1) == pytest.approx(1.0)
    assert found.floor.share[-1] == pytest.approx(np.eye(len(PRIOR))[0])  # anybody unknown: the stack
    assert found.floor.share[CONTRARY, 0] < 0.05 and found.floor.share[CONSTANT, 0] < 0.2


def test_serving_is_the_mixture(crowd, floor):
    stack, _, found = floor
    scores_of = {name: np.repeat(scores[:5, None], PEOPLE + 1, 1) for name, scores in crowd.scores.items()}
    stacked = stack.pool(scores_of)
    p = to_probabilities(SPACE, found.floor.serve(SPACE, stacked, scores_of))
    assert p.sum(-1) == pytest.approx(1.0)
    np.testing.assert_allclose(p[:, -1], to_probabilities(SPACE, stacked)[:, -1], atol=1e-4)
    high, low = p[:, CONTRARY, 1], p[:, 2, 1]
    assert np.corrcoef(high, low)[0, 1] < -0.5


@pytest.mark.parametrize("space", [SPACE, MultipleChoice(("p", "q"))])
def test_own_weights_are_those_of_least_loss(space):
    """Beside them, any other weights lose more."""
    rng = np.random.default_rng(0)
    scores = {"x": rng.normal(size=(90, 2)), "y": rng.normal(size=(90, 2))}
    y = np.eye(2)[rng.integers(0, 2, 90)]
    annotator = np.arange(90) % 4  # the last is nobody
    base = rng.normal(size=(90, 2))
    own = fit_own(space, base, scores, annotator, y, np.ones(90), 3)
    assert own.shape == (4, 2) and not own[-1].any()

    def lost(weights):
        moved = base + sum(weights[annotator, r, None] * scores[name] for r, name in enumerate(("x", "y")))
        known = annotator < 3
        return losses(space, moved, y)[known].sum() + 0.5 * floor_of._OWN_STRENGTH * np.square(weights).sum()

    for _ in range(10):
        other = own.copy()
        other[:3] += rng.normal(size=(3, 2)) * 0.05
        assert lost(other) > lost(own)


def _project(labels):
    """Three annotators on 120 units, whose labels content does not tell."""
    rng = np.random.default_rng(5)
    tokens = {f"t{u}": rng.normal(size=(2, 8)).astype(np.float16) for u in range(120)}
    votes = [Vote(unit=f"t{u}", annotator=f"a{a}", control="label", value=labels(rng, a))
             for u in range(120) for a in range(3)]
    return Votes.from_votes(votes), tokens


def test_a_class_that_nobody_gave_is_held_possible(quick, training_set, simulated, tmp_path):
    space = SingleChoice(("a", "b", "never"))
    votes, tokens = _project(lambda rng, a: SPACE.decode(np.eye(2)[int(rng.random() < 0.4)]))
    data = replace(training_set(simulated, heldout=0), votes=votes, spaces={"label": space},
                   tokens=lambda units: [tokens[unit] for unit in units])
    asked, said = ["a0", "a1", "new"], votes.select(np.flatnonzero(votes.unit < 20))
    p = {}
    for floor in (False, True):
        ladder = fit(data, replace(quick, floor=floor)).ladder
        answer = ladder.predict(data.tokens(["t0", "t1"]), asked, units=["t0", "t1"], given=said)["label"]
        p[floor] = answer.served
        ladder.save(tmp_path / str(floor))
        again = Ladder.load(tmp_path / str(floor)).predict(
            data.tokens(["t0", "t1"]), asked, units=["t0", "t1"], given=said)["label"]
        np.testing.assert_array_equal(answer.served, again.served)
    least = 0.5 / (360 + 1.5)
    assert (p[True][..., 2] >= least * 0.999).all() and p[False][..., 2].min() < least / 1.5
    assert (p[True][..., 2] < 0.05).all()


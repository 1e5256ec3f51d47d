"""The base model `factors`: latent factors that annotators share, read off the votes of others on a unit."""

import numpy as np
import pytest
from scipy.optimize import minimize

from model import checkpoint
from model.base_models.base import Batch, Sample
from model.base_models.factors import BLOCKS, FACTORS, FittedFactors, fit_factors
from model.base_models.others import fit_latent
from model.data.dataset import Targets
from model.data.observed_votes import ObservedVotes, no_votes
from model.data.scores import loss_and_slope, losses, to_probabilities
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.gaps import with_those_on_stack
from model.ensemble.ladder import Ladder, TrainingSet, fit
from model.ensemble.out_of_sample import OutOfSample, Visible

SINGLE, MULTIPLE = SingleChoice(("a", "b", "c")), MultipleChoice(("p", "q"))
SPACES = [SINGLE, MULTIPLE]


def _model(space, people, seed=0):
    weight = np.random.default_rng(seed).normal(size=(people + 1, FACTORS, len(space.classes)))
    return FittedFactors(space=space, weight=weight)


def _given(space, units, people, seed=1, share=0.7):
    rng = np.random.default_rng(seed)
    given = no_votes(units, people, len(space.classes))
    said = rng.integers(0, len(space.classes), (units, people))
    given.y[:] = np.eye(len(space.classes))[said] if space is SINGLE else rng.integers(0, 2, given.y.shape)
    given.has[:] = rng.random(given.has.shape) < share
    given.weight[:, 0] = 0.3  # an echo
    return given


def _batch(base, given):
    return Batch(source=np.arange(base.shape[1]), votes=given, stacked=base)


def _by_search(model, base, given, unit, without):
    """The mode of e by a general optimiser, without the vote of one column."""
    columns = [a for a in np.flatnonzero(given.has[unit]) if a != without]

    def objective(e):
        scores = base[unit, columns] + np.einsum("k,akc->ac", e, model.weight[columns])
        loss, slope = loss_and_slope(model.space, scores, given.y[unit, columns])
        trust = given.weight[unit, columns]
        by_e = np.einsum("ac,akc->k", slope * trust[:, None], model.weight[columns]) + e
        return float(loss @ trust) + 0.5 * e @ e, by_e

    return minimize(objective, np.zeros(FACTORS), jac=True, tol=1e-10).x


@pytest.mark.parametrize("space", SPACES)
def test_a_unit_is_read_off_the_votes_of_all_others(space):
    people = 6
    model, given = _model(space, people), _given(space, 3, people)
    base = np.random.default_rng(2).normal(size=(3, people + 1, len(space.classes)))
    found = to_probabilities(space, model.scores(_batch(base, given)))
    for unit in range(3):
        for row in range(people + 1):
            e = _by_search(model, base, given, unit, row)
            expected = to_probabilities(space, base[unit, row] + np.einsum("k,kc->c", e, model.weight[row]))
            np.testing.assert_allclose(found[unit, row], expected, atol=2e-4)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("people", [3, 3 * BLOCKS + 1])
def test_a_vote_never_moves_its_giver(space, people):
    model, given = _model(space, people), _given(space, 4, people)
    given.has[0] = True
    base = np.random.default_rng(2).normal(size=(4, people + 1, len(space.classes)))
    before = model.scores(_batch(base, given))
    given.y[0, 1] = np.roll(given.y[0, 1], 1) if space is SINGLE else 1.0 - given.y[0, 1]
    after = model.scores(_batch(base, given))
    np.testing.assert_array_equal(before[0, 1], after[0, 1])
    np.testing.assert_array_equal(before[1:], after[1:])  # the other units
    assert np.abs(before[0] - after[0]).max(-1)[np.arange(people + 1) != 1].min() > 1e-6
    given.has[0, 1] = False
    np.testing.assert_allclose(model.scores(_batch(base, given))[0, 1], before[0, 1], atol=0.02)


def test_dense_and_single_votes_agree_and_a_batch_changes_nothing():
    people, units = 12, 5
    model, given = _model(SINGLE, people), _given(SINGLE, units, people)
    given.weight[:] = 1.0
    base = np.random.default_rng(2).normal(size=(units, people + 1, 3))
    dense = model.scores(_batch(base, given))
    unit, annotator = (axis.ravel() for axis in np.indices((units, people)))
    targets = _targets(SINGLE, unit, annotator, given.y.reshape(-1, 3))
    single = model.votes(Sample(
        targets=targets, people=people, visible=given.has.ravel(), stacked=base[:, :-1].reshape(-1, 3)))
    np.testing.assert_allclose(single.reshape(units, people, 3), dense[:, :-1], atol=1e-9)
    part = ObservedVotes(y=given.y[2:3], has=given.has[2:3], weight=given.weight[2:3])
    np.testing.assert_array_equal(model.scores(_batch(base[2:3], part)), dense[2:3])


def test_without_votes_it_says_what_content_says():
    model, base = _model(SINGLE, 2), np.log([[[0.2, 0.3, 0.5]] * 3])
    found = to_probabilities(SINGLE, model.scores(_batch(base, no_votes(1, 2, 3))))
    np.testing.assert_allclose(found, np.exp(base))


def test_a_thousand_annotators_are_answered_within_bounds():
    people = 1000
    model, given = _model(SINGLE, people), _given(SINGLE, 2, people, share=1.1)
    found = model.scores(_batch(np.zeros((2, people + 1, 3)), given))
    assert found.shape == (2, people + 1, 3) and np.isfinite(found).all()


def _targets(space, unit, annotator, y):
    n = len(unit)
    return Targets(
        space=space, unit=np.asarray(unit), annotator=np.asarray(annotator), y=np.asarray(y, np.float32),
        weight=np.ones(n, np.float32), scored=np.ones(n, bool),
    )


@pytest.fixture(scope="module")
def camps():
    """Votes of two camps, each with a leaning of its own on every unit."""
    rng = np.random.default_rng(1)
    units, people = 120, 24
    leaning = 2.0 * rng.normal(size=(units, 2))
    p = 1.0 / (1.0 + np.exp(-leaning[:, np.arange(people) % 2]))
    said = (rng.random((units, people)) < p).astype(int)
    unit, annotator = (axis.ravel() for axis in np.indices((units, people)))
    return _targets(SingleChoice(("x", "y")), unit, annotator, np.eye(2)[said.ravel()])


def test_camps_are_told_apart_where_one_hidden_class_cannot(camps):
    fold, rng = camps.unit % 3, np.random.default_rng(2)
    seen, base = rng.random(len(camps)) < 0.5, np.zeros((len(camps), 2))
    sample = Sample(targets=camps, people=24, fold=fold, folds=(0, 1, 2))
    item = OutOfSample(sample=sample, scores={}, visible=(
        Visible(shown=seen, count=np.ones(len(camps), int), scores={}),
    ))
    item, fitted = with_those_on_stack(item, base)
    model = fitted["factors"]
    others = np.empty_like(base)
    for each in range(3):
        here = fold == each
        others[here] = fit_latent(camps.select(~here), 24, 4.0).votes(sample.seeing(seen).of(each))
    hidden = ~seen
    loss = [losses(camps.space, scores[hidden], camps.y[hidden]).mean()
            for scores in (item.visible[0].scores["factors"], others)]
    assert loss[0] < loss[1] - 0.03
    own = (model.weight - model.weight[-1])[:-1, :, 1]
    likeness = own @ own.T
    same = (np.arange(24)[:, None] - np.arange(24)) % 2 == 0
    assert likeness[same].mean() > 0.0 > likeness[~same].mean()


def test_few_votes_lean_as_everybody_does(camps):
    rows = (camps.annotator != 3) | (camps.unit < 2)
    some = camps.select(rows)
    model = fit_factors(some, np.zeros((len(some), 2)), 24, 100.0, 0)
    far = np.linalg.norm((model.weight[:-1] - model.weight[-1]).reshape(24, -1), axis=1)
    assert far[3] < 0.3 * np.delete(far, 3).mean()
    nobody = fit_factors(camps.select(camps.unit < 0), np.empty((0, 2)), 24, 100.0, 0)
    np.testing.assert_allclose(nobody.weight, 0.0, atol=1e-3)


def test_a_checkpoint_keeps_it_and_one_from_before_works_without(quick, tmp_path):
    rng = np.random.default_rng(0)
    tokens = {f"t{u}": rng.normal(size=(2, 8)).astype(np.float16) for u in range(30)}
    votes = Votes.from_votes(
        Vote(unit=f"t{u}", annotator=f"a{a}", control="label", value=Value.of_class("abc"[rng.integers(3)]))
        for u in range(30) for a in range(4)
    )
    ladder = fit(TrainingSet(
        votes=votes, spaces={"label": SINGLE}, tokens=lambda units: [tokens[u] for u in units],
        heldout=lambda unit: False,
    ), quick).ladder
    ladder.save(tmp_path / "now")
    arrays, meta = checkpoint.load(tmp_path / "now")
    for stack in ("few", "many"):
        meta["controls"][0]["gaps"][stack]["weights"].pop("factors")
    del arrays["control.0.gaps.factors"]
    checkpoint.save(tmp_path / "before", arrays, meta)
    now, before = Ladder.load(tmp_path / "now"), Ladder.load(tmp_path / "before")
    units = ["t0", "t1"]
    found, old = (
        each.predict([tokens[u] for u in units], ["a0", "x"], units=units, given=votes)["label"]
        for each in (now, before)
    )
    assert now.base_models("label") == (*before.base_models("label"), "factors")
    assert set(found.base_models) - set(old.base_models) == {"factors"}
    np.testing.assert_array_equal(
        found.served, ladder.predict([tokens[u] for u in units], ["a0", "x"], units=units, given=votes)["label"].served
    )
    assert np.isfinite(old.served).all()

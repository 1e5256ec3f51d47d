"""What every base model must keep: one suite over the registry, and over one that was registered from outside."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from backend.report.sentences import way
from model import checkpoint
from model.base_models.base import Batch, Reading, Sample, Stored
from model.base_models.registry import BASE_MODELS, starting_weights
from model.config import LadderConfig
from model.data.dataset import Targets, TrainingSet
from model.data.observed_votes import ObservedVotes
from model.data.spaces import MultipleChoice, SingleChoice
from model.ensemble.first_votes import FirstVotes
from model.ensemble.ladder import Ladder, fit
from model.errors import CheckpointError
from model.qumab.batches import TokenStore
from tests.model.base_models.toy import Share

MODELS = {**BASE_MODELS, Share.name: Share()}
UNITS, PEOPLE, DIM = 24, 4, 6
SINGLE, MULTIPLE = SingleChoice(("a", "b", "c")), MultipleChoice(("p", "q"))
BASE = LadderConfig()
QUICK = replace(BASE, members_per_fold=1, network=replace(BASE.network, width=8, heads=2, blocks=1, epochs=2))
WITHIN = 1e-5  # one forward of the network in single precision, in batches of another shape


class Scene:
    """Units that everybody voted on, as a sample and as a batch."""

    def __init__(self, space):
        rng = np.random.default_rng(3)
        self.space, self.classes = space, len(space.classes)
        tokens = [rng.normal(size=(2 + u % 3, DIM)).astype(np.float16) for u in range(UNITS)]
        self.store = TokenStore(
            [f"t{u}" for u in range(UNITS)], lambda units: [tokens[int(unit[1:])] for unit in units],
            trained=np.ones(UNITS, np.bool_), resident_mb=10, device=torch.device("cpu"))
        self.tokens, self.features = tokens, self.store.mean_tokens
        high = self.features[:, 0] > 0
        said = np.where(rng.random((UNITS, PEOPLE)) < 0.8, high[:, None], rng.random((UNITS, PEOPLE)) < 0.5)
        self.y = np.eye(self.classes, dtype=np.float32)[said.astype(int)]  # (U, P, C)
        if isinstance(space, MultipleChoice):
            self.y[..., 1] = rng.random((UNITS, PEOPLE)) < 0.4
        self.unit, self.annotator = (axis.ravel() for axis in np.indices((UNITS, PEOPLE)))
        self.stacked = rng.normal(size=(UNITS, PEOPLE + 1, self.classes))

    def sample(self, visible=None):
        n = len(self.unit)
        targets = Targets(space=self.space, unit=self.unit, annotator=self.annotator,
                          y=self.y.reshape(n, self.classes), weight=np.ones(n, np.float32), scored=np.ones(n, np.bool_))
        return Sample(targets=targets, people=PEOPLE, config=QUICK, control="asked", fold=self.unit % 3,
                      folds=(0, 1, 2), features=self.features, store=self.store, visible=visible,
                      stacked=self.stacked[self.unit, self.annotator])

    def batch(self, has=None, y=None, people=PEOPLE, units=slice(None)):
        """Votes of the known annotators; columns of further ones are empty."""
        more = ((0, 0), (0, people - PEOPLE))
        has = np.pad(np.ones((UNITS, PEOPLE), np.bool_) if has is None else has, more)[units]
        y = np.pad(self.y if y is None else y, (*more, (0, 0)))[units]
        votes = ObservedVotes(y=y, has=has, weight=np.ones(has.shape, np.float32))
        source = np.arange(people + 1)
        return Batch(source=source, votes=votes, features=self.features[units],
                     stacked=self.stacked[:, np.minimum(source, PEOPLE)][units],
                     reading=Reading(self.tokens[units], {"asked": votes}))


@pytest.fixture(scope="module", params=["single", "several"])
def scene(request):
    return Scene(SINGLE if request.param == "single" else MULTIPLE)


@pytest.fixture(scope="module", params=sorted(MODELS))
def model(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def fitted(scene, model):
    return model.fit(scene.sample())


def test_it_says_what_it_is(model):
    assert MODELS[model.name] is model and model.title and model.weight_observed > 0.0
    assert (model.weight > 0.0) != model.reads_votes
    assert len({each.title for each in MODELS.values()}) == len(MODELS)
    assert model.reads_votes or not model.on_stack


def test_scores_are_there_for_everybody(scene, fitted):
    found = fitted.scores(scene.batch())
    assert found.shape == (UNITS, PEOPLE + 1, scene.classes) and np.isfinite(found).all()
    assert fitted.votes(scene.sample()).shape == (len(scene.unit), scene.classes)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_single_votes_are_foretold_as_units_are(scene, fitted, share):
    visible = np.random.default_rng(0).random(len(scene.unit)) < share
    dense = fitted.scores(scene.batch(has=visible.reshape(UNITS, PEOPLE)))
    single = fitted.votes(scene.sample(visible))
    np.testing.assert_allclose(single, dense[scene.unit, scene.annotator], atol=WITHIN)


def test_a_vote_never_moves_its_giver(scene, model, fitted):
    before, y = fitted.scores(scene.batch()), scene.y.copy()
    y[0, 1] = np.roll(y[0, 1], 1) if scene.space is SINGLE else 1.0 - y[0, 1]
    after = fitted.scores(scene.batch(y=y))
    np.testing.assert_array_equal(before[0, 1], after[0, 1])
    np.testing.assert_array_equal(before[1:], after[1:])
    others = np.abs(before[0] - after[0]).max(-1)[np.arange(PEOPLE + 1) != 1]
    assert (others > 0.0).all() == model.reads_votes and (others > 0.0).any() == model.reads_votes


def test_neither_other_units_nor_their_order_matter(scene, fitted):
    whole = fitted.scores(scene.batch())
    np.testing.assert_allclose(fitted.scores(scene.batch(units=slice(5, 9))), whole[5:9], atol=WITHIN)
    np.testing.assert_allclose(fitted.scores(scene.batch(units=slice(None, None, -1)))[::-1], whole, atol=WITHIN)


def test_who_came_since_is_answered_for_as_somebody_unknown(scene, fitted):
    known, wide = fitted.scores(scene.batch()), fitted.widened(PEOPLE + 2).scores(scene.batch(people=PEOPLE + 2))
    np.testing.assert_allclose(wide[:, :PEOPLE], known[:, :-1], atol=1e-12)
    for row in range(PEOPLE, PEOPLE + 3):
        np.testing.assert_allclose(wide[:, row], known[:, -1], atol=1e-12)


def test_it_comes_back_out_of_a_checkpoint_to_the_last_bit(scene, model, fitted, tmp_path):
    committee = getattr(fitted, "committee", None)
    checkpoint.save(tmp_path / "r1", fitted.arrays(), {"gaps": {}, **fitted.numbers()})
    arrays, numbers = checkpoint.load(tmp_path / "r1")
    json.dumps(fitted.numbers())
    again = model.from_arrays(Stored(
        control="asked", space=scene.space, arrays=arrays, numbers=numbers, committee=lambda: committee))
    np.testing.assert_array_equal(again.scores(scene.batch()), fitted.scores(scene.batch()))
    assert again.whole == fitted.whole and again.arrays().keys() == fitted.arrays().keys()


def test_no_two_keep_anything_under_one_name(scene):
    kept = [name for model in MODELS.values() for fitted in (model.fit(scene.sample()),)
            for name in (*fitted.arrays(), *fitted.numbers())]
    assert len(kept) == len(set(kept))


def test_the_same_votes_give_the_same_bits(scene, model, fitted):
    np.testing.assert_array_equal(
        model.fit(scene.sample()).scores(scene.batch()), fitted.scores(scene.batch()))


def test_each_vote_is_scored_once_a_view_by_a_fit_without_its_fold(scene, model):
    sample = scene.sample()
    part = replace(sample, folds=(0, 2))
    every = np.ones(len(part.to_score()), np.bool_)
    views = (every, ~every) if model.reads_votes else (None,)
    found = model.tuned(part, views, None)
    assert set(found.without) == {0, 2}
    made = model.out_of_fold(part, views)
    assert len(made.scores) == len(views)
    asked = part.to_score()
    for view, scores in zip(views, made.scores, strict=True):
        assert scores.shape == asked.targets.y.shape and np.isfinite(scores).all()
        here = asked.fold_of_each == 2
        shown = asked.select(here).seeing(None if view is None else view[here])
        np.testing.assert_allclose(scores[here], found.without[2].votes(shown), atol=WITHIN)
    assert np.isfinite(made.on_all(sample).scores(scene.batch())).all()


def _training(space=SINGLE, units=48):
    from model.simulate import simulate_annotators

    crowd = simulate_annotators(np.random.default_rng(1), units=units, annotators=4, classes=space.classes, dim=DIM)
    return TrainingSet(
        votes=crowd.votes, spaces={"label": space}, heldout=lambda unit: int(unit[1:]) % 6 == 0,
        tokens=lambda names: [crowd.tokens[name] for name in names])


def test_one_from_outside_is_stacked_kept_named_and_answers(monkeypatch, tmp_path):
    """Nothing but its class and its place in the registry is needed."""
    monkeypatch.setitem(BASE_MODELS, Share.name, Share())
    assert starting_weights(observed=True)["share"] == Share.weight_observed
    assert "share" not in starting_weights(observed=False)
    data = _training()
    made = fit(data, QUICK)
    weights = made.figures["controls"]["label"]["gaps"]["weights"]
    assert weights["few"]["share"] > 0.0 and "share" in made.figures["controls"]["label"]["gaps"]["heldout"]
    units, names = ["t0", "t6"], [*made.ladder.annotators, "nobody"]
    tokens = data.tokens(units)
    found = made.ladder.predict(tokens, names, units=units, given=data.votes)["label"]
    assert found.base_models["share"].shape == found.served.shape
    made.ladder.save(tmp_path / "r1")
    again = Ladder.load(tmp_path / "r1")
    assert again.base_models("label")[-1] == "share"
    np.testing.assert_array_equal(again.predict(tokens, names, units=units, given=data.votes)["label"].served,
                                  found.served)
    assert way("share") == Share.title
    alone = FirstVotes(data, QUICK).predict(units, names, data.votes)["label"]
    assert set(alone.base_models) == {"prior", "others", "share"}


def test_a_version_from_before_one_was_registered_goes_on_without_it(monkeypatch, tmp_path):
    data = _training()
    fit(data, QUICK).ladder.save(tmp_path / "r1")
    monkeypatch.setitem(BASE_MODELS, Share.name, Share())
    before = Ladder.load(tmp_path / "r1")
    assert "share" not in before.base_models("label")
    answer = before.predict(data.tokens(["t0"]), ["a0"], units=["t0"], given=data.votes)["label"]
    assert np.isfinite(answer.served).all() and "share" not in answer.base_models
    assert "share" in fit(data, QUICK, previous=before).ladder.base_models("label")


def test_a_version_with_one_that_is_not_registered_is_refused(monkeypatch, tmp_path):
    data = _training()
    with monkeypatch.context() as patched:
        patched.setitem(BASE_MODELS, Share.name, Share())
        fit(data, QUICK).ladder.save(tmp_path / "r1")
    with pytest.raises(CheckpointError, match="lacks a part"):
        Ladder.load(tmp_path / "r1")

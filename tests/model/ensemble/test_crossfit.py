from dataclasses import replace

import numpy as np
import pytest
import torch

from model.base_models.base import preferably_scored
from model.base_models.joint import shares
from model.base_models.pooled import PENALTIES, Pooled, check_loss, fit_pooled
from model.base_models.prior import fit_prior
from model.data.dataset import build_dataset
from model.data.scores import to_scores
from model.ensemble.crossfit import _sample, crossfit
from model.ensemble.ladder import fit
from model.qumab.batches import TokenStore


@pytest.fixture(scope="module")
def dataset(simulated, training_set, quick):
    return build_dataset(training_set(simulated), quick)


def _store(dataset, simulated):
    return TokenStore(
        dataset.units, lambda units: [simulated.tokens[unit] for unit in units], trained=~dataset.heldout,
        resident_mb=10, device=torch.device("cpu"),
    )


def test_members_learn_from_all_folds_but_their_own(dataset, simulated, quick):
    store = _store(dataset, simulated)
    sample = _sample(dataset, "label", store, store.mean_tokens, quick)
    weight = np.arange(1.0, len(sample) + 1)
    learn, check = (shares(sample, weight, 6, own_fold=own) for own in (False, True))
    fold = sample.fold_of_each
    for member in range(6):
        assert not learn[member, fold == member % 3].any() and not check[member, fold != member % 3].any()
        np.testing.assert_array_equal(learn[member] + check[member], weight)


def test_early_stopping_looks_at_unanchored_votes_where_there_are_enough(dataset):
    targets = dataset.rows("label", ~dataset.heldout)
    fold = dataset.fold[targets.unit]
    half = replace(targets, scored=np.arange(len(targets)) % 2 == 0)
    assert not preferably_scored(half, fold)[1::2].any() and preferably_scored(half, fold)[::2].all()
    few = replace(targets, scored=np.arange(len(targets)) < 5)
    assert preferably_scored(few, fold).all()
    elsewhere = preferably_scored(replace(targets, scored=fold == 1), fold)
    assert elsewhere.all()  # a fold without scored votes looks at those it has


def test_every_member_is_trained_when_one_fold_has_all_scored_votes(simulated, training_set, quick, dataset):
    votes = simulated.votes
    fold = dict(zip(dataset.units, dataset.fold, strict=True))
    scored = np.array([fold.get(unit) == 1 for unit in votes.units])[votes.unit]
    found = fit(training_set(replace(simulated, votes=replace(votes, scored=scored))), quick)
    assert min(found.figures["best_epoch"]) > 0


def test_the_pooled_penalty_is_picked_among_all_by_unanchored_votes(dataset, simulated, quick, monkeypatch):
    tried = []

    def watched(features, targets, people, penalty, start=None, *, surface):
        tried.append(penalty)
        return fit_pooled(features, targets, people, penalty, start)

    monkeypatch.setattr("model.base_models.pooled.fit_pooled", watched)
    store = _store(dataset, simulated)
    sample = _sample(dataset, "label", store, store.mean_tokens, quick)
    tuned = Pooled().tuned(sample, (None,), None)
    assert set(tried) == set(PENALTIES) and tuned.model.penalty in PENALTIES
    check = sample.of(0)
    half = replace(check.targets, scored=np.arange(len(check)) % 2 == 0)
    flipped = replace(half, y=np.where(half.scored[:, None], half.y, np.roll(half.y, 1, axis=1)))
    first, second = (check_loss(tuned.without[0], replace(check, targets=rows)) for rows in (half, flipped))
    assert first == second > 0.0


def test_scores_are_out_of_sample(dataset, simulated, quick):
    store = _store(dataset, simulated)
    found = crossfit(dataset, store, quick, previous=None, device="cpu", progress=lambda share: None)
    item = found.votes["label"]
    assert len(item.targets) == len(dataset.rows("label", ~dataset.heldout))
    assert all(np.isfinite(scores).all() for scores in item.scores.values())
    for fold in range(3):
        others = dataset.rows("label", ~dataset.heldout & (dataset.fold != fold))
        table = to_scores(item.targets.space, fit_prior(others, 4, quick.prior_strength))
        here = item.fold == fold
        np.testing.assert_allclose(item.scores["prior"][here], table[item.targets.annotator[here]])
        # The network's scores of this fold come from its own member, not from the mean of all.
        unit = item.targets.unit[here][0]
        scores = found.committee.member_scores(*store.batch(np.array([unit])))[0]["label"]
        expected = scores[fold, 0, item.targets.annotator[here][0]]
        np.testing.assert_allclose(item.scores["network"][here][0], expected, atol=1e-5)

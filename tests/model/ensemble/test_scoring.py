"""Held-out votes are scored from content alone and with the others' votes in one reading of the content."""

import numpy as np
import pytest

from model.data.dataset import build_dataset
from model.ensemble.ladder import Ladder
from model.ensemble.scoring import score_both, score_heldout


@pytest.fixture(scope="module")
def scenes(fitted, simulated, training_set, quick):
    """A ladder, the data set it was fitted on with every second unit to score, and where its tokens come from."""
    data = training_set(simulated, heldout=2)
    return fitted.ladder, build_dataset(data, quick, fitted.ladder.annotators), data


def test_both_are_what_two_readings_give(scenes):
    ladder, dataset, data = scenes
    alone, gaps = score_both(ladder, dataset, data)
    expected = score_heldout(ladder, dataset, data.tokens)["label"]
    assert alone["label"].p.keys() == expected.p.keys() == {"served", "prior", "pooled", "network"}
    for way, p in expected.p.items():
        np.testing.assert_array_equal(alone["label"].p[way], p)
    targets = gaps["label"].targets
    units = [dataset.units[unit] for unit in np.unique(targets.unit)]
    answer = ladder.predict(data.tokens(units), dataset.annotators, units=units, given=data.votes)["label"]
    at = np.unique(targets.unit, return_inverse=True)[1], targets.annotator
    assert len(targets) > 100 and gaps["label"].p.keys() == {"served", *ladder.base_models("label")}
    for way, p in gaps["label"].p.items():
        np.testing.assert_allclose(p, (answer.served if way == "served" else answer.base_models[way])[at], atol=1e-12)
    assert np.abs(gaps["label"].p["served"] - alone["label"].p["served"]).max() > 0.05


def test_content_is_fetched_and_read_once(scenes, monkeypatch):
    ladder, dataset, data = scenes
    fetched, read = [], []
    behind = type(ladder.committee).scores_given

    def counted(committee, tokens, given):
        read.append(len(tokens))
        return behind(committee, tokens, given)

    def tokens(units):
        fetched.extend(units)
        return data.tokens(units)

    monkeypatch.setattr(type(ladder.committee), "scores_given", counted)
    score_both(ladder, dataset, type(data)(
        votes=data.votes, spaces=data.spaces, tokens=tokens, heldout=data.heldout))
    assert len(fetched) == len(set(fetched)) == sum(read) == int(dataset.heldout.sum())


def test_a_ladder_without_a_network_scores_nothing(scenes):
    _, dataset, data = scenes
    empty = Ladder(annotators=(), controls={}, committee=None, dim=0, config=scenes[0].config)
    assert score_both(empty, dataset, data) == ({}, {})

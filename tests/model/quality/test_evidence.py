"""What a training leaves for the audit: near-duplicates, a map of annotators, out-of-sample predictions on disk."""

from __future__ import annotations

import numpy as np
import pytest

from model.ensemble.audit import audit_evidence
from model.errors import CheckpointError
from model.quality import duplicates
from model.quality.duplicates import near_duplicates
from model.quality.evidence import Evidence
from model.quality.query_map import query_map


def brute(features, threshold):
    f = features - features.mean(0)
    f = f / np.linalg.norm(f, axis=1, keepdims=True)
    return {(int(u), int(v)) for u, v in np.argwhere(np.triu(f @ f.T >= threshold, 1))}


@pytest.mark.parametrize("dim", [5, 80])
def test_near_duplicates_are_those_of_a_full_comparison(monkeypatch, dim):
    monkeypatch.setattr(duplicates, "_BLOCK", 5_000)  # several blocks
    rng = np.random.default_rng(dim)
    base = rng.standard_normal((260, dim)) + 5.0  # one large common direction, as encoders have it
    twins = base[rng.choice(260, 40, replace=False)] + 0.05 * rng.standard_normal((40, dim))
    features = np.vstack([base, twins]).astype(np.float32)
    pairs, likeness = near_duplicates(features, most=300)
    assert {tuple(pair) for pair in pairs.tolist()} == brute(features, 0.95) and len(pairs) >= 40
    assert (likeness >= 0.95).all() and (pairs[:, 0] < pairs[:, 1]).all()


def test_a_text_that_stands_there_often_has_few_twins_and_an_empty_one_none():
    rng = np.random.default_rng(1)
    features = np.vstack([np.tile(rng.standard_normal(16), (500, 1)), rng.standard_normal((100, 16))])
    pairs, _ = near_duplicates(features, most=6)
    assert 250 <= len(pairs) <= 500 * 6
    assert len(near_duplicates(np.zeros((5, 4)))[0]) == 0
    assert len(near_duplicates(np.ones((1, 4)))[0]) == len(near_duplicates(np.empty((0, 4)))[0]) == 0


def test_of_very_many_units_the_last_are_compared(monkeypatch):
    monkeypatch.setattr(duplicates, "MOST_UNITS", 50)
    rng = np.random.default_rng(2)
    features = rng.standard_normal((120, 12))
    features[10], features[119] = features[5], features[100]
    assert near_duplicates(features)[0].tolist() == [[100, 119]]


def test_the_map_keeps_distances_of_queries_that_lie_in_a_plane():
    rng = np.random.default_rng(3)
    plane = rng.standard_normal((7, 2))
    turned = [plane @ np.linalg.qr(rng.standard_normal((9, 9)))[0][:2] for _ in range(3)]  # each member in its own way
    position, explained = query_map(np.stack(turned))
    apart = np.linalg.norm(position[:, None] - position[None], axis=-1)
    assert apart == pytest.approx(np.linalg.norm(plane[:, None] - plane[None], axis=-1)) and explained > 0.999
    assert query_map(np.zeros((2, 1, 4)))[0].tolist() == [[0.0, 0.0]] and query_map(np.ones((2, 3, 4)))[1] == 0.0


def test_evidence_of_a_training_comes_back_from_disk(fitted, tmp_path):
    evidence = audit_evidence(fitted)
    item = evidence.controls["label"]
    assert len(item.unit) == 120 * 4 and item.served.sum(1) == pytest.approx(1.0, abs=1e-5)
    training = fitted.out_of_sample["label"]
    assert item.served[: len(training.targets)] == pytest.approx(training.p["served"], abs=1e-6)
    evidence.save(tmp_path / "audit")
    back = Evidence.load(tmp_path / "audit")
    assert (back.units, back.annotators, back.explained) == (evidence.units, evidence.annotators, evidence.explained)
    assert np.array_equal(back.controls["label"].served, item.served)
    assert np.array_equal(back.near_duplicates, evidence.near_duplicates)
    assert back.position.shape == (4, 2)


def test_lost_evidence_is_an_error_with_a_sentence(fitted, tmp_path):
    with pytest.raises(CheckpointError):
        Evidence.load(tmp_path / "nothing")
    fitted.ladder.save(tmp_path / "ladder")
    with pytest.raises(CheckpointError, match="lacks a part"):
        Evidence.load(tmp_path / "ladder")

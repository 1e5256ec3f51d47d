"""What ends a brief training, and what it learns: told by the votes themselves, not by when they were given."""

from dataclasses import replace

import numpy as np
import pytest

from model.base_models import joint
from model.data.dataset import build_dataset
from model.data.spaces import SingleChoice, Value
from model.ensemble.fingerprint import (
    as_well_supported,
    changed_units,
    fingerprint_of,
    mostly_other_contents,
    much_is_gone,
)
from model.ensemble.ladder import fit
from model.simulate import simulate_annotators

ALL = ("maybe", "no", "yes")
COLUMNS = ("unit", "annotator", "y", "weight", "scored")
SAID = 0.7  # of the class that came back; after as few epochs as otherwise when training goes on, it is 0.47


@pytest.fixture(scope="module")
def small(quick):
    return replace(quick, folds=2, network=replace(quick.network, width=16))


@pytest.fixture(scope="module")
def project():
    """200 tasks whose votes by two annotators are drawn from; one of three classes has content of its own."""
    found = simulate_annotators(np.random.default_rng(3), units=200, annotators=2, classes=("no", "yes"), dim=16)
    votes = found.votes
    rare = votes.unit >= 160
    maybe = len(votes.values)
    tokens = {unit: tokens + np.float32(votes.units.index(unit) >= 160) for unit, tokens in found.tokens.items()}
    return replace(found, tokens=tokens, votes=replace(
        votes, values=(*votes.values, Value.of_class("maybe")), value=np.where(rare, maybe, votes.value),
        time=3600.0 * (1.0 + votes.unit),
    ))


def _single(votes):
    """One vote a task, by turns."""
    return (votes.unit % 2 == votes.annotator)


def _with(project, rows, classes=("no", "yes")):
    return replace(project, votes=project.votes.select(rows), space=SingleChoice(classes))


@pytest.fixture(scope="module")
def first(project, training_set, small):
    """160 usable votes, one a task, and 30 for a class that the config lacks."""
    votes = project.votes
    return fit(training_set(_with(project, _single(votes) & (votes.unit < 190)), heldout=0), small)


@pytest.fixture
def gone_through(monkeypatch):
    """The units that each training is told to go through."""
    found, real = [], joint.train

    def watched(*arguments, latest, **options):
        found.append(latest)
        return real(*arguments, latest=latest, **options)

    monkeypatch.setattr(joint, "train", watched)
    return found


def test_votes_that_are_gone_end_a_brief_training(project, training_set, small, first):
    votes = project.votes
    assert first.ladder.learned.sum() == 160
    left = _single(votes) & (votes.annotator == 0) & (votes.unit < 160)
    others = (votes.annotator == 0) & np.isin(votes.unit, [153, 155, 157, 159])
    found = fit(training_set(_with(project, left | others), heldout=0), small, previous=first.ladder)
    assert found.figures["warm"] and not found.figures["brief"] and not found.figures["kept"]
    assert found.ladder.learned.tolist() == [84, 0]


def test_the_first_overlap_is_learned_by_what_reads_votes(project, training_set, small, first, gone_through):
    """They were all given long before the last one that the first training knew."""
    votes = project.votes
    second = ~_single(votes) & (votes.unit < 36)
    rows = _single(votes) & (votes.unit < 160) | second
    found = fit(training_set(_with(project, rows), heldout=0), small, previous=first.ladder)
    assert found.figures["brief"] and not found.figures["kept"]
    (latest,) = gone_through
    assert {found.units[unit] for unit in latest} == {votes.units[unit] for unit in range(36)}
    before, after = (each.figures["controls"]["label"]["gaps"] for each in (first, found))
    assert before["temperature"]["few"] == 1.0 != after["temperature"]["few"]
    assert before["weights"]["few"] != after["weights"]["few"]
    went_on = fit(training_set(_with(project, rows | ~_single(votes) & (votes.unit < 40)), heldout=0), small,
                  previous=found.ladder)
    assert went_on.figures["brief"] and went_on.figures["kept"] == ["label"]  # 80 votes beside another one, after 72


def test_a_class_that_comes_back_is_learned(project, training_set, small, first):
    votes = project.votes
    rows = _single(votes) & (votes.unit < 193)
    long = replace(small, network=replace(small.network, epochs=16))
    found = fit(training_set(_with(project, rows, ALL), heldout=0), long, previous=first.ladder)
    assert found.figures["warm"] and not found.figures["brief"]
    tokens = [project.tokens[votes.units[unit]] for unit in range(160, 190)]
    assert found.ladder.predict(tokens, ["a0"])["label"].base_models["network"][:, 0, 0].mean() > SAID


@pytest.fixture(scope="module")
def both(project, training_set, quick):
    """A dataset of two controls, one of which answers the other way round."""
    votes = project.votes
    twice = {
        key: np.concatenate([getattr(votes, key)] * 2)
        for key in ("unit", "annotator", "value", "time", "weight", "provenance", "scored")
    }
    other = np.repeat(np.arange(2, dtype=np.int32), len(votes))
    data = training_set(replace(project, votes=replace(votes, controls=("label", "more"), control=other, **twice)))
    return build_dataset(replace(data, spaces={name: SingleChoice(ALL) for name in ("label", "more")}), quick)


def _fingerprint(dataset, features=None):
    return fingerprint_of(dataset, np.zeros((len(dataset.units), 2), np.float32) if features is None else features)


def _changed(dataset, name="label", **columns):
    return replace(dataset, controls=dataset.controls | {name: replace(dataset.controls[name], **columns)})


def test_each_change_of_a_vote_is_told_and_nothing_else(both):
    first, targets = _fingerprint(both), both.controls["more"]
    order = np.random.default_rng(0).permutation(len(targets))
    shuffled = replace(both, controls={
        "more": replace(targets, **{key: getattr(targets, key)[order] for key in COLUMNS}),
        "label": both.controls["label"],
    })
    assert not len(changed_units(_fingerprint(shuffled), first, both))
    row = int(np.flatnonzero(~both.heldout[targets.unit])[7])
    at = np.arange(len(targets)) == row
    for columns in (
        {"y": np.where(at[:, None], np.roll(targets.y, 1, 1), targets.y)},
        {"annotator": np.where(at, 1 - targets.annotator, targets.annotator)},
        {"weight": np.where(at, np.float32(0.3), targets.weight)}, {"scored": targets.scored ^ at},
    ):
        now = _fingerprint(_changed(both, "more", **columns))
        assert changed_units(now, first, both).tolist() == [targets.unit[row]]
    twin = np.append(np.arange(len(targets)), row)
    more = replace(both, controls=both.controls | {
        "more": replace(targets, **{key: getattr(targets, key)[twin] for key in COLUMNS})
    })
    assert changed_units(_fingerprint(more), first, both).tolist() == [targets.unit[row]]
    same = _fingerprint(_changed(both, "more", y=both.controls["label"].y))
    assert not np.isin(same.controls["more"].votes, same.controls["label"].votes).any()  # of another control


def test_when_much_is_gone(both):
    first, targets = _fingerprint(both), both.controls["label"]
    theirs = np.flatnonzero((targets.annotator == 1) & ~both.heldout[targets.unit])

    def without(rows):
        left = np.ones(len(targets), np.bool_)
        left[rows] = False
        return replace(both, controls=both.controls | {"label": targets.select(left)})

    few, many = theirs[: len(theirs) // 6], theirs[: len(theirs) // 4]
    for rows, much in ((few, False), (many, True)):
        assert much_is_gone(_fingerprint(without(rows)), first, without(rows), 1.25) is much
        flipped = _changed(both, y=np.where(
            np.isin(np.arange(len(targets)), rows)[:, None], np.roll(targets.y, 1, 1), targets.y
        ))
        assert much_is_gone(_fingerprint(flipped), first, flipped, 1.25) is much  # a changed vote is gone too
    rare = without(theirs[4:])  # with four votes, somebody says next to nothing
    assert not much_is_gone(_fingerprint(without(theirs)), _fingerprint(rare), without(theirs), 1.25)


def test_what_is_as_well_supported(both):
    first = _fingerprint(both)
    assert as_well_supported(first, first, 1.25) == {"label", "more"}
    scored = both.controls["label"].scored & (both.controls["label"].unit % 2 == 0)
    unscored = _fingerprint(_changed(both, scored=scored))
    for now, before in ((unscored, first), (first, unscored)):
        assert as_well_supported(now, before, 1.25) == {"more"}
    for carried, fitted_on in (({"more"}, unscored), ({"label", "more"}, first)):
        after = unscored.after(first, carried).controls["label"]
        np.testing.assert_array_equal(after.support, fitted_on.controls["label"].support)
        np.testing.assert_array_equal(after.votes, first.controls["label"].votes)


def test_contents_are_told_apart(both):
    features = np.random.default_rng(0).normal(size=(len(both.units), 3)).astype(np.float32)
    first = _fingerprint(both, features)
    assert not len(changed_units(_fingerprint(both, features.copy()), first, both))
    other = features.copy()
    trained = np.flatnonzero(~both.heldout)
    other[trained[7], 1] += 0.01
    assert changed_units(_fingerprint(both, other), first, both).tolist() == [trained[7]]
    assert not mostly_other_contents(_fingerprint(both, other), first)
    half = len(trained) // 2
    for count, most in ((half - 1, False), (half + 1, True)):
        other = features.copy()
        other[trained[:count]] += 1.0
        assert mostly_other_contents(_fingerprint(both, other), first) is most

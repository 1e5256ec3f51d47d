"""Confidence from votes alone: it means what it says, and rests on votes that nothing was fitted on."""

import numpy as np

from model.config import LadderConfig
from model.data.dataset import TrainingSet, build_dataset
from model.data.spaces import MultipleChoice, SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.calibration import FROM_VERSION, FROM_VOTES, Calibration, fit_calibration
from model.ensemble.first_votes import FirstVotes
from model.ensemble.hidden import DENSE, dense_units, some_left
from model.simulate import simulate_annotators

SPACE = SingleChoice(("x", "y"))


def _no_content(units):
    raise AssertionError("nobody needs the content")


def _data(votes, space):
    return TrainingSet(votes=votes, spaces={"label": space}, tokens=_no_content, heldout=lambda unit: False)


def _each(votes):
    return [Vote(unit=votes.units[u], annotator=votes.annotators[a], control="label", value=votes.values[v])
            for u, a, v in zip(votes.unit, votes.annotator, votes.value, strict=True)]


def _partly(votes, rng, most=4):
    """A mask of 1 to `most` votes of each unit."""
    order = rng.permutation(len(votes))
    order = order[np.argsort(votes.unit[order], kind="stable")]
    rank = np.empty(len(votes), np.int64)
    first = np.searchsorted(votes.unit[order], votes.unit[order])
    rank[order] = np.arange(len(votes)) - first
    return rank < rng.integers(1, most + 1, len(votes.units))[votes.unit]


def _majority(votes, classes):
    counts = np.zeros((len(votes.units), len(classes)))
    label = np.array([classes.index(value.data) for value in votes.values])[votes.value]
    np.add.at(counts, (votes.unit, label), 1.0)
    top = counts == counts.max(1, keepdims=True)
    return top / top.sum(1, keepdims=True)


def _gap(p, truth):
    """Stated against true, weighted over ten bins."""
    label, sure = p.argmax(1), p.max(1)
    right, place = truth[np.arange(len(p)), label], np.minimum((sure * 10).astype(int), 9)
    return sum(abs(sure[place == b].sum() - right[place == b].sum()) for b in range(10)) / len(p)


def test_confidence_is_the_share_that_is_the_full_panels_majority():
    gaps, over = [], []
    for seed, classes in ((1, "ab"), (2, "abc"), (3, "abcde")):
        crowd = simulate_annotators(
            np.random.default_rng(seed), units=400, annotators=12, classes=tuple(classes), strength=0.8)
        seen = crowd.votes.select(_partly(crowd.votes, np.random.default_rng(seed)))
        p = FirstVotes(_data(seen, crowd.space), LadderConfig()).predict(crowd.votes.units, [], seen)["label"].consensus
        truth = _majority(crowd.votes, crowd.space.classes)
        gaps.append(_gap(p, truth))
        over.append(p.max(1).mean() - truth[np.arange(len(p)), p.argmax(1)].mean())
    assert np.mean(gaps) < 0.06 and abs(np.mean(over)) < 0.04


def test_who_votes_elsewhere_changes_nothing():
    crowd = simulate_annotators(np.random.default_rng(4), units=60, annotators=5, coverage=0.6)
    first = FirstVotes(_data(crowd.votes, crowd.space), LadderConfig())
    units = ["t0", "t1", "t2"]
    alone = first.predict(units, [], crowd.votes)["label"].consensus
    new = Vote(unit="elsewhere", annotator="somebody new", control="label", value=Value.of_class("yes"))
    given = Votes.from_votes([new, *_each(crowd.votes)])
    beside = first.predict([*units, "elsewhere"], [], given)["label"].consensus
    np.testing.assert_array_equal(alone, beside[:3])


def test_a_complete_panel_is_not_doubted():
    votes = Votes.from_votes([
        Vote(unit=f"{u}", annotator=who, control="label", value=Value.of_class("x" if u % 2 else "y"))
        for u in range(12) for who in "abc"
    ])
    p = FirstVotes(_data(votes, SPACE), LadderConfig()).predict(["1", "2"], [], votes)["label"].consensus
    np.testing.assert_array_equal(p, [[1.0, 0.0], [0.0, 1.0]])


def test_a_calibration_changes_no_label_and_stays_near_its_prior():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 200)
    votes, there = rng.integers(1, 6, 200), np.ones((200, 3), np.bool_)
    truth = np.eye(3)[p.argmax(1)]
    space = SingleChoice(("a", "b", "c"))
    few = fit_calibration(space, p[:2], votes[:2], truth[:2], np.ones(2), FROM_VOTES)
    many = fit_calibration(space, p, votes, truth, np.ones(200), FROM_VOTES)
    assert abs(few.sharpness - FROM_VOTES.centre.sharpness) < 0.1 < many.sharpness
    assert fit_calibration(space, p[:0], votes[:0], truth[:0], np.ones(0), FROM_VOTES) == FROM_VOTES.centre
    q = many.apply(space, p, votes, there)
    np.testing.assert_array_equal(q.argmax(1), p.argmax(1))
    np.testing.assert_allclose(q.sum(1), 1.0)
    several = Calibration(-0.5, 0.0, -4.0).apply(MultipleChoice(("a", "b", "c")), p, votes, there)
    np.testing.assert_array_equal(several >= 0.5, p >= 0.5)
    assert (np.maximum(several, 1 - several) <= np.maximum(p, 1 - p) + 1e-9).all()


def test_hidden_votes_are_some_but_never_all_of_a_unit():
    crowd = simulate_annotators(np.random.default_rng(5), units=80, annotators=7, coverage=0.7)
    dataset = build_dataset(_data(crowd.votes, crowd.space), LadderConfig())
    targets = dataset.controls["label"]
    left = some_left(targets.unit, 0)
    count, shown = np.bincount(targets.unit), np.bincount(targets.unit, left)
    assert (shown[count > 0] >= 1).all() and (shown[count > 1] < count[count > 1]).all()
    dense = dense_units(targets, len(dataset.annotators), left)
    assert (dense.has.sum(1) >= DENSE).all() and (dense.votes < dense.has.sum(1)).all()
    assert not (dense.left & ~dense.has).any()
    np.testing.assert_allclose(dense.truth(crowd.space).sum(1), 1.0)


def test_what_is_known_of_the_confidence_comes_from_units_with_many_votes():
    crowd = simulate_annotators(np.random.default_rng(6), units=150, annotators=8, coverage=0.8)
    check = FirstVotes(_data(crowd.votes, crowd.space), LadderConfig()).checks["label"]
    assert len(check.stated) > 100 and abs(check.stated.mean() - check.right.mean()) < 0.08
    thin = crowd.votes.select(_partly(crowd.votes, np.random.default_rng(0), most=2))
    assert FirstVotes(_data(thin, crowd.space), LadderConfig()).checks == {}


def test_a_map_of_a_version_follows_few_units_less_than_one_of_votes_alone():
    space, rng = SingleChoice(("a", "b")), np.random.default_rng(3)
    p = np.full((30, 2), (0.8, 0.2))
    truth = np.eye(2)[(rng.random(30) < 0.1).astype(int)]  # sure of .8, right in .9
    votes, each = np.full(30, 3), np.ones(30)
    version, alone = (fit_calibration(space, p, votes, truth, each, prior) for prior in (FROM_VERSION, FROM_VOTES))
    assert FROM_VERSION.centre.sharpness < version.sharpness
    assert version.sharpness - FROM_VERSION.centre.sharpness < 0.5 * (alone.sharpness - FROM_VOTES.centre.sharpness)

"""Gaps: what others voted on a unit conditions what is served, and no vote comes back to its giver."""

import numpy as np
import pytest

from model import checkpoint
from model.data.metrics import calibration_error
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes
from model.ensemble.ladder import Ladder, TrainingSet, fit

CLASSES = ("no", "maybe", "yes")
SPACE = SingleChoice(CLASSES)
UNITS, PEOPLE = 260, 7
NAMES = tuple(f"a{a}" for a in range(PEOPLE))


def _vote(unit, annotator, label):
    return Vote(unit=unit, annotator=annotator, control="label", value=Value.of_class(label))


class Project:
    """Annotators see a class that the content does not show, each through a confusion matrix of their own."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.truth = rng.integers(0, 3, UNITS)
        right = rng.uniform(0.55, 0.85, PEOPLE)
        slip = rng.integers(1, 3, (UNITS, PEOPLE))
        self.said = np.where(rng.random((UNITS, PEOPLE)) < right, self.truth[:, None],
                             (self.truth[:, None] + slip) % 3)
        self.tokens = {f"t{u}": rng.normal(size=(3, 8)).astype(np.float16) for u in range(UNITS)}

    def votes(self, pairs):
        return Votes.from_votes(_vote(f"t{u}", NAMES[a], CLASSES[self.said[u, a]]) for u, a in pairs)

    def training(self, pairs):
        return TrainingSet(
            votes=self.votes(pairs), spaces={"label": SPACE}, tokens=self.contents, heldout=lambda unit: False
        )

    def contents(self, units):
        return [self.tokens[unit] for unit in units]


@pytest.fixture(scope="module")
def project():
    return Project(3)


@pytest.fixture(scope="module")
def ladder(project, quick):
    pairs = [(u, a) for u in range(160) for a in range(PEOPLE)]
    return fit(project.training(pairs), quick).ladder


def _asked(ladder, project, units, annotators, votes=(), **more):
    given = votes if isinstance(votes, Votes) else Votes.from_votes(votes)
    return ladder.predict(project.contents(units), annotators, units=units, given=given, **more)["label"]


def test_two_votes_move_the_third_annotator_towards_them(ladder, project):
    plain = _asked(ladder, project, ["t200"], ["a2"])
    given = _asked(ladder, project, ["t200"], ["a2"], [_vote("t200", "a0", "yes"), _vote("t200", "a1", "yes")])
    assert given.served[0, 0, 2] > plain.served[0, 0, 2] + 0.2
    for name in ("conditioned", "others", "factors"):
        assert given.base_models[name][0, 0, 2] > plain.base_models[name][0, 0, 2]
    for name in ("prior", "pooled", "network"):
        np.testing.assert_array_equal(given.base_models[name], plain.base_models[name])


@pytest.mark.parametrize("who", ["a1", "stranger", "deleted:5"])
def test_a_vote_never_comes_back_to_its_giver(ladder, project, who):
    units, people = ["t200", "t201"], [who, "a0", "a4", "another stranger"]
    others = [_vote("t200", "a3", "no"), _vote("t200", "someone", "maybe")]
    found = [
        _asked(ladder, project, units, people, [*others, _vote("t200", who, label)]) for label in ("no", "yes")
    ]
    without = _asked(ladder, project, units, people, others)
    for way in ("served", "network", *ladder.base_models("label")):
        first, second, none = (
            getattr(each, way) if way in ("served", "network") else each.base_models[way] for each in (*found, without)
        )
        np.testing.assert_array_equal(first[:, 0], second[:, 0])
        np.testing.assert_allclose(first[:, 0], none[:, 0], atol=1e-6)
        np.testing.assert_array_equal(first[1], second[1])  # the other unit
    assert np.abs(found[0].served[0, 1:] - found[1].served[0, 1:]).max(-1).min() > 1e-3


def test_neither_order_nor_further_annotators_change_an_answer(ladder, project):
    units, votes = ["t200", "t201"], [_vote("t200", "a3", "no"), _vote("t201", "a0", "yes")]
    few = _asked(ladder, project, units, ["a1", "a4"], votes)
    many = _asked(ladder, project, units, ["a4", "nobody", "a0", "a1", "a2"], votes)
    np.testing.assert_array_equal(few.served, many.served[:, [3, 0]])
    turned = _asked(ladder, project, units[::-1], ["a1", "a4"], votes[::-1])
    np.testing.assert_allclose(turned.served[::-1], few.served, atol=1e-6)


def test_a_unit_without_votes_is_served_as_without_any(ladder, project):
    units = ["t200", "t201"]
    plain = ladder.predict(project.contents(units), ["a0", "a1"], units=units)["label"]
    given = _asked(ladder, project, units, ["a0", "a1"], [_vote("t200", "a3", "no")])
    np.testing.assert_array_equal(given.served[1], plain.served[1])
    np.testing.assert_array_equal(given.consensus[1], plain.consensus[1])


def test_given_votes_are_worth_it_and_the_consensus_of_few_votes_is_calibrated(ladder, project):
    units = [f"t{u}" for u in range(160, UNITS)]
    rng = np.random.default_rng(0)
    shown = np.stack([rng.permutation(PEOPLE) < 3 for _ in units])  # three votes of seven
    given = project.votes([(160 + u, a) for u, a in zip(*np.nonzero(shown), strict=True)])
    found, plain = _asked(ladder, project, units, NAMES, given), _asked(ladder, project, units, NAMES)
    said = project.said[160:]
    hidden = np.nonzero(~shown)
    loss = {
        way: -np.log(p[(*hidden, said[hidden])]).mean()
        for way, p in (("served", found.served), ("plain", plain.served), ("others", found.base_models["others"]))
    }
    assert loss["served"] < loss["plain"] - 0.1
    assert loss["served"] < loss["others"] + 0.01
    count = np.stack([(said == c).sum(1) for c in range(3)], 1)
    y = (count == count.max(1, keepdims=True)) / (count == count.max(1, keepdims=True)).sum(1, keepdims=True)
    assert calibration_error(SPACE, found.consensus, y, bins=5) < 0.1
    right = (found.consensus * y).sum(1).mean()
    assert right > (plain.consensus * y).sum(1).mean() + 0.15


def test_a_checkpoint_keeps_it_and_one_from_before_works_without(ladder, project, tmp_path):
    ladder.save(tmp_path / "now")
    votes = [_vote("t200", "a3", "no"), _vote("t200", "x", "yes")]
    expected = _asked(ladder, project, ["t200"], ["a0"], votes)
    np.testing.assert_array_equal(
        _asked(Ladder.load(tmp_path / "now"), project, ["t200"], ["a0"], votes).served, expected.served
    )
    arrays, meta = checkpoint.load(tmp_path / "now")
    old = {name: array for name, array in arrays.items() if ".labels." not in name and ".gaps." not in name}
    for control in meta["controls"]:
        del control["gaps"]
    for key in ("labels", "label_share", "self_attention"):
        del meta["config"]["network"][key]
    checkpoint.save(tmp_path / "before", old, meta)
    before = Ladder.load(tmp_path / "before")
    assert before.base_models("label") == ("prior", "pooled", "network")
    found = _asked(before, project, ["t200"], ["a0"], votes)
    np.testing.assert_array_equal(found.served, _asked(before, project, ["t200"], ["a0"]).served)
    np.testing.assert_allclose(found.network, expected.network, atol=1e-6)
    assert found.consensus[0, 0] > _asked(before, project, ["t200"], ["a0"]).consensus[0, 0] - 0.2


def test_labels_dealt_anew_leave_the_annotator_prior(project, quick):
    rng = np.random.default_rng(5)
    dealt = Project(4)
    for a in range(PEOPLE):
        dealt.said[:, a] = rng.permutation(np.where(rng.random(UNITS) < 0.5, a % 3, dealt.said[:, a]))
    found = fit(dealt.training([(u, a) for u in range(160) for a in range(PEOPLE)]), quick).ladder
    units = [f"t{u}" for u in range(160, UNITS)]
    given = dealt.votes([(u, a) for u in range(160, UNITS) for a in range(PEOPLE)])
    answer = _asked(found, dealt, units, NAMES, given)
    at = (*np.indices(dealt.said[160:].shape), dealt.said[160:])
    served, prior = (-np.log(p[at]).mean() for p in (answer.served, answer.base_models["prior"]))
    assert served == pytest.approx(prior, abs=0.02)


def test_the_same_seed_gives_the_same_bits(project, quick):
    pairs = [(u, a) for u in range(40) for a in range(PEOPLE)]
    first, second = (fit(project.training(pairs), quick).ladder for _ in range(2))
    votes = [_vote("t200", "a3", "no"), _vote("t200", "x", "yes")]
    for way in ("served", "consensus"):
        np.testing.assert_array_equal(
            *(getattr(_asked(each, project, ["t200"], ["a0"], votes), way) for each in (first, second))
        )

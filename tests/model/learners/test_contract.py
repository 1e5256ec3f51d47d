"""What every learner must keep: one suite over the registry, and over one that was registered from outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.spaces import SingleChoice, Value, ValueKind
from model.data.votes import Vote, Votes
from model.errors import CheckpointError, NotEnoughVotes
from model.learners.base import Learner, Question
from model.learners.classes import ClassesLearner
from model.learners.rankings import RankingsLearner
from model.learners.registry import LEARNERS
from model.simulate import simulate_annotators
from tests.model.learners.toy import UsualLearner
from tests.model.test_ranking_model import ITEMS, ballots

BASE = LadderConfig()
QUICK = replace(BASE, folds=2, members_per_fold=1, network=replace(BASE.network, width=16, heads=2, blocks=1, epochs=4))
UNITS = 150


def _heldout(unit: str) -> bool:
    return int(unit.lstrip("t")) % 3 == 0


@dataclass(frozen=True)
class Case:
    """A learner, votes that it can learn from, and what the units show."""

    learner: Learner[Any, Any]
    data: TrainingSet
    worse: TrainingSet  # the same, but what can be learned from says the opposite
    contains: Callable[[Value], bool]
    items: tuple[str, ...] = ()

    def question(self, votes: Votes | None = None) -> Question:
        units = ["1", "4", "7"] if self.items else ["t1", "t4", "t7"]
        return Question(
            units=units, annotators=[*self.data.votes.annotators, "nobody"], votes=votes,
            tokens=self.data.tokens(units), items={"r": [self.items] * len(units)} if self.items else {})


def _worse(data: TrainingSet, turned: Callable[[Value], Value]) -> TrainingSet:
    """What can be learned from says the opposite of what judges."""
    votes = data.votes
    out = np.array([_heldout(unit) for unit in votes.units], np.bool_)[votes.unit]
    values = (*votes.values, *map(turned, votes.values))
    value = np.where(out, votes.value, votes.value + len(votes.values)).astype(votes.value.dtype)
    return replace(data, votes=replace(votes, values=values, value=value))


def _classes() -> Case:
    crowd = simulate_annotators(np.random.default_rng(2), units=UNITS, annotators=4, classes=("no", "yes"), dim=8)
    data = TrainingSet(votes=crowd.votes, spaces={"label": crowd.space}, heldout=_heldout,
                       tokens=lambda units: [crowd.tokens[unit] for unit in units])
    worse = _worse(data, lambda value: Value.of_class("no" if value.data == "yes" else "yes"))
    return Case(ClassesLearner(config=QUICK), data, worse, SingleChoice(("no", "yes")).contains)


def _rankings() -> Case:
    votes = Votes.from_votes(ballots(60, ids_mean_something=True, spread=0.3))
    data = TrainingSet(votes=votes, spaces={}, heldout=_heldout, tokens=lambda units: [])
    worse = _worse(data, lambda value: Value(value.kind, tuple(reversed(tuple(value.data)))))
    return Case(RankingsLearner(), data, worse, lambda value: value.kind is ValueKind.RANKING, ITEMS)


def _texts() -> Case:
    rng = np.random.default_rng(0)
    votes = Votes.from_votes(
        Vote(unit=f"t{u}", annotator=who, control="note",
             value=Value(ValueKind.TEXT, str(rng.choice([who, "-"], p=[0.7, 0.3]))))
        for u in range(30) for who in ("a", "b"))
    data = TrainingSet(votes=votes, spaces={}, heldout=_heldout, tokens=lambda units: [])
    worse = _worse(data, lambda value: Value(ValueKind.TEXT, f"not {value.data}"))
    return Case(UsualLearner(), data, worse, lambda value: value.kind is ValueKind.TEXT)


CASES = {"classes": _classes, "rankings": _rankings, "texts": _texts}


@pytest.fixture(scope="module", params=sorted(CASES))
def case(request):
    return CASES[request.param]()


@pytest.fixture(scope="module")
def fitted(case):
    return case.learner.fit(case.data)


def test_every_learner_has_a_case_here():
    assert set(LEARNERS) | {UsualLearner.name} == set(CASES)
    assert all(name == learner.name for name, learner in LEARNERS.items())


def test_it_says_for_everybody_what_fits_the_control(case, fitted):
    learned = case.learner.learned(fitted)
    question = case.question()
    found = learned.answers(question)
    assert set(found) == set(learned.controls_learned) and found
    assert set(learned.annotators) == set(case.data.votes.annotators)
    for answers in found.values():
        assert len(answers.own) == len(answers.consensus) == len(question.units)
        for own, agreed in zip(answers.own, answers.consensus, strict=True):
            assert set(learned.annotators) <= set(own) <= set(question.annotators)
            assert all(case.contains(value) for value in own.values()) and case.contains(agreed)


def test_nobody_is_told_what_they_said(case, fitted):
    learned, votes = case.learner.learned(fitted), case.data.votes
    who = votes.annotators[0]
    mine = votes.select(votes.annotator == 0)
    for answers in learned.answers(case.question(mine)).values():
        assert all(who not in own for own in answers.own)


def test_a_vote_on_a_held_out_unit_teaches_nothing(case, fitted):
    votes = case.data.votes
    out = np.array([_heldout(unit) for unit in votes.units], np.bool_)[votes.unit]
    changed = replace(votes, value=np.where(out, np.roll(votes.value, 1), votes.value).astype(votes.value.dtype))
    other = case.learner.learned(case.learner.fit(replace(case.data, votes=changed))).answers(case.question())
    same = case.learner.learned(fitted).answers(case.question())
    assert {name: list(each.own) for name, each in other.items()} == {
        name: list(each.own) for name, each in same.items()}


def test_what_is_saved_is_loaded_and_answers_alike(case, fitted, tmp_path):
    learned = case.learner.learned(fitted)
    about = json.loads(json.dumps(learned.save(tmp_path / "r1")))
    again = case.learner.load(tmp_path / "r1", about)
    assert again.answers(case.question()) == learned.answers(case.question())
    assert again.controls_learned == learned.controls_learned and set(again.annotators) == set(learned.annotators)


def test_what_is_damaged_is_refused(case, fitted, tmp_path):
    about = case.learner.learned(fitted).save(tmp_path / "r1")
    for file in (tmp_path / "r1").rglob("*") if (tmp_path / "r1").exists() else ():
        file.write_bytes(file.read_bytes()[:7])
    with pytest.raises(CheckpointError):
        case.learner.load(tmp_path / "r1", {key: {"r": {"items": 3}} for key in about})


def test_too_little_is_refused(case):
    nothing = case.data.votes.select(np.zeros(len(case.data.votes), np.bool_))
    with pytest.raises(NotEnoughVotes):
        case.learner.fit(replace(case.data, votes=nothing))


def test_a_first_one_is_judged_and_what_is_worse_does_not_replace_it(case, fitted):
    first = case.learner.judge(fitted, None, case.data)
    assert first.publish and first.reason.endswith(".") and json.dumps(first.figures)
    published = case.learner.learned(fitted)
    assert case.learner.judge(fitted, published, case.data).publish
    verdict = case.learner.judge(case.learner.fit(case.worse), published, case.data)
    assert not verdict.publish and verdict.reason

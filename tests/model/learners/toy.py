"""A learner from outside the package: everybody writes what they write most often. For tests of the contract."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from model.data.dataset import TrainingSet
from model.data.judgement import Judgement
from model.data.spaces import Value, ValueKind
from model.errors import CheckpointError, NotEnoughVotes
from model.learners.base import Answers, Learned, Learner, Progress, Question, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Usual(Learned):
    texts: Mapping[str, Mapping[str, str]]  # control -> annotator -> text

    @property
    def annotators(self) -> tuple[str, ...]:
        return tuple(sorted({who for mine in self.texts.values() for who in mine}))

    @property
    def controls_learned(self) -> tuple[str, ...]:
        return tuple(self.texts)

    def answers(self, question: Question) -> dict[str, Answers]:
        votes = question.votes
        voted = set() if votes is None else {
            (votes.units[u], votes.annotators[a]) for u, a in zip(votes.unit, votes.annotator, strict=True)}
        found = {}
        for name, mine in self.texts.items():
            (most, _), = Counter(mine.values()).most_common(1)
            found[name] = Answers(consensus=[Value(ValueKind.TEXT, most)] * len(question.units), own=[
                {who: Value(ValueKind.TEXT, mine[who]) for who in question.annotators
                 if who in mine and (unit, who) not in voted} for unit in question.units])
        return found

    def save(self, folder: Path) -> dict[str, Any]:
        folder.mkdir(parents=True)
        (folder / "texts.json").write_text(json.dumps(self.texts))
        return {}


@dataclass(frozen=True, kw_only=True)
class UsualLearner(Learner[Usual, Usual]):
    name: ClassVar[str] = "texts"

    def fit(
        self, data: TrainingSet, previous: Usual | None = None, *, progress: Progress = silent, device: str = "cpu"
    ) -> Usual:
        given: dict[str, dict[str, list[str]]] = {}
        votes = data.votes
        for u, a, c, v in zip(votes.unit, votes.annotator, votes.control, votes.value, strict=True):
            if not data.heldout(votes.units[u]):
                given.setdefault(votes.controls[c], {}).setdefault(votes.annotators[a], []).append(
                    str(votes.values[v].data))
        if not given:
            raise NotEnoughVotes("there is no text to learn from")
        return Usual(texts={name: {who: Counter(sorted(texts)).most_common(1)[0][0] for who, texts in mine.items()}
                            for name, mine in given.items()})

    def learned(self, fitted: Usual) -> Usual:
        return fitted

    def judge(self, fitted: Usual, published: Usual | None, data: TrainingSet) -> Judgement:
        votes = data.votes

        def right(one: Usual) -> int:
            return sum(one.texts[votes.controls[c]].get(votes.annotators[a]) == votes.values[v].data
                       for u, a, c, v in zip(votes.unit, votes.annotator, votes.control, votes.value, strict=True)
                       if data.heldout(votes.units[u]))

        new, old = right(fitted), 0 if published is None else right(published)
        return Judgement(publish=new >= old, reason=f"{new} texts are right, {old} were.", figures={"right": new})

    def load(self, folder: Path, about: Mapping[str, Any], *, device: str = "cpu") -> Usual:
        try:
            return Usual(texts=json.loads((folder / "texts.json").read_text()))
        except (OSError, ValueError) as error:
            raise CheckpointError("the texts cannot be read") from error

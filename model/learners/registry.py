"""All learners by name. A control names the one that learns its votes."""

from __future__ import annotations

from typing import Any

from model.learners.base import Learner
from model.learners.classes import ClassesLearner
from model.learners.rankings import RankingsLearner

CLASSES, RANKINGS = ClassesLearner.name, RankingsLearner.name
LEARNERS: dict[str, type[Learner[Any, Any]]] = {learner.name: learner for learner in (ClassesLearner, RankingsLearner)}

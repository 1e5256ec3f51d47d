"""Badges: what is said of people whom a model foresees, of people it does not, and of people with few votes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from backend.records import Verdict, Version
from backend.services.statistics.documents import Foreseen, Learned
from backend.services.statistics.foreseen import ENOUGH, FEWEST, by_version, foreseen
from model.data.spaces import SingleChoice, Value
from model.data.votes import Vote, Votes

SPACE = SingleChoice(("Polite", "Neutral", "Impolite"))


def judged(said: Any, right: float, sure: float = 0.8, seed: int = 0) -> Foreseen:
    """Somebody who `said` these classes, of which the model foresees a share."""
    rng = np.random.default_rng(seed)
    said = np.asarray(said)
    n = len(said)
    votes = Votes.from_votes(Vote(unit=f"{at:04}", annotator="7", control="tone",
                                  value=Value.of_class(SPACE.classes[k]))
                             for at, k in enumerate(said))
    hit = rng.permutation(n) < round(right * n)
    expected = np.where(hit, said, (said + 1) % 3)
    served = np.full((n, 3), (1 - sure) / 2)
    served[np.arange(n), expected] = sure
    prior = np.tile(np.bincount(said, minlength=3) / n, (n, 1)) * 0.98 + 0.02 / 3
    subject = SimpleNamespace(name="tone", space=SPACE, votes=votes, served=served, prior=prior)
    (one,) = foreseen(cast(Any, subject))
    return one


def varied(n: int) -> Any:
    return np.random.default_rng(1).choice(3, n, p=[0.25, 0.5, 0.25])


def test_somebody_foreseen_beyond_their_commonest_label_is_learned() -> None:
    one = judged(varied(120), 0.8)
    assert one.badge is Learned.LEARNED and one.votes == 120
    assert one.usual == "Neutral" and one.gain.low is not None and one.gain.low > 0
    share = round(100 * cast(float, one.usual_accuracy))
    assert one.sentence.startswith("Learned: right in 80 % [72, 86] of 120 votes it had not seen; ")
    assert one.sentence.endswith(f"always saying Neutral would be right in {share} %.")


def test_random_labels_are_not_foreseen_and_nobody_is_blamed() -> None:
    one = judged(varied(150), 0.4)
    assert one.badge is Learned.NOT_YET
    assert one.sentence.startswith("The model cannot foresee these labels yet: right in 40 %")
    assert "nothing about their quality" in one.sentence


@pytest.mark.parametrize("votes", [0, 1, FEWEST - 1])
def test_few_votes_say_nothing(votes: int) -> None:
    subject = judged(varied(max(votes, 1)), 1.0)
    if votes:
        assert subject.badge is Learned.LEARNING and subject.votes == votes
        assert subject.accuracy.value is None and f"from {FEWEST} on" in subject.sentence


def test_between_few_and_enough_it_is_learned_or_still_open() -> None:
    assert judged(varied(FEWEST + 10), 0.95, sure=0.9).badge is Learned.LEARNED
    one = judged(varied(ENOUGH - 5), 0.5, sure=0.4)
    assert one.badge is Learned.LEARNING and "too close to tell" in one.sentence


def test_somebody_who_nearly_always_gives_one_label_is_not_called_unforeseen() -> None:
    """Always saying Neutral is right in 95 %: no accuracy can be gained, and none is claimed."""
    said = np.where(np.arange(100) % 20 == 0, 0, 1)
    one = judged(said, 0.95, sure=0.9)
    assert one.badge is Learned.LEARNED
    assert one.sentence.endswith("would be right in 95 %, which leaves little to learn.")
    assert one.gain.value == pytest.approx(0.0, abs=0.06)
    assert judged(said, 0.7, sure=0.9).badge is Learned.NOT_YET, "a model that is right less often has learned nothing"


def test_votes_without_a_prediction_are_not_counted() -> None:
    subject = SimpleNamespace(
        name="tone", space=SPACE, served=np.full((1, 3), np.nan), prior=np.full((1, 3), np.nan),
        votes=Votes.from_votes([Vote(unit="1", annotator="7", control="tone", value=Value.of_class("Polite"))]))
    (one,) = foreseen(cast(Any, subject))
    assert one.votes == 0 and one.sentence.startswith("Still learning: each vote counts at once")


def test_the_way_by_version_is_oldest_first_and_survives_odd_figures() -> None:
    base = Version(project="7.1", name="r1", number=1, path="", verdict=Verdict.PUBLISHED, reason="", changes=0,
                   figures={"by_annotator": {"tone": {"7": [12, 0.5, 1.1, 1.2]}}},
                   created_at=datetime(2026, 11, 1, tzinfo=UTC))
    newer = replace(base, name="r2", number=2, verdict=Verdict.REJECTED,
                    figures={"by_annotator": {"tone": {"7": [14, 0.6, 1.0, 1.2], "8": ["odd"]}}})
    found = by_version("tone", [newer, base, replace(base, figures={}), replace(base, figures={"by_annotator": 3})])
    assert [(each.version, each.votes, each.published) for each in found["7"]] == [("r1", 12, True), ("r2", 14, False)]
    assert "8" not in found and by_version("other", [base]) == {}

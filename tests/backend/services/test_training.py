"""Training: what is learned from, what is left out, and what is recorded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import model.ensemble.ladder as ladder_module
from backend.errors import JobFailed
from backend.records import Verdict
from backend.services.token_cache import TokenCache
from model.data.splits import is_heldout
from model.data.votes import Provenance
from model.ensemble.ladder import Judgement
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import ANNOTATORS, CONFIG, KEY, answer, fill, snapshot, texts, vote
from tests.backend.services.workshop import LEARNING, Workshop, silent, workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    shop = workshop(tmp_path)
    fill(shop.store)
    return shop


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `fit` is called with; it does its work all the same."""
    calls: list[dict[str, Any]] = []
    fit = ladder_module.fit

    def watched(data: Any, config: Any, **rest: Any) -> Any:
        calls.append({"data": data, "config": config, **rest})
        return fit(data, config, **rest)

    monkeypatch.setattr(ladder_module, "fit", watched)
    return calls


def verdict(monkeypatch: pytest.MonkeyPatch, publish: bool) -> None:
    judgement = Judgement(publish=publish, reason="So says the test.", figures={"loss": 0.5})
    monkeypatch.setattr(ladder_module, "judge", lambda *_, **__: judgement)


def test_a_first_training_publishes_a_version_that_knows_the_annotators(shop: Workshop) -> None:
    outcome = shop.train()
    assert (outcome["verdict"], outcome["version"], outcome["votes"]) == (Verdict.PUBLISHED, "r1", 120)
    loaded = shop.registry.published(KEY)
    assert loaded is not None and set(ANNOTATORS) <= set(loaded.ladder.annotators)
    figures = loaded.version.figures
    assert figures["encoder"] == shop.encoder.id
    assert figures["votes"] == 120 and figures["annotators"] == 3 and figures["started_from"] == "scratch"
    assert loaded.version.changes == shop.store.votes.counts(KEY).changes
    assert loaded.version.reason and "controls" in figures


def test_what_was_learned_differs_by_annotator_and_content(tmp_path: Path) -> None:
    shop = workshop(tmp_path, ladder=LEARNING)
    fill(shop.store)
    shop.train()
    loaded = shop.registry.published(KEY)
    assert loaded is not None
    fresh = texts(60)[40:]  # nobody voted on these
    served = loaded.ladder.predict(shop.features.texts(fresh), ANNOTATORS)["politeness"].served  # (B, A, 2)
    classes = loaded.ladder.spaces["politeness"].classes
    right = [[classes[int(np.argmax(row))] == answer(who, text) for who, row in zip(ANNOTATORS, rows, strict=True)]
             for text, rows in zip(fresh, served, strict=True)]
    assert np.mean(right) > 0.9, f"{np.mean(right):.2f} of 60 gaps are right"


def test_heldout_tasks_are_those_of_the_stable_hash(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop.train()
    heldout = seen[0]["data"].heldout
    units = [str(number) for number in range(1, 200)]
    assert [heldout(unit) for unit in units] == [is_heldout(KEY, unit, 20.0) for unit in units]


def test_the_tokens_of_a_unit_are_those_of_its_text(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop.train()
    (first, second) = seen[0]["data"].tokens(["40", "3"])
    np.testing.assert_array_equal(first, WordHashEncoder().encode([texts()[39]])[0])
    np.testing.assert_array_equal(second, WordHashEncoder().encode([texts()[2]])[0])
    assert seen[0]["data"].texts(["40", "3"]) == [texts()[39], texts()[2]]
    assert len(shop.encoder.encoded) == 40  # each text once, although fit asks for it again and again


def test_too_few_votes_are_a_sentence(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    with pytest.raises(JobFailed, match="unknown"):
        shop.train()
    fill(shop.store, labelled=6)
    with pytest.raises(JobFailed, match=r"at least 20 votes; there are 18\.") as failure:
        shop.train()
    assert failure.value.retry_in_s is None
    assert shop.store.versions.recent(KEY) == []
    fill(shop.store, labelled=7)
    assert shop.train()["votes"] == 21


def test_the_minimum_is_the_projects_own_where_it_has_one(shop: Workshop) -> None:
    shop.store.projects.update_settings(KEY, {"min_votes": 500})
    with pytest.raises(JobFailed, match="at least 500 votes"):
        shop.train()


def test_one_answer_alone_is_nothing_to_learn(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    fill(shop.store, labelled=0)
    shop.store.tasks.take_over(KEY, [snapshot(n, "some text", [vote(n, "1", "rude")]) for n in range(1, 31)])
    with pytest.raises(JobFailed, match="two different answers"):
        shop.train()


def test_votes_that_cannot_be_used_are_left_out_and_counted(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop.store.tasks.take_over(KEY, [
        snapshot(50, texts()[49], [vote(50, "1", "a label that was removed"), vote(50, "2", "rude")]),
        snapshot(51, texts()[50], [vote(51, "1", "rude", control="a control that was removed")]),
        snapshot(52, "  ", [vote(52, "1", "rude"), vote(52, "2", "rude"), vote(52, "3", "rude")]),
    ])
    outcome = shop.train()
    assert outcome["votes"] == 121
    assert outcome["left_out"] == {"outside the label config": 2, "on tasks without text": 3}
    learned = seen[0]["data"].votes
    assert {learned.units[index] for index in learned.unit} == {*(str(n) for n in range(1, 41)), "50"}


def test_what_is_left_out_is_said_when_too_little_remains(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    fill(shop.store, labelled=0)
    shop.store.tasks.take_over(KEY, [snapshot(n, "text", [vote(n, "1", "gone")]) for n in range(1, 31)])
    with pytest.raises(JobFailed, match=re.escape("there are 0 (30 more outside the label config cannot be used)")):
        shop.train()


def test_a_label_that_was_removed_is_not_in_the_new_space(shop: Workshop) -> None:
    shop.store.projects.ensure(KEY, label_config=CONFIG.replace('<Choice value="rude"/>', '<Choice value="blunt"/>'))
    with pytest.raises(JobFailed, match="two different answers"):
        shop.train()


def test_echoes_weigh_less_and_anchored_votes_do_not_score(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop = shop.having(echo_weight=0.25)
    shop.store.tasks.take_over(KEY, [
        snapshot(1, texts()[0], [
            vote(1, "1", "rude", provenance=Provenance.ACCEPTED, shown=True),
            vote(1, "2", "rude", provenance=Provenance.CHANGED, shown=True, control_arm=True),
            vote(1, "3", "rude"),
        ])
    ])
    shop.train()
    votes, config = seen[0]["data"].votes, seen[0]["config"]
    assert config.echo_weight == 0.25
    rows = {votes.annotators[votes.annotator[row]]: row for row in np.flatnonzero(votes.unit == votes.units.index("1"))}
    assert {who: bool(votes.scored[row]) for who, row in rows.items()} == {"1": False, "2": True, "3": True}
    assert votes.provenance[rows["1"]] == Provenance.ACCEPTED
    assert votes.weight[rows["1"]] == 1.0  # the ladder weighs echoes; twice would be too little


def test_the_next_training_goes_on_from_the_published_version(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop.train()
    fill(shop.store, labelled=45)
    shop.train()
    assert seen[0]["previous"] is None
    assert seen[1]["previous"] is not None and seen[1]["previous"].annotators == ANNOTATORS
    assert shop.store.versions.recent(KEY)[0].figures["started_from"] == "r1"


def test_a_training_that_begins_from_nothing_by_itself_says_so(tmp_path: Path, seen: list[dict[str, Any]]) -> None:
    """Or, when it is rejected, the same would be tried again at once as a version from scratch."""
    shop = workshop(tmp_path)
    fill(shop.store, labelled=20)
    shop.train()
    fill(shop.store, labelled=60)
    shop.train()
    assert seen[1]["previous"] is not None
    assert shop.store.versions.recent(KEY)[0].figures["started_from"] == "scratch"


def test_a_rejected_version_is_recorded_and_the_next_training_starts_from_scratch(
    shop: Workshop, seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.train()
    verdict(monkeypatch, publish=False)
    outcome = shop.train()
    assert outcome["verdict"] == Verdict.REJECTED
    assert outcome["reason"] == "So says the test." and outcome["next_is_full"]
    recorded = shop.store.versions.recent(KEY)[0]
    assert (recorded.name, recorded.verdict, recorded.figures["gate"]) == ("r2", Verdict.REJECTED, {"loss": 0.5})
    published = shop.store.versions.published(KEY)
    assert published is not None and published.name == "r1"
    verdict(monkeypatch, publish=True)
    assert shop.train()["verdict"] == Verdict.PUBLISHED
    assert [call["previous"] is None for call in seen] == [True, False, True]


def test_the_gate_is_told_how_far_the_published_version_fell_behind(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[float] = []

    def watched(*_: Any, behind: float, **__: Any) -> Judgement:
        told.append(behind)
        fell = {1: {}, 2: {"behind": 0.003}, 3: {"behind": 0.009}, 4: {"behind": 0.001}}[len(told)]
        return Judgement(publish=len(told) != 3, reason="So says the test.", figures=fell)

    monkeypatch.setattr(ladder_module, "judge", watched)
    for _ in range(4):
        shop.train()
    assert told == [0.0, 0.0, 0.003, 0.003]  # of the third, which was rejected, nothing is kept


def test_a_full_training_can_be_asked_for(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    shop.train()
    shop.training.run(KEY, silent, full=True)
    assert seen[1]["previous"] is None


def test_another_encoder_starts_from_scratch(shop: Workshop, seen: list[dict[str, Any]], tmp_path: Path) -> None:
    shop.train()
    shop.features.close()
    other = WordHashEncoder(24, name="other")
    shop.features._factory = lambda: other
    shop.features._encoder = None
    assert shop.train()["verdict"] == Verdict.PUBLISHED
    assert seen[1]["previous"] is None
    assert shop.store.versions.recent(KEY)[0].figures["encoder"] == "other-24"


def test_features_of_another_width_start_from_scratch(shop: Workshop, seen: list[dict[str, Any]]) -> None:
    """The labeling configuration shows other things now, an image beside the text for instance."""
    shop.train()
    shop.features.close()
    wider = WordHashEncoder(24, name="other")
    wider.id = shop.encoder.id
    shop.features._factory = lambda: wider
    shop.features._encoder = None
    shop.features._cache = TokenCache(shop.features._cache._folder.with_name("wider"), max_mb=16)
    assert shop.train()["verdict"] == Verdict.PUBLISHED
    assert seen[1]["previous"] is None


def test_where_more_is_held_out_now_only_what_neither_version_saw_judges(
    shop: Workshop, seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Any] = []
    judge = ladder_module.judge

    def watched(fitted: Any, published: Any, data: Any, config: Any, **more: Any) -> Judgement:
        judged.append(data)
        judge(fitted, published, data, config, **more)
        return Judgement(publish=True, reason="So says the test.", figures={})

    monkeypatch.setattr(ladder_module, "judge", watched)
    shop.train()
    shop.having(heldout_percent=50.0).train()
    shop.having(heldout_percent=50.0).train()
    shop.having(heldout_percent=20.0).train()
    units = [str(number) for number in range(1, 200)]

    def sides(data: Any) -> list[float]:
        held = [data.heldout(unit) for unit in units]
        return [percent for percent in (20.0, 50.0) if held == [is_heldout(KEY, unit, percent) for unit in units]]

    assert [sides(call["data"]) for call in seen] == [[20.0], [50.0], [50.0], [20.0]]
    assert [sides(data) for data in judged] == [[20.0], [20.0], [50.0], [20.0]]
    assert [call["previous"] is None for call in seen] == [True, True, False, False]
    recorded = [version.figures["heldout_percent"] for version in shop.store.versions.recent(KEY)]
    assert recorded == [20.0, 50.0, 50.0, 20.0]


def test_votes_of_accounts_that_are_gone_are_those_of_nobody(shop: Workshop) -> None:
    shop.store.tasks.take_over(KEY, [
        snapshot(n, texts()[n - 1], [vote(n, f"deleted:{n}", "rude")]) for n in range(41, 51)
    ])
    assert shop.train()["votes"] == 130
    loaded = shop.registry.published(KEY)
    assert loaded is not None and loaded.ladder.annotators == ANNOTATORS


def test_votes_that_arrive_while_it_trains_make_the_next_one_due(shop: Workshop) -> None:
    before = shop.store.votes.counts(KEY).changes

    def progress(fraction: float, note: str) -> None:
        if fraction > 0:
            fill(shop.store, labelled=50)

    outcome = shop.training.run(KEY, progress)
    assert (outcome["changes"], outcome["votes"]) == (before, 120)
    assert shop.store.votes.counts(KEY).changes > before


def test_progress_can_stop_it_and_nothing_is_recorded(shop: Workshop) -> None:
    class Stop(Exception):
        pass

    def progress(fraction: float, note: str) -> None:
        if fraction > 0.5:
            raise Stop

    with pytest.raises(Stop):
        shop.training.run(KEY, progress)
    assert shop.store.versions.recent(KEY) == []


def test_progress_grows(shop: Workshop) -> None:
    told: list[float] = []
    shop.training.run(KEY, lambda fraction, note: told.append(fraction))
    assert told == sorted(told) and told[0] == 0.0 and told[-1] <= 1.0

"""Answers that are kept: found again while nothing changed, never after anything did, whichever process changed it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from backend.services import prediction as prediction_module
from backend.services.kept_answers import KeptAnswers, MadeFrom
from backend.store import open_store
from tests.backend.services.politeness import CONFIG, KEY, snapshot, texts, vote
from tests.backend.services.workshop import Workshop, trained, workshop_of


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(template: Path, tmp_path: Path) -> Workshop:
    return workshop_of(template, tmp_path)


def task(number: int, **changes: Any) -> dict[str, Any]:
    return {"id": number, "data": {"text": texts()[number - 1]}, "annotations": [], "predictions": [], **changes}


class Asking:
    """One serving process, whose forwards are counted."""

    def __init__(self, shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shop, self.prediction = shop, shop.prediction
        self.forwards: list[int] = []  # tasks of each
        real = prediction_module.predict_together

        def counted(ladder: Any, config: Any, works: Any, *, name: str) -> Any:
            self.forwards.append(sum(len(work.tasks) for work in works))
            return real(ladder, config, works, name=name)

        monkeypatch.setattr(prediction_module, "predict_together", counted)

    def __call__(self, *numbers: int, config: str = CONFIG, **changes: Any) -> Any:
        return self.prediction.answer(KEY, config, [task(n, **changes) for n in numbers], deadline_s=90.0)

    def afresh(self, *numbers: int, config: str = CONFIG, **changes: Any) -> Any:
        """What a process says that has kept nothing."""
        return self.shop.prediction.answer(KEY, config, [task(n, **changes) for n in numbers], deadline_s=90.0)


@pytest.fixture
def asking(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Asking:
    return Asking(shop, monkeypatch)


def test_the_same_question_is_computed_once(asking: Asking) -> None:
    first = asking(41)
    assert asking(41) == first and asking.forwards == [1]
    assert asking(41, 42)[0] == first[0] and asking.forwards == [1, 1]  # only the other task


def test_an_answer_that_is_changed_by_who_got_it_is_none_the_worse(asking: Asking) -> None:
    first = asking(41)
    again = asking(41)
    again[0][0]["result"].clear()
    assert asking(41) == first


def test_a_vote_that_another_process_stored_is_seen_at_once(asking: Asking, shop: Workshop) -> None:
    before = asking(41)
    other = open_store(shop.settings.database_url)  # as a process of its own opens it
    other.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "2", "rude")])])
    after = asking(41)
    assert after == asking.afresh(41) != before
    other.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "2", "polite")])])  # somebody changes their mind
    changed = asking(41)
    assert changed == asking.afresh(41) != after
    other.tasks.take_over(KEY, [snapshot(41, texts()[40], [])])  # and withdraws it
    assert asking(41) == before
    other.close()


def test_a_new_version_a_setting_and_another_text_are_seen_at_once(asking: Asking, shop: Workshop) -> None:
    asking(41)
    shop.publish()
    assert asking(41)[0][-1]["model_version"] == "consensus@r2"
    shop.store.projects.update_settings(KEY, {"annotators_per_task": 1})
    assert [each["model_version"] for each in asking(41)[0]] == ["annotator:1@r2", "consensus@r2"]
    shop.store.projects.update_settings(KEY, {"annotators_per_task": None, "shadow_mode": True})
    assert asking(41) == [[]]
    shop.store.projects.update_settings(KEY, {"shadow_mode": None})
    other = {"data": {"text": texts()[49]}}
    assert asking(41, **other) == asking.afresh(41, **other)


def test_a_label_that_is_gone_is_not_offered_from_what_is_kept(asking: Asking) -> None:
    asking(*range(41, 61))
    config = CONFIG.replace('<Choice value="rude"/>', '<Choice value="blunt"/>')
    said = {region["value"]["choices"][0] for one in asking(*range(41, 61), config=config) for each in one
            for region in each["result"]}
    assert "rude" not in said and said


def test_who_annotated_in_the_meantime_gets_no_own_prediction(asking: Asking) -> None:
    asking(41)
    ahead = [{"completed_by": 1, "was_cancelled": False}]
    assert [each["model_version"] for each in asking(41, annotations=ahead)[0]] == [
        "annotator:2@r1", "annotator:3@r1", "consensus@r1"]


def test_a_newcomers_vote_on_another_task_changes_their_answers(asking: Asking, shop: Workshop) -> None:
    shop.features.texts(list(texts()))
    shop.store.tasks.take_over(KEY, [snapshot(60, texts()[59], [vote(60, "77", "rude")])])
    before = asking(41)
    assert "annotator:77@r1" in [each["model_version"] for each in before[0]]
    shop.store.tasks.take_over(KEY, [snapshot(n, texts()[n - 1], [vote(n, "77", "rude")]) for n in range(50, 60)])
    assert asking(41) == asking.afresh(41) != before


def test_the_arm_withholds_from_what_is_kept_as_from_what_is_not(shop: Workshop) -> None:
    whole = shop.having(control_arm_percent=100.0, middleware=True).prediction
    for _ in range(2):
        (one,) = whole.answer(KEY, CONFIG, [task(41)], deadline_s=90.0)
        assert [each["model_version"] for each in one] == ["consensus@r1"]


def test_what_is_kept_is_bounded() -> None:
    made_from = MadeFrom(("1.1", 0), b"x", ())
    kept = KeptAnswers(most=3, most_bytes=20_000)
    for number in range(5):
        kept.keep(MadeFrom(("1.1", number), b"x", ()), [{"score": number}])
    assert [bool(kept.find(MadeFrom(("1.1", number), b"x", ()))) for number in range(5)] == [False, False, True, True,
                                                                                          True]
    kept.keep(made_from, [{"result": "x" * 30_000}])  # larger than all there may be
    assert kept.find(made_from) == [] and kept._bytes == 0 and not kept._kept
    for _ in range(3):
        kept.keep(made_from, [{"score": 1}])  # in place of itself
    assert len(kept._kept) == 1 and kept._bytes < 2000


def test_many_at_once_are_answered_as_one_after_another(asking: Asking, shop: Workshop) -> None:
    """Votes and a version come in meanwhile; whoever asks in the end gets what a fresh process says."""
    numbers = list(range(41, 61))
    shop.features.texts(list(texts()))
    alone = {n: asking.afresh(n) for n in numbers}
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(asking, numbers)) == [alone[n] for n in numbers]
        changing = pool.submit(lambda: [
            shop.store.tasks.take_over(KEY, [snapshot(n, texts()[n - 1], [vote(n, "2", "rude")])]) for n in numbers])
        answers = [pool.submit(asking, n) for _ in range(3) for n in numbers]
        shop.publish()
        for each in answers:
            (one,) = each.result(60)
            assert {version["model_version"].rpartition("@")[2] for version in one} in ({"r1"}, {"r2"})  # never mixed
        changing.result(60)
        assert list(pool.map(asking, numbers)) == [asking.afresh(n) for n in numbers]


def test_after_a_vote_a_task_is_answered_without_being_read_again(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    committee = asking.shop.registry.published(KEY).ladder.committee  # type: ignore[union-attr]
    read, real = [], committee.network._read
    monkeypatch.setattr(committee.network, "_read", lambda *parts: read.append(len(parts[0])) or real(*parts))
    before = asking(41)
    asking.shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "2", "rude")])])
    after = asking(41)
    assert after != before and asking.forwards == [1, 1] and read == [1]

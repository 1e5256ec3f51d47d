"""/predict's answers: who gets what, in which order, in time, and what is held back."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from backend.errors import LabelConfigError
from backend.labeling import in_control_arm, parse_config, task_in_control_arm
from tests.backend.encoders import WordHashEncoder
from tests.backend.services.politeness import (
    CONFIG,
    KEY,
    LABEL_STUDIO_ID,
    answer,
    fill,
    snapshot,
    texts,
    vote,
)
from tests.backend.services.workshop import NOON, Workshop, trained, workshop, workshop_of

OPEN = range(41, 61)  # tasks without votes


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(template: Path, tmp_path: Path) -> Workshop:
    return workshop_of(template, tmp_path)


def task(number: int, **changes: Any) -> dict[str, Any]:
    """As Label Studio sends it."""
    return {"id": number, "data": {"text": texts()[number - 1]}, "annotations": [], "predictions": [], **changes}


def ask(shop: Workshop, *tasks: dict[str, Any], config: str | None = CONFIG, deadline_s: float = 90.0) -> Any:
    return shop.prediction.answer(KEY, config, tasks, deadline_s=deadline_s)


def versions(answer: list[dict[str, Any]]) -> list[str]:
    return [prediction["model_version"] for prediction in answer]


def label(prediction: dict[str, Any]) -> str:
    (region,) = prediction["result"]
    assert (region["from_name"], region["to_name"], region["type"]) == ("politeness", "text", "choices")
    (choice,) = region["value"]["choices"]
    return str(choice)


def test_each_annotator_gets_their_own_and_the_consensus_is_last(shop: Workshop) -> None:
    answers = ask(shop, *(task(number) for number in OPEN))
    assert [versions(one) for one in answers] == [
        ["annotator:1@r1", "annotator:2@r1", "annotator:3@r1", "consensus@r1"]
    ] * len(OPEN)
    right = [label(prediction) == answer(who, texts()[number - 1])
             for number, one in zip(OPEN, answers, strict=True) for who, prediction in zip("123", one, strict=False)]
    assert sum(right) / len(right) > 0.9
    assert len({label(one[0]) for one in answers}) == 2  # it goes by content
    assert any(label(one[0]) != label(one[1]) for one in answers)  # and by annotator


def test_the_consensus_carries_the_version_that_setup_names(shop: Workshop) -> None:
    assert shop.prediction.version(KEY) == "consensus@r1" == ask(shop, task(41))[0][-1]["model_version"]
    shop.publish()
    assert shop.prediction.version(KEY) == "consensus@r2" == ask(shop, task(41))[0][-1]["model_version"]
    assert shop.prediction.version("99.1") == "consensus@r0"


def test_scores_are_the_confidence_of_the_value(shop: Workshop) -> None:
    loaded = shop.registry.published(KEY)
    assert loaded is not None
    (one,) = ask(shop, task(45))
    moved = shop.prediction.newcomers.of(KEY, loaded, parse_config(CONFIG), "123")
    expected = loaded.ladder.predict(shop.features.texts([texts()[44]]), ["1", "2", "3"], units=["45"],
                                     texts=[texts()[44]], newcomers=moved)["politeness"]
    for index, prediction in enumerate(one[:3]):
        assert prediction["score"] == pytest.approx(expected.served[0, index].max(), abs=1e-3)
    assert one[-1]["score"] == pytest.approx(expected.consensus[0].max(), abs=0.1)  # sampled
    assert all(0.5 <= prediction["score"] <= 1.0 for prediction in one)


def test_who_voted_gets_no_prediction_of_their_own(shop: Workshop) -> None:
    shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "2", "rude")])])
    assert versions(ask(shop, task(41))[0]) == ["annotator:1@r1", "annotator:3@r1", "consensus@r1"]
    ahead = [{"completed_by": 1, "was_cancelled": False}, {"completed_by": {"id": 3}, "was_cancelled": True},
             {"completed_by": None}, "nonsense"]
    assert versions(ask(shop, task(41, annotations=ahead))[0]) == ["annotator:3@r1", "consensus@r1"]


def test_the_most_active_come_first_and_a_setting_limits_them(shop: Workshop) -> None:
    shop.store.tasks.take_over(KEY, [snapshot(n, texts()[n - 1], [vote(n, "3", "rude")]) for n in (41, 42)])
    shop.store.tasks.take_over(KEY, [snapshot(43, texts()[42], [vote(43, "2", "rude")])])
    shop.store.tasks.take_over(KEY, [snapshot(44, texts()[43], [vote(44, "deleted:9", "rude")])])
    assert versions(ask(shop.having(annotators_per_task=2), task(50))[0]) == [
        "annotator:3@r1", "annotator:2@r1", "consensus@r1"]
    assert versions(ask(shop.having(annotators_per_task=0), task(50))[0]) == ["consensus@r1"]
    assert len(ask(shop, task(50))[0]) == 4  # "deleted:9" cannot log in


def test_nothing_is_ready_before_the_first_version(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    assert ask(shop, task(1)) == [[]]
    fill(shop.store)
    assert shop.prediction.version(KEY) == "consensus@r0"
    assert ask(shop, task(41), task(42)) == [[], []]
    assert shop.store.deliveries.shown_since(KEY, [41, 42]) == {}


def test_a_task_without_text_gets_nothing_and_the_others_their_answer(shop: Workshop) -> None:
    answers = ask(shop, task(41), task(42, data={}), task(43, data={"other": "x"}), task(44, data={"text": ""}),
                  task(45))
    assert [len(one) for one in answers] == [4, 0, 0, 0, 4]
    assert set(shop.store.deliveries.shown_since(KEY, list(OPEN))) == {41, 45}


def test_what_cannot_be_encoded_in_time_gets_nothing(shop: Workshop) -> None:
    shop.features.texts([texts()[40]])
    answers = ask(shop, task(41), task(42), deadline_s=0.0)
    assert [len(one) for one in answers] == [4, 0]
    assert [len(one) for one in ask(shop, task(42), deadline_s=5.0)] == [4]


def test_the_same_task_twice_is_answered_twice(shop: Workshop) -> None:
    first, second = ask(shop, task(41), task(41))
    assert first == second and len(first) == 4


def test_a_label_that_was_removed_is_not_offered(shop: Workshop) -> None:
    config = CONFIG.replace('<Choice value="rude"/>', '<Choice value="blunt"/>')
    answers = ask(shop, *(task(number) for number in OPEN), config=config)
    assert {label(prediction) for one in answers for prediction in one} == {"polite"}
    assert min(one[0]["score"] for one in answers) < 0.5  # nothing is known about "blunt"
    assert ask(shop, task(41), config=CONFIG.replace('"polite"', '"a"').replace('"rude"', '"b"')) == [[]]
    assert ask(shop, task(41), config=CONFIG.replace("politeness", "tone")) == [[]]
    assert ask(shop, task(41), config=CONFIG.replace("toName", 'choice="multiple" toName')) == [[]]


def test_an_alias_in_the_request_is_what_is_answered(shop: Workshop) -> None:
    config = CONFIG.replace('value="polite"', 'value="polite" alias="p"')
    found = {label(prediction) for one in ask(shop, *(task(n) for n in OPEN), config=config) for prediction in one}
    assert found == {"p", "rude"}


def test_a_task_that_brings_its_own_options_is_answered_with_one_of_them(shop: Workshop) -> None:
    config = CONFIG.partition("<Choices")[0] + '<Choices name="politeness" toName="text" value="$options"/></View>'
    offered = [["rude"], ["polite"], ["polite", "rude"], ["neither"], ["rude", "neither"]]
    tasks = [task(41, data={"text": texts()[40], "options": [{"value": name} for name in names]}) for names in offered]
    answers = ask(shop, *tasks, config=config)
    assert [len(one) for one in answers] == [4, 4, 4, 0, 4]
    for one, names in zip(answers, offered, strict=True):
        assert {label(prediction) for prediction in one} <= set(names)
    assert {one["score"] for one in answers[0]} == {1.0}  # there is no other answer
    plain = ask(shop, task(41))[0]
    assert [label(one) for one in answers[2]] == [label(one) for one in plain]


@pytest.mark.parametrize("config", [None, ""])
def test_without_a_config_that_of_the_project_holds(shop: Workshop, config: str | None) -> None:
    assert len(ask(shop, task(41), config=config)[0]) == 4


def test_a_config_that_cannot_be_read_is_the_callers_fault(shop: Workshop) -> None:
    with pytest.raises(LabelConfigError):
        ask(shop, task(41), config="<View>")


def test_in_shadow_mode_nothing_is_shown(shop: Workshop) -> None:
    assert ask(shop.having(shadow_mode=True), task(41)) == [[]]
    shop.store.projects.update_settings(KEY, {"shadow_mode": True})
    assert ask(shop, task(41)) == [[]]
    assert shop.store.deliveries.shown_since(KEY, [41]) == {}


def test_that_predictions_were_shown_is_remembered(shop: Workshop) -> None:
    ask(shop, task(41))
    assert shop.store.deliveries.shown_since(KEY, [41, 42]) == {41: NOON}


def arm_log(shop: Workshop) -> set[tuple[int, str]]:
    with sqlite3.connect(shop.settings.data_dir / "polyvox.sqlite3") as connection:
        return set(connection.execute("SELECT task_id, annotator FROM arm_log").fetchall())


def test_pairs_in_the_control_arm_get_no_own_prediction_and_are_logged(shop: Workshop) -> None:
    answers = ask(shop.having(control_arm_percent=40.0), *(task(number) for number in OPEN))
    arm = {(n, who) for n in OPEN for who in "123" if in_control_arm(LABEL_STUDIO_ID, n, who, 40.0)}
    for number, one in zip(OPEN, answers, strict=True):
        allowed = [who for who in "123" if (number, who) not in arm]
        assert versions(one) == [*(f"annotator:{who}@r1" for who in allowed), "consensus@r1"]
        assert one[-1]["result"]
    assert 0 < len(arm) < 60
    assert arm_log(shop) == arm


def test_without_the_middleware_whole_tasks_are_withheld_and_nobody_gets_an_own_one(shop: Workshop) -> None:
    answers = ask(shop.having(control_arm_percent=40.0, middleware=False), *(task(number) for number in OPEN))
    arm = {number for number in OPEN if task_in_control_arm(LABEL_STUDIO_ID, number, 40.0)}
    assert 0 < len(arm) < 20
    for number, one in zip(OPEN, answers, strict=True):
        assert versions(one) == ["consensus@r1"]
        assert bool(one[0]["result"]) is (number not in arm)
        assert 0.5 <= one[0]["score"] <= 1.0
    assert set(shop.store.deliveries.shown_since(KEY, list(OPEN))) == set(OPEN) - arm
    assert arm_log(shop) == {(number, "") for number in arm}


def test_a_version_is_never_fed_with_what_another_encoder_made(shop: Workshop) -> None:
    shop.features.texts([texts()[40]])
    shop.features.close()
    shop.features._factory = lambda: WordHashEncoder(name="another")
    shop.features._encoder = None
    answers = ask(shop, task(41), task(42))
    assert [len(one) for one in answers] == [4, 0]  # what the right encoder left in the cache still serves


def test_the_number_of_queries_does_not_grow_with_the_tasks(shop: Workshop) -> None:
    counted: list[str] = []
    event.listen(shop.store.database.engine, "before_cursor_execute",
                 lambda connection, cursor, statement, *_: counted.extend([statement] if "SELECT" in statement else []))
    ask(shop, task(41))
    one = len(counted)
    counted.clear()
    ask(shop, *(task(number) for number in OPEN))
    assert 0 < len(counted) <= one + 1
    counted.clear()
    shop.prediction.version(KEY)
    assert len(counted) == 1

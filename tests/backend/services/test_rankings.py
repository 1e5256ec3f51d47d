"""Rankings from votes to regions in predictions: of each annotator, and the consensus by mean rank."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backend.labeling import LabelConfig, parse_config
from backend.records import StoredVote
from backend.services.ranking_verdicts import learned_rankings, ranking_votes
from backend.services.rankings import with_rankings
from backend.services.served import ReadyTask, TaskPredictions
from model.data.spaces import Value, ValueKind
from model.data.votes import Provenance, Vote, Votes
from model.learners.rankings import RankingsLearner
from model.ranking_model import RankingModel
from tests.backend.services import politeness
from tests.backend.services.workshop import workshop
from tests.model.test_ranking_model import ITEMS, PEOPLE, TASTE, order

CONFIG = parse_config('<View><Text name="t" value="$text"/><List name="l" value="$items"/>'
                      '<Ranker name="rank" toName="l"/><Choices name="c" toName="t"><Choice value="A"/></Choices>'
                      '</View>')
DATA = {"text": "x", "items": [{"id": item} for item in ITEMS]}


def votes_of(units: int = 40, provenance: Provenance = Provenance.MANUAL) -> Votes:
    rng = np.random.default_rng(1)
    return Votes.from_votes(
        Vote(unit=str(unit), annotator=who, control="rank", value=order(ITEMS, taste, rng), provenance=provenance)
        for unit in range(units) for who, taste in zip(PEOPLE, TASTE, strict=True))


def learned(votes: Votes, config: LabelConfig = CONFIG, echo_weight: float = 0.3) -> dict[str, RankingModel]:
    learner = RankingsLearner(accepted_weight=echo_weight)
    return learned_rankings(learner, ranking_votes(config, votes), lambda unit: int(unit) % 4 == 0)


@pytest.fixture(scope="module")
def models() -> dict[str, RankingModel]:
    return learned(votes_of())


def given(who: str, *buckets: tuple[str, ...]) -> StoredVote:
    now = datetime(2026, 11, 28, tzinfo=UTC)
    return StoredVote(unit="7", task_id=7, annotation_id=1, annotator=who, control="rank",
                      value=Value(ValueKind.RANKING, buckets), updated_at=now, lead_time_s=None,
                      provenance=Provenance.MANUAL, shown=False, control_arm=False)


def made(models: dict[str, RankingModel], *votes: StoredVote, data: Any = None, config: LabelConfig = CONFIG,
         answers: bool = True) -> TaskPredictions:
    """With `answers`, beside what the network says of another control."""
    task = ReadyTask(id=7, data=DATA if data is None else data, tokens=np.zeros((1, 4), np.float16), annotators=PEOPLE)
    plain = {"result": [{"from_name": "c"}], "score": 0.7, "model_version": "v"}
    before = TaskPredictions(task_id=7, own={who: plain for who in PEOPLE} if answers else {},
                             consensus=plain if answers else None)
    (after,) = with_rankings(models, config, [task], [before], votes, name="r4", echo_weight=0.3)
    assert plain["result"] == [{"from_name": "c"}]  # it is shared, and stays as it is
    return after


def said(prediction: dict[str, Any] | None) -> list[str]:
    assert prediction is not None
    (region,) = prediction["result"][1:]
    assert 0.0 <= region["score"] <= 1.0 and prediction["score"] == pytest.approx(min(0.7, region["score"]), abs=1e-4)
    return list(region["value"]["ranker"]["rank"])


def test_each_annotator_gets_an_order_of_their_own(models: dict[str, RankingModel]) -> None:
    assert models["rank"].figures["votes"] == 90  # what is held out was not learned from
    predictions = made(models)
    assert said(predictions.own["x"]) == ["a", "b", "c", "d"] and said(predictions.own["z"]) == ["d", "c", "b", "a"]
    assert said(predictions.consensus)[0] == "a"


def test_the_consensus_of_rankings_is_their_mean_rank(models: dict[str, RankingModel]) -> None:
    predictions = made(models, given("x", ("c",), ("a",), ("b",)), given("y", ("c",), ("b",)), given("z", ("c", "c")))
    assert said(predictions.consensus) == ["c", "a", "b", "d"]  # nobody ranked d; a before b by 1 to 0
    assert predictions.consensus is not None
    shares = [2 / 3, 3 / 4, 1 / 2, 2 / 3, 1 / 2, 1 / 2]  # pairs ca, cb, cd, ab, ad, bd
    assert predictions.consensus["result"][1]["score"] == pytest.approx(np.mean(shares), abs=1e-4)


def test_ties_of_the_mean_rank_go_by_scores(models: dict[str, RankingModel]) -> None:
    predictions = made(models, given("x", ("d",), ("a",)), given("y", ("a",), ("d",)))
    assert said(predictions.consensus)[:2] == ["a", "d"]  # two of three annotators are known to prefer it


@pytest.mark.parametrize("data", [{}, {"items": "x"}, {"items": [{"id": "a"}]}])
def test_a_task_without_items_gets_no_order(models: dict[str, RankingModel], data: Any) -> None:
    predictions = made(models, data=data)
    everything = (*predictions.own.values(), predictions.consensus)
    assert all(each is not None and len(each["result"]) == 1 for each in everything)


def test_silence_where_nothing_was_learned(models: dict[str, RankingModel]) -> None:
    useless = {"rank": replace(models["rank"], figures={})}
    for each in ({}, useless):
        assert all(prediction["result"] == [{"from_name": "c"}] for prediction in made(each).own.values())
        assert made(each, answers=False) == TaskPredictions(task_id=7, own={}, consensus=None)
    assert said(made(useless, given("x", ("c",), ("a",))).consensus)[:2] == ["c", "a"]  # what people said stands
    bucketed = parse_config('<View><List name="l" value="$items"/><Ranker name="rank" toName="l"><Bucket name="b"/>'
                            '</Ranker></View>')
    assert learned(votes_of(), bucketed) == {}


def test_where_nothing_else_is_predicted_orders_stand_alone(models: dict[str, RankingModel]) -> None:
    predictions = made(models, answers=False)
    assert {who: each["model_version"] for who, each in predictions.own.items()} == {
        who: f"annotator:{who}@r4" for who in PEOPLE}
    assert predictions.consensus is not None and predictions.consensus["model_version"] == "consensus@r4"
    for each in (*predictions.own.values(), predictions.consensus):
        (region,) = each["result"]
        assert region["type"] == "ranker" and each["score"] == pytest.approx(region["score"], abs=1e-4)


@pytest.mark.parametrize(("around", "shown"), [
    ('visibleWhen="choice-selected" whenTagName="c" whenChoiceValue="A"', True),
    ('visibleWhen="choice-selected" whenTagName="c"', True),
    ('visibleWhen="choice-selected" whenTagName="c" whenChoiceValue="B"', False),
    ('visibleWhen="choice-selected" whenTagName="other"', False),
])
def test_a_hidden_ranker_gets_no_order(models: dict[str, RankingModel], around: str, shown: bool) -> None:
    config = parse_config(
        f'''<View><Text name="t" value="$text"/><List name="l" value="$items"/><Choices name="c" toName="t">
        <Choice value="A"/><Choice value="B"/></Choices><Choices name="other" toName="t"><Choice value="A"/></Choices>
        <View {around}><Ranker name="rank" toName="l"/></View></View>''')
    answer = {"result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["A"]}}],
              "score": 0.7, "model_version": "v"}
    task = ReadyTask(id=7, data=DATA, tokens=np.zeros((1, 4), np.float16), annotators=PEOPLE)
    before = TaskPredictions(task_id=7, own={"x": answer}, consensus=answer)
    (after,) = with_rankings(models, config, [task], [before], [], name="r4", echo_weight=0.3)
    assert after.consensus is not None
    assert [len(each["result"]) for each in (after.own["x"], after.consensus)] == [1 + shown] * 2
    assert set(after.own) == {"x"}  # nothing predicted, nothing shown: y and z have no answer that would show it


def test_echoes_weigh_little(models: dict[str, RankingModel]) -> None:
    echoed = learned(votes_of(provenance=Provenance.ACCEPTED), echo_weight=0.01)
    assert np.ptp(echoed["rank"].pooled) < np.ptp(models["rank"].pooled)


def test_a_training_learns_orders_and_its_version_predicts_them(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    xml = politeness.CONFIG.replace("</View>", '<List name="l" value="$items"/><Ranker name="rank" toName="l"/></View>')
    shop.store.projects.ensure(politeness.KEY, title="Orders", label_config=xml)
    snapshots, rng = [], np.random.default_rng(2)
    for number, text in enumerate(politeness.texts(60), start=1):
        mine = [politeness.vote(number, who, politeness.answer(who, text)) for who in "123" if number <= 40]
        mine += [replace(each, control="rank", value=order(ITEMS, TASTE[int(each.annotator) - 1], rng))
                 for each in mine]
        snapshots.append(politeness.snapshot(number, text, mine))
    shop.store.tasks.take_over(politeness.KEY, snapshots)
    assert shop.train()["left_out"] == {"with controls that the network does not learn": 120}
    task = {"id": 60, "data": {**DATA, "text": politeness.texts(60)[59]}, "annotations": []}
    (answers,) = shop.prediction.answer(politeness.KEY, None, [task], deadline_s=90.0)
    orders = {each["model_version"].partition("@")[0]: region["value"]["ranker"]["rank"]
              for each in answers for region in each["result"] if region["type"] == "ranker"}
    assert orders["annotator:1"] == ["a", "b", "c", "d"] and orders["annotator:3"] == ["d", "c", "b", "a"]
    assert set(orders) == {"annotator:1", "annotator:2", "annotator:3", "consensus"}
    shop.close()

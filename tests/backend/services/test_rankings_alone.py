"""A project whose only control is a Ranker: trained, judged, published, predicted and delivered, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from backend.bootstrap import Services
from backend.commands.predict import predictions
from backend.errors import ClientError, JobFailed, NotFound
from backend.labeling import parse_config
from backend.ports import LabelStudio
from backend.records import Task, TaskSnapshot, Verdict, Version
from backend.registry import Loaded, Registry
from backend.registry.registry import _rankings
from backend.services import ranking_verdicts
from backend.services.delivery import Delivery
from backend.services.explanation.service import Explanations
from backend.services.gaps.service import GapFilling
from backend.services.ranking_verdicts import JudgedRankings, judged_rankings, ranking_votes
from model.learners.rankings import RankingsLearner
from model.ranking_model import RankingModel, fit_rankings
from tests.backend.encoders import AsIs
from tests.backend.services import politeness
from tests.backend.services.shelf import PredictionShelf
from tests.backend.services.test_rankings import CONFIG, votes_of
from tests.backend.services.workshop import Workshop, silent, workshop
from tests.model.test_ranking_model import ITEMS, TASTE, order

KEY = politeness.KEY
LEARNER = RankingsLearner(accepted_weight=0.3)
XML = '<View><List name="l" value="$items"/><Ranker name="rank" toName="l"/></View>'
DATA = {"items": [{"id": item, "title": item} for item in ITEMS]}  # there is nothing that an encoder could read


def fill(shop: Workshop, taste: np.ndarray, *, labelled: int = 80, tasks: int = 90, seed: int = 2) -> None:
    shop.store.projects.ensure(KEY, title="Orders", label_config=XML)
    rng, snapshots = np.random.default_rng(seed), []
    for number in range(1, tasks + 1):
        votes = tuple(
            politeness.vote(number, who, "-", control="rank", value=order(ITEMS, taste[int(who) - 1], rng))
            for who in "123" if number <= labelled)
        task = Task(id=number, data=DATA, updated_at=politeness.START)
        snapshots.append(TaskSnapshot(task=task, annotations=[politeness.annotation(one) for one in votes],
                                      votes=votes))
    shop.store.tasks.take_over(KEY, snapshots)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    """With a first version, which no test here replaces."""
    shop = workshop(tmp_path_factory.mktemp("orders"))
    fill(shop, TASTE)
    assert shop.train()["verdict"] == "published"
    yield shop
    shop.close()


def rank(prediction: dict[str, Any] | Any) -> list[str]:
    (region,) = prediction["result"]
    return list(region["value"]["ranker"]["rank"])


def test_a_first_version_says_what_it_is_worth(shop: Workshop) -> None:
    version = shop.store.versions.published(KEY)
    assert version is not None and version.figures["votes"] == 240 and version.figures["annotators"] == 3
    assert version.figures["left_out"] == {} and version.figures["ranking_gate"]["rank"]["new"]
    assert version.reason.startswith("Rankings with 'rank': better than equal chances on tasks without a ranking by ")
    assert shop.encoder.calls == []  # nothing is read, so nothing is encoded


def test_label_studio_gets_orders_when_it_asks(shop: Workshop) -> None:
    assert shop.prediction.version(KEY) == "consensus@r1"
    tasks = [{"id": 85, "data": DATA}, {"id": 86, "data": {"items": [{"id": "b"}, {"id": "b"}]}}]
    first, second = shop.prediction.answer(KEY, None, tasks, deadline_s=5.0)
    orders = {one["model_version"].partition("@")[0]: rank(one) for one in first}
    assert orders["annotator:1"] == ["a", "b", "c", "d"] and orders["annotator:3"] == ["d", "c", "b", "a"]
    assert first[-1]["model_version"] == "consensus@r1" and 0.5 < first[-1]["score"] < 1.0
    assert second == []  # one item has no order


@pytest.mark.parametrize(("items", "order"), [
    (None, None), ("x", None), ([], None), ([{"id": None}, {"id": True}, 3], None), ({"id": "a"}, None),
    ([{"id": "a"}, {"id": "a"}], None),  # doubled
    ([{"id": "d"}, {"id": "a"}, {"id": "a"}], ["a", "d"]),
    ([{"id": "d"}, {"id": "new"}, {"id": 7}, {"id": "a"}], ["a", "new", "7", "d"]),  # missing, and never seen before
    ([{"id": str(number)} for number in range(300)], [str(number) for number in range(300)]),
])
def test_odd_lists_of_items_break_nothing(shop: Workshop, items: Any, order: list[str] | None) -> None:
    (answers,) = shop.prediction.answer(KEY, None, [{"id": 87, "data": {"items": items}}], deadline_s=5.0)
    assert [rank(one) for one in answers if one["model_version"].startswith("annotator:1@")] == [order] * bool(order)


def test_a_delivery_brings_orders(shop: Workshop) -> None:
    shelf = PredictionShelf()
    figures = Delivery(
        store=shop.store, label_studio=cast(LabelStudio, shelf), features=shop.features, registry=shop.registry,
        prediction=shop.prediction, settings=shop.settings, clock=shop.clock, wait=shop.clock.forward,
    ).run(KEY, silent)
    assert set(shelf.of("consensus@r1")) == set(range(81, 91)) and shelf.selected == "consensus@r1"
    assert rank(shelf.of("annotator:3@r1")[90]) == ["d", "c", "b", "a"]
    assert (figures["consensus"], figures["own"], figures["without_text"]) == (10, 30, 0)
    assert shop.encoder.calls == []


def test_scores_are_read_once_for_a_version(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []
    from_json = RankingModel.from_json

    def spy(stored: Any) -> RankingModel:
        read.append(stored)
        return from_json(stored)

    monkeypatch.setattr(RankingModel, "from_json", spy)
    fresh = replace(shop, registry=Registry(store=shop.store, folder=shop.settings.model_dir, clock=shop.clock))
    for number in range(81, 91):
        (answers,) = fresh.prediction.answer(KEY, None, [{"id": number, "data": DATA}], deadline_s=5.0)
        assert len(answers) == 4
    assert len(read) == 1


def test_the_command_shows_orders(shop: Workshop) -> None:
    project = shop.store.projects.get(KEY)
    assert project is not None
    rows = predictions(cast(Services, shop), project, [85, 3])
    shown = {(row["task"], row["annotator"]): row for row in rows}
    assert set(shown) == {(85, "1"), (85, "2"), (85, "3"), (85, "consensus"), (3, "consensus")}  # all ranked task 3
    assert shown[85, "3"]["predicted"] == "d > c > b > a" and shown[85, "3"]["vote"] is None
    assert list(dict.fromkeys(row["task"] for row in rows)) == [85, 3]
    with pytest.raises(NotFound):
        predictions(cast(Services, shop), project, [1000])
    odd = Task(id=99, data={"items": [{"id": "a"}, {"id": "a"}]}, updated_at=politeness.START)
    shop.store.tasks.take_over(KEY, [TaskSnapshot(task=odd, annotations=(), votes=())])
    with pytest.raises(ClientError, match=r"for task 99\. Ranker 'rank' takes items of the same id"):
        predictions(cast(Services, shop), project, [85, 99])
    shop.store.tasks.remove(KEY, [99])


def test_what_needs_a_network_says_that_there_is_none(shop: Workshop) -> None:
    project = shop.store.projects.get(KEY)
    assert project is not None
    explanations = Explanations(store=shop.store, features=shop.features, registry=shop.registry, decoder=AsIs(),
                                reader=nobody)
    with pytest.raises(ClientError, match="predicts orders from rankings alone"):
        explanations.task(project, 85)
    gaps = GapFilling(store=shop.store, label_studio=cast(LabelStudio, PredictionShelf()), features=shop.features,
                      registry=shop.registry, settings=shop.settings, clock=shop.clock)
    assert gaps.document(project, parse_config(XML), silent).controls == {}


def nobody() -> Any:
    raise AssertionError("no media are read")


def test_worse_orders_are_not_published_and_better_ones_are(tmp_path: Path) -> None:
    shop = workshop(tmp_path)
    fill(shop, TASTE, labelled=40, tasks=41)
    shop.train()
    good = shop.store.versions.published(KEY)
    assert good is not None
    turned = RankingModel.from_json(good.figures["rankings"]["rank"])
    worse = {**good.figures["rankings"]["rank"], **{
        key: (-value).tolist() for key, value in (("pooled", turned.pooled[:-1]), ("own", turned.own[:-1, :-1]))}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("model.learners.rankings.fit_rankings", lambda votes: RankingModel.from_json(worse))
        outcome = shop.train()
    assert outcome["verdict"] == "rejected" and "shown to be worse than the published ones" in outcome["reason"]
    loaded = shop.registry.published(KEY)
    assert loaded is not None and loaded.version.name == "r1"
    assert shop.store.versions.recent(KEY, limit=1)[0].verdict is Verdict.REJECTED
    assert shop.train()["verdict"] == "published"  # the same votes again: not shown to be worse
    shop.close()


def test_beside_a_network_worse_orders_do_not_come_along(tmp_path: Path) -> None:
    votes = ranking_votes(CONFIG, votes_of(30))
    model = fit_rankings(votes["rank"])
    assert model is not None
    everything, turned = {"rank": model}, replace(model, pooled=-model.pooled, own=-model.own)
    good = {"rank": {**model.to_json(), "heldout_percent": 100.0}}
    published = Loaded(version=version_with(good), ladder=cast(Any, None), rankings=everything)

    def heldout(percent: float) -> Callable[[str], bool]:
        return lambda unit: int(unit) < percent

    kept = judged_rankings(LEARNER, votes, {"rank": turned}, published, heldout, 20.0)
    assert kept.figures["rank"] == {**good["rank"], "learned_by": "r3"} and not kept.news
    assert kept.gate["rank"]["units"] == 20 and "which stay" in kept.reason  # held out from both
    later = replace(published, version=version_with(kept.figures))
    again = judged_rankings(LEARNER, votes, {"rank": turned}, later, heldout, 5)
    assert again.figures["rank"]["learned_by"] == "r3" and again.gate["rank"]["units"] == 5
    new = judged_rankings(LEARNER, votes, everything, published, heldout, 20.0)
    assert new.news and new.figures["rank"] == {**model.to_json(), "heldout_percent": 20.0}
    assert judged_rankings(LEARNER, {}, {}, published, heldout, 20.0) == JudgedRankings(
        figures={}, gate={}, reason="", news=False)


def version_with(rankings: Any) -> Version:
    return Version(project=KEY, name="r3", number=3, path="", verdict=Verdict.PUBLISHED, reason="", changes=0,
                   figures={"rankings": rankings}, created_at=politeness.START)


def test_too_few_rankings_are_a_sentence(tmp_path: Path) -> None:
    shop = workshop(tmp_path, min_votes=9)
    fill(shop, TASTE, labelled=2, tasks=5)
    with pytest.raises(JobFailed, match="at least 9 votes; there are 6"):
        shop.train()
    fill(shop, TASTE, labelled=3, tasks=5)
    with pytest.raises(JobFailed, match="at least 10 rankings of two items or more"):
        shop.train()
    shop.close()


@pytest.mark.parametrize(("more", "alone"), [
    ("", True), ('<TextArea name="why" toName="t"/>', True),
    ('<Choices name="c" toName="t"><Choice value="A"/></Choices>', False),
    ('<Labels name="s" toName="t"><Label value="x"/></Labels><Choices name="c" toName="t" perRegion="true">'
     '<Choice value="A"/></Choices>', False),
])
def test_rankings_are_alone_where_nothing_else_is_learned(more: str, alone: bool) -> None:
    text = f'<View><Text name="t" value="$t"/>{more}'
    assert ranking_verdicts.rankings_alone(parse_config(XML.replace("<View>", text))) is alone
    assert not ranking_verdicts.rankings_alone(parse_config(f"{text}</View>"))


def test_damaged_scores_are_left_out_and_said(shop: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    version = shop.store.versions.published(KEY)
    assert version is not None
    stored = version.figures["rankings"]["rank"]
    for wrong in ({**stored, "own": []}, {}, None, [1]):
        assert _rankings(replace(version, figures={"rankings": {"rank": wrong}})) == {}
    assert "damaged" in caplog.text and _rankings(replace(version, figures={"rankings": None})) == {}

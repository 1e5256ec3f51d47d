"""Numbers and stars from annotations to stored predictions: read, learned, kept in a checkpoint, served, judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.labeling import parse_config, read_task
from backend.services.served import Offers, ReadyTask, learned_of, predict
from model.config import LadderConfig
from model.data.dataset import TrainingSet
from model.data.numbers import NumberBins, to_json
from model.data.spaces import SingleChoice, Value, ValueKind
from model.data.votes import Vote, Votes
from model.ensemble.fitting import fit
from model.ensemble.predictor import Ladder
from model.simulate import simulate_tokens
from tests.backend.services.statistics.crowds import KEY, Project, vote

CONFIG = """<View><Text name="t" value="$text"/><Number name="price" toName="t" min="0"/>
<Rating name="stars" toName="t" maxRating="5"/></View>"""
PEOPLE = ("1", "2", "3")
UNITS = 80


def annotation(who: str, price: float, stars: int) -> dict[str, object]:
    region = {"to_name": "t", "id": "x", "origin": "manual"}
    return {"id": int(who), "completed_by": int(who), "created_at": "2026-11-01T00:00:00Z", "result": [
        {**region, "from_name": "price", "type": "number", "value": {"number": price}},
        {**region, "from_name": "stars", "type": "rating", "value": {"rating": stars}},
    ]}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ladder, dict[str, np.ndarray], np.ndarray]]:
    """A crowd whose answers follow the content; (ladder as loaded from its checkpoint, tokens, true prices)."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(3)
    traits = rng.standard_normal((UNITS, 2))
    tokens = dict(zip(map(str, range(UNITS)), simulate_tokens(traits, rng, dim=8), strict=True))
    price, config = np.exp(3.0 + 0.8 * traits[:, 0]), parse_config(CONFIG)
    rows = []
    for unit in range(UNITS):
        given = [annotation(who, round(float(price[unit] * np.exp(0.1 * at)), 2),
                            int(np.clip(round(3 + 1.2 * traits[unit, 1] + 0.4 * at), 1, 5)))
                 for at, who in enumerate(PEOPLE)]
        read = read_task(config, {"id": unit, "data": {"text": "x"}, "annotations": given}, project_id=1,
                         control_arm_percent=0.0, shown_since=None, known_annotators={})
        rows += [Vote(unit=each.unit, annotator=each.annotator, control=each.control, value=each.value)
                 for each in read.votes]
    votes = Votes.from_votes(rows)
    base = LadderConfig()
    made = fit(
        TrainingSet(votes=votes, spaces=config.spaces(votes), tokens=lambda units: [tokens[u] for u in units],
                    heldout=lambda unit: int(unit) % 4 == 0),
        replace(base, folds=2, members_per_fold=1, network=replace(base.network, width=32, epochs=4)),
    )
    figures = made.figures["controls"]
    assert figures["price"]["bins"]["least"] == 0.0 and figures["price"]["heldout"]["served"]["mae"] >= 0.0
    assert figures["stars"]["heldout"]["served"]["mae"] < figures["stars"]["heldout"]["prior"]["mae"]
    folder = tmp_path_factory.mktemp("numbers") / "r1"
    made.ladder.save(folder)
    yield Ladder.load(folder), tokens, price


def test_spaces_come_back_from_the_checkpoint(learned: tuple[Ladder, dict[str, np.ndarray], np.ndarray]) -> None:
    spaces = learned[0].spaces
    assert isinstance(spaces["price"], NumberBins) and spaces["price"].least == 0.0
    assert spaces["stars"] == SingleChoice(("1", "2", "3", "4", "5"), ordered=True)


def test_a_prediction_is_a_number_with_its_interval(
    learned: tuple[Ladder, dict[str, np.ndarray], np.ndarray]
) -> None:
    ladder, tokens, price = learned
    config = parse_config(CONFIG)
    tasks = [ReadyTask(id=unit, data={"text": "x"}, tokens=tokens[str(unit)], annotators=PEOPLE)
             for unit in range(0, UNITS, 4)]
    said, true = [], []
    for made in predict(ladder, config, tasks, [], name="r1"):
        for prediction in (*made.own.values(), made.consensus):
            assert prediction is not None
            number, stars = prediction["result"]
            assert number["type"] == "number" and set(number["value"]) == {"number"}
            assert number["meta"]["text"][0].startswith("80% interval: ") and "meta" not in stars
            low, high = (float(end) for end in number["meta"]["text"][0].removeprefix("80% interval: ").split(" to "))
            assert low <= number["value"]["number"] * 1.001 and number["value"]["number"] <= high * 1.001
            assert 1 <= stars["value"]["rating"] <= 5 and 0.0 <= number["score"] <= 1.0
            assert config.control("price").decode(prediction["result"]) == Value.of_number(number["value"]["number"])
        said.append(made.consensus["result"][0]["value"]["number"])
        true.append(price[made.task_id])
    assert np.corrcoef(np.log(said), np.log(true))[0, 1] > 0.6  # on held-out tasks


def test_a_number_beyond_new_limits_is_not_offered(learned: tuple[Ladder, dict[str, np.ndarray], np.ndarray]) -> None:
    ladder, _, _ = learned
    narrow = parse_config(CONFIG.replace('min="0"', 'min="0" max="1"'))
    p = np.zeros((1, len(ladder.spaces["price"].classes)))
    p[0, -1] = 1.0
    stars = np.full((1, 5), 0.2)
    (made,) = Offers(ladder.spaces, narrow).predictions({"price": p, "stars": stars}, [{}], [0], ["v"])
    assert made is not None and [region["from_name"] for region in made["result"]] == ["stars"]


def test_statistics_know_order_and_distance(tmp_path: Path) -> None:
    votes = [vote(task, str(who), Value.of_number(10.0 * (task % 7) + who), at=task, control="price")
             for task in range(1, 40) for who in (1, 2, 3)]
    votes += [vote(task, str(who), Value.of_class(str(1 + min(4, task % 5 + (who == 3)))), at=task, control="stars")
              for task in range(1, 40) for who in (1, 2, 3)]
    project = Project(tmp_path, config=CONFIG)
    project.give(votes)
    project.run()
    price, stars = project.statistics.overview(KEY).controls
    assert (price.agreement.level, stars.agreement.level) == ("interval", "ordinal")
    assert price.agreement.alpha.value > 0.95 > stars.agreement.alpha.value > 0.8
    assert price.consensus.method == "votes alone" and price.consensus.tasks == 39
    assert sum(times for _, times in price.consensus.classes) == 39


def test_statistics_say_which_votes_are_kept_aside(tmp_path: Path) -> None:
    """Numbers out of range, rankings and answers on regions: said by control, and nothing else is disturbed."""
    more = ('<List name="l" value="$items"/><Ranker name="order" toName="l"/><Choices name="tone" toName="t" '
            'perRegion="true"><Choice value="kind"/></Choices></View>')
    project = Project(tmp_path, config=CONFIG.replace("</View>", more))
    ranked = Value(ValueKind.RANKING, (("a",), ("b",)))
    votes = [vote(task, str(who), value, at=task, control=control)
             for task in range(1, 9) for who in (1, 2)
             for control, value in (("price", Value.of_number(task * 5.0 - 10.0)), ("order", ranked))]
    votes += [vote(3, str(who), Value.of_class("kind"), at=3, control="tone", unit="3/a1b2") for who in (1, 2)]
    project.give(votes)
    project.run()
    overview = project.statistics.overview(KEY)
    assert [control.name for control in overview.controls] == ["price"] and overview.controls[0].votes == 14
    assert overview.outside == 20 and overview.coverage.given == 16
    assert overview.unmodelled == ()  # each of them is learned
    said = {each.name: each.note for each in overview.notes}
    assert "2 votes with 'price' are kept and not learned from" in said["price"] and "out of range" in said["price"]
    assert "16 votes with 'order' are kept, and learned by Plackett-Luce scores" in said["order"]
    assert "2 votes on regions with 'tone' are kept" in said["tone"]


def test_the_bins_of_the_published_version_are_kept_while_they_fit() -> None:
    config = parse_config(CONFIG)

    def given(numbers: np.ndarray) -> Votes:
        return Votes.from_votes(Vote(unit=str(at), annotator="1", control="price", value=Value.of_number(number))
                                for at, number in enumerate(numbers.tolist()))

    rng = np.random.default_rng(0)
    first = rng.uniform(1.0, 9.0, 300)
    old = config.spaces(given(first))["price"]
    assert isinstance(old, NumberBins)
    learned = {"price": {"bins": to_json(old)}}
    more = given(np.append(first, rng.uniform(2.0, 8.0, 30)))
    assert config.spaces(more)["price"] != old and config.spaces(more, learned)["price"] == old
    beyond = given(np.append(first, [50.0]))
    assert config.spaces(beyond, learned) == config.spaces(beyond)
    assert learned_of(None) == {}

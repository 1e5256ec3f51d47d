"""A stranger labels a few tasks: what they are shown next follows their votes at once, without a training."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from backend.labeling import parse_config
from backend.services.gaps.fill import PREDICTED, filled, people_of
from backend.services.newcomers import Newcomers
from model.data.splits import is_heldout
from tests.backend.services.gaps.test_fill import board_of
from tests.backend.services.politeness import CONFIG, KEY, START, answer, snapshot, texts, vote
from tests.backend.services.test_prediction import ask, label, task
from tests.backend.services.workshop import Workshop, trained, workshop_of

STRANGER = "9"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def shop(template: Path, tmp_path: Path) -> Workshop:
    found = workshop_of(template, tmp_path)
    found.features.texts(texts())  # as a job did
    return found


def teaching(shop: Workshop, count: int) -> list[int]:
    """Tasks that are not held out."""
    return [n for n in range(1, 61) if not is_heldout(KEY, str(n), shop.settings.heldout_percent)][:count]


def says(shop: Workshop, tasks: list[int], by: str = "2", who: str = STRANGER) -> None:
    """The stranger labels as annotator `by` does; the others' votes stay."""
    shop.store.tasks.take_over(KEY, [
        snapshot(n, texts()[n - 1], [
            *(vote(n, each, answer(each, texts()[n - 1])) for each in "123" if n <= 40),
            vote(n, who, answer(by, texts()[n - 1]), updated_at=START + timedelta(days=2, minutes=at)),
        ])
        for at, n in enumerate(tasks)
    ])


def newcomers(shop: Workshop) -> Newcomers:
    return Newcomers(store=shop.store, features=shop.features, registry=shop.registry, settings=shop.settings)


def of_stranger(shop: Workshop, numbers: range) -> dict[int, tuple[str, float]]:
    """Task -> what the stranger is shown."""
    found = {}
    for number, answers in zip(numbers, ask(shop, *(task(n) for n in numbers)), strict=True):
        own = [one for one in answers if one["model_version"] == f"annotator:{STRANGER}@r1"]
        found[number] = (label(own[0]), own[0]["score"])
    return found


def test_five_votes_move_what_a_stranger_is_shown_before_any_training(shop: Workshop) -> None:
    later = range(45, 61)
    says(shop, teaching(shop, 1))
    at_first = of_stranger(shop, later)
    says(shop, teaching(shop, 12))
    moved = of_stranger(shop, later)
    assert moved != at_first
    right = [moved[n][0] == answer("2", texts()[n - 1]) for n in later]
    assert sum(right) / len(right) > 0.8  # as annotator 2, the contrary one
    loaded = shop.registry.published(KEY)
    assert loaded is not None and loaded.version.name == "r1" and STRANGER not in loaded.ladder.annotators


def test_heldout_votes_teach_nothing(shop: Workshop) -> None:
    out = [n for n in range(1, 61) if is_heldout(KEY, str(n), shop.settings.heldout_percent)]
    loaded, config = shop.registry.published(KEY), parse_config(CONFIG)
    assert loaded is not None
    says(shop, out)
    assert newcomers(shop).of(KEY, loaded, config, [STRANGER]) == {}
    says(shop, teaching(shop, 4))
    one = newcomers(shop).of(KEY, loaded, config, [STRANGER])[STRANGER]
    assert one.controls["politeness"].votes == 4
    assert one.units == {str(n) for n in [*out, *teaching(shop, 4)]}


def test_contents_that_are_not_cached_are_skipped_and_never_encoded(shop: Workshop) -> None:
    loaded, config = shop.registry.published(KEY), parse_config(CONFIG)
    assert loaded is not None
    mine = teaching(shop, 6)
    says(shop, mine)
    first = mine[0]
    shop.store.tasks.take_over(KEY, [snapshot(first, "words nobody has seen", [vote(first, STRANGER, "rude")])])
    before = len(shop.encoder.seen) if hasattr(shop.encoder, "seen") else 0
    service = newcomers(shop)
    assert service.of(KEY, loaded, config, [STRANGER])[STRANGER].controls["politeness"].votes == 5
    assert (len(shop.encoder.seen) if hasattr(shop.encoder, "seen") else 0) == before
    shop.features.texts(["words nobody has seen"])
    assert service.of(KEY, loaded, config, [STRANGER])[STRANGER].controls["politeness"].votes == 6


def test_what_was_learned_is_kept_until_a_vote_comes(shop: Workshop) -> None:
    loaded, config = shop.registry.published(KEY), parse_config(CONFIG)
    assert loaded is not None
    says(shop, teaching(shop, 5))
    service = newcomers(shop)
    first = service.of(KEY, loaded, config, [STRANGER])[STRANGER]
    counted: list[str] = []
    event.listen(shop.store.database.engine, "before_cursor_execute",
                 lambda connection, cursor, statement, *_: counted.extend([statement] if "SELECT" in statement else []))
    assert service.of(KEY, loaded, config, [STRANGER])[STRANGER] is first
    assert len(counted) == 1
    says(shop, teaching(shop, 6))
    again = service.of(KEY, loaded, config, [STRANGER])[STRANGER]
    assert again is not first and again.controls["politeness"].votes == 6
    assert service.of(KEY, replace(loaded, version=replace(loaded.version, path="another")), config,
                      [STRANGER])[STRANGER] is not again


def test_gaps_of_a_stranger_are_filled_and_by_their_votes(shop: Workshop) -> None:
    says(shop, teaching(shop, 12))
    board = board_of(shop)
    cells = {row.task: cell for row in filled(board, "politeness", people_of(board), only_gaps=True)
             for cell in row.cells if cell.annotator == STRANGER}
    assert {cell.source for cell in cells.values()} == {PREDICTED}
    assert cells.keys() == set(range(1, 61)) - set(teaching(shop, 12))
    right = [cells[n].label == answer("2", texts()[n - 1]) for n in range(41, 61)]
    assert sum(right) / len(right) > 0.8


def test_a_stranger_with_twenty_votes_costs_little(shop: Workshop) -> None:
    """The next request costs a query; one after a new vote still less than a tenth of a second."""
    loaded, config = shop.registry.published(KEY), parse_config(CONFIG)
    assert loaded is not None
    says(shop, teaching(shop, 20))
    service = newcomers(shop)
    service.of(KEY, loaded, config, [STRANGER])
    begun = time.process_time()
    for _ in range(10):
        service.of(KEY, loaded, config, [STRANGER])
    assert (time.process_time() - begun) / 10 < 0.02


def test_what_is_kept_is_bounded_in_bytes(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, config = shop.registry.published(KEY), parse_config(CONFIG)
    assert loaded is not None
    says(shop, teaching(shop, 5))
    service = newcomers(shop)
    first = service.of(KEY, loaded, config, [STRANGER])[STRANGER]
    assert 1000 < first.size < 1 << 20
    monkeypatch.setattr("backend.services.newcomers.KEPT_BYTES", first.size - 1)
    assert newcomers(shop).of(KEY, loaded, config, [STRANGER])[STRANGER] is not first
    small = newcomers(shop)
    second = small.of(KEY, loaded, config, [STRANGER])[STRANGER]
    assert small.of(KEY, loaded, config, [STRANGER])[STRANGER] is not second  # it is learned anew instead

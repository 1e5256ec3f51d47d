"""Gaps of a small project with a trained version, and of one before its first."""

from types import SimpleNamespace

import numpy as np
import pytest

from backend.errors import JobFailed
from backend.records import JobKind
from backend.services.gaps.documents import GIVEN, KIND, MISSING, PREDICTED, read_gaps
from backend.services.gaps.service import GapFilling, seconds_of
from tests.backend.services.politeness import KEY, answer, fill, snapshot, texts, vote
from tests.backend.services.workshop import silent, workshop, workshop_of

CONTROL = "politeness"


@pytest.fixture
def shop(template, tmp_path):
    made = workshop_of(template, tmp_path / "shop")
    yield made
    made.close()


@pytest.fixture
def fresh(tmp_path):
    """Before the first version."""
    made = workshop(tmp_path / "fresh")
    yield made
    made.close()


def gaps_of(shop, label_studio=None):
    return GapFilling(store=shop.store, label_studio=label_studio, features=shop.features, registry=shop.registry,
                      settings=shop.settings, clock=shop.clock)


def document(shop, **options):
    outcome = gaps_of(shop).run(KEY, silent, **options)
    found = read_gaps(shop.store, KEY)
    return outcome, found


def encode_all(shop):
    shop.features.texts(texts())


def test_the_matrix_adds_up_and_only_encoded_tasks_are_predicted(shop):
    _, found = document(shop)
    figures = found.controls[CONTROL]
    assert found.header.model_version == "r1"
    assert figures.tasks == figures.judged == 60
    assert figures.waiting == 20  # nobody has encoded those without votes
    for row in figures.rows:
        assert (row.given, row.predicted, row.missing) == (40, 0, 20)
        assert (row.cells.count(GIVEN), row.cells.count(PREDICTED), row.cells.count(MISSING)) == (40, 0, 20)
    assert not figures.asks, "nothing may be asked of what nothing is known of"
    encode_all(shop)
    outcome, found = document(shop, force=True)
    figures = found.controls[CONTROL]
    assert figures.waiting == 0
    assert {(row.given, row.predicted, row.missing) for row in figures.rows} == {(40, 20, 0)}
    assert outcome["asks"] == len(figures.asks) == 20  # at most one label of a task at a time


def test_asks_are_gaps_and_best_first(shop):
    encode_all(shop)
    _, found = document(shop.having(gap_per_task=3, gap_budget=500))
    asks = found.controls[CONTROL].asks
    assert len(asks) == 60
    voted = {(each.task_id, each.annotator) for each in shop.store.votes.of_tasks(KEY, list(range(1, 61)))}
    assert not voted & {(each.task, each.annotator) for each in asks}
    assert len({(each.task, each.annotator) for each in asks}) == 60
    gains = [each.gain for each in asks]
    assert gains == sorted(gains, reverse=True)
    assert all(each.sentence.endswith("Nobody has labelled it yet.") and each.cost == 4.0 for each in asks)


def test_nothing_is_computed_twice_and_every_change_is_seen(shop):
    assert document(shop)[0]["computed"]
    assert not document(shop)[0]["computed"]
    assert document(shop, force=True)[0]["computed"]
    shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "1", "polite")])])
    assert document(shop)[0]["computed"]
    shop.publish()
    assert document(shop)[0]["computed"]
    assert document(shop.having(gap_budget=3))[0]["computed"]


def test_statistics_leave_gaps_alone(shop):
    from backend.services.statistics import Statistics

    document(shop)
    Statistics(store=shop.store, registry=shop.registry, settings=shop.settings, clock=shop.clock,
               features=shop.features).run(KEY, silent)
    assert read_gaps(shop.store, KEY) is not None


def test_tasks_that_all_labelled_are_done(shop):
    _, found = document(shop)
    assert found.controls[CONTROL].done == 40
    assert found.controls[CONTROL].saved == 0, "no vote is open there"


def test_a_task_that_is_sure_saves_its_other_votes(fresh):
    people = [str(number) for number in range(1, 7)]  # all say the same
    fresh.store.projects.ensure(KEY, title="Sure", label_config=_config())
    given = {number: people if number <= 30 else people[:4] for number in range(1, 41)}
    fresh.store.tasks.take_over(KEY, [
        snapshot(number, text, [vote(number, who, answer("1", text)) for who in given[number]])
        for number, text in enumerate(texts(40), start=1)
    ])
    _, found = document(fresh)
    figures = found.controls[CONTROL]
    assert found.header.model_version is None
    assert figures.done == 40 and figures.saved == 20


def test_before_the_first_version_votes_alone_answer(fresh):
    fill(fresh.store)
    fresh.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [vote(41, "1", "polite")])])
    _, found = document(fresh)
    figures = found.controls[CONTROL]
    assert found.header.model_version is None
    rows = {row.annotator: (row.given, row.predicted, row.missing) for row in figures.rows}
    assert rows == {"1": (41, 0, 19), "2": (40, 1, 19), "3": (40, 1, 19)}
    assert figures.waiting == 19
    assert {each.task for each in figures.asks} <= set(range(41, 61))
    assert any(each.sentence.endswith("It has 1 label so far.") for each in figures.asks)


def test_no_votes_no_people(fresh):
    fill(fresh.store, labelled=0)
    outcome, found = document(fresh)
    figures = found.controls[CONTROL]
    assert outcome == {"computed": True, "asks": 0, "done": 0, "saved": 0}
    assert (figures.rows, figures.asks, figures.waiting) == ((), (), 60)


def test_one_annotator_and_one_task(fresh):
    fill(fresh.store, tasks=1, labelled=1, annotators=["1"])
    _, found = document(fresh)
    figures = found.controls[CONTROL]
    assert [(row.given, row.predicted, row.missing) for row in figures.rows] == [(1, 0, 0)]
    assert not figures.asks


def test_votes_of_who_is_not_asked_count(fresh):
    """Three more people than are asked labelled everything; the one who is asked labelled one task."""
    fresh.store.projects.ensure(KEY, title="Left", label_config=_config())
    given = {number: "1234" if number == 40 else "123" for number in range(1, 41)}
    fresh.store.tasks.take_over(KEY, [
        snapshot(number, text, [vote(number, who, "polite") for who in given[number]])
        for number, text in enumerate(texts(40), start=1)
    ])
    fresh.clock.forward(60 * 86400)
    text = texts(41)[40]
    late = vote(41, "4", "polite", updated_at=fresh.clock())
    fresh.store.tasks.take_over(KEY, [snapshot(41, text, [late])])
    _, found = document(fresh)
    figures = found.controls[CONTROL]
    assert (figures.done, figures.saved) == (41, 39), "one vote changes nothing of three"


def test_every_document_has_another_version(shop):
    document(shop)
    first = shop.store.statistics.version(KEY, KIND)
    encode_all(shop)
    _, found = document(shop, force=True)
    second = shop.store.statistics.version(KEY, KIND)
    assert first != second == found.header.version, "what was encoded since is in it"
    assert not document(shop)[0]["computed"]
    shop.clock.forward(1.0)
    document(shop, force=True)
    assert shop.store.statistics.version(KEY, KIND) != second


def test_deleted_tasks_are_gone_from_the_figures(shop):
    shop.store.tasks.remove(KEY, [1, 2])
    _, found = document(shop)
    figures = found.controls[CONTROL]
    assert figures.tasks == 58
    assert {row.given for row in figures.rows} == {38}
    assert not {"1", "2"} & set(figures.units)


def test_a_project_without_a_readable_configuration_says_so(fresh):
    fresh.store.projects.ensure(KEY, title="None")
    assert "cannot be read" in gaps_of(fresh).run(KEY, silent)["reason"]
    with pytest.raises(JobFailed, match="unknown"):
        gaps_of(fresh).run("9.9", silent)


def test_a_control_without_a_model_is_filled_from_nothing(shop):
    """The version knows another control than the configuration has now."""
    shop.store.projects.ensure(KEY, title="Changed", label_config=_config().replace('"politeness"', '"tone"'))
    _, found = document(shop)
    assert set(found.controls) == {"tone"}
    assert {row.predicted for row in found.controls["tone"].rows} <= {0}
    assert not found.controls["tone"].asks


def test_names_are_kept_as_they_are(shop):
    evil = {"1": '<img src=x onerror="1">', "2": "\u202eevil", "3": "😀"}
    shop.store.votes.set_names(KEY, evil)
    _, found = document(shop)
    assert {row.annotator: row.name for row in found.controls[CONTROL].rows} == evil


def test_who_left_is_not_asked(shop):
    encode_all(shop)
    shop.clock.forward(60 * 86400)
    late = vote(41, "3", "rude", updated_at=shop.clock())
    shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40], [late])])
    _, found = document(shop)
    assert {each.annotator for each in found.controls[CONTROL].asks} == {"3"}


def test_costs_are_usual_times():
    lead = np.array([2.0] * 6 + [10.0] * 6 + [1000.0] * 5 + [7.0])
    annotator = np.array([0] * 6 + [1] * 6 + [2] * 5 + [3], np.int32)
    history = SimpleNamespace(lead_time_s=lead, current=np.ones(18, bool),
                              votes=SimpleNamespace(annotators=("a", "b", "c", "d"), annotator=annotator))
    usual = float(np.median(lead))
    assert seconds_of(history, ["a", "b", "c", "d", "new"]).tolist() == [2.0, 10.0, 5 * usual, usual, usual]
    history.lead_time_s = np.full(18, np.nan)
    assert seconds_of(history, ["a"]) is None


def test_the_job_kind_has_a_lane_and_a_runner():
    from backend.jobs import RUNNERS
    from backend.worker.lanes import LANES

    assert JobKind.GAPS in RUNNERS and JobKind.GAPS in LANES["heavy"]


def _config():
    from tests.backend.services.politeness import CONFIG

    return CONFIG


def test_many_annotators_and_tasks_are_thinned_and_still_counted(fresh, monkeypatch):
    people = [str(number) for number in range(1, 41)]
    fresh.store.projects.ensure(KEY, title="Many", label_config=_config())
    fresh.store.tasks.take_over(KEY, [
        snapshot(number, text, [vote(number, who, "polite") for who in people[number % 40 :][:2]])
        for number, text in enumerate(texts(200), start=1)
    ])
    monkeypatch.setattr("backend.services.gaps.figures.CELLS", 2 * 8 * 50)  # classes, annotators, tasks
    monkeypatch.setattr("backend.services.gaps.figures.DRAWN", 400)
    monkeypatch.setattr("backend.services.gaps.service.PANEL", 8)
    _, found = document(fresh)
    figures = found.controls[CONTROL]
    assert (figures.tasks, figures.judged, len(figures.units), len(figures.rows)) == (200, 50, 10, 40)
    assert sum(row.given for row in figures.rows) == 395
    assert all(row.given + row.predicted + row.missing == 200 for row in figures.rows)
    assert len({each.annotator for each in figures.asks}) <= 8 and len(figures.asks) <= 50

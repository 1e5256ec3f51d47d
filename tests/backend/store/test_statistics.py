"""Documents, the history of votes and checks in both databases."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from backend.errors import NotFound
from backend.records import Check
from backend.store import open_store
from model.data.votes import Provenance
from tests.backend.store.samples import KEY, NOON, minutes, snapshot, vote


@pytest.fixture
def store(url):
    opened = open_store(url)
    opened.projects.ensure(KEY)
    yield opened
    opened.close()


def test_documents_replace_all_earlier_ones_and_carry_their_version(store):
    many = {("profile", f"{who}é\x00"): "{}" for who in range(450)}
    store.statistics.replace(KEY, "v1", {("overview", ""): '{"a":1}', **many})
    assert store.statistics.version(KEY, "overview") == "v1"
    assert store.statistics.body(KEY, "profile", "449é\x00") == ("v1", "{}")
    store.statistics.replace(KEY, "v2", {("overview", ""): '{"a":2}'})
    assert store.statistics.body(KEY, "overview") == ("v2", '{"a":2}')
    assert store.statistics.version(KEY, "profile", "1é\x00") is None
    assert store.statistics.version("9.9", "overview") is None and store.statistics.body("9.9", "overview") is None
    with pytest.raises(NotFound):
        store.statistics.replace("9.9", "v1", {})


def test_documents_of_other_kinds_stay_where_kinds_are_named(store):
    store.statistics.replace(KEY, "v1", {("overview", ""): "1", ("profile", "5"): "1", ("gaps", ""): "1"})
    store.statistics.replace(KEY, "v2", {("overview", ""): "2"}, kinds=["overview", "profile"])
    found = [store.statistics.body(KEY, *each) for each in (("overview", ""), ("profile", "5"), ("gaps", ""))]
    assert found == [("v2", "2"), None, ("v1", "1")]


def test_the_history_has_repeats_and_deleted_votes_but_no_corrections(store):
    first = vote(1, "5", "A", lead_time_s=None)
    again = vote(1, "5", "B", annotation_id=77, updated_at=NOON + minutes(5))
    store.tasks.take_over(KEY, [snapshot(1, [first, again]), snapshot(2, [vote(2, "6", "A", shown=True)])])
    corrected = vote(2, "6", "B", shown=True, control_arm=True, updated_at=NOON + minutes(9))
    store.tasks.take_over(KEY, [snapshot(1, [first, again]), snapshot(2, [corrected], at=NOON + minutes(9))])
    history = store.statistics.history(KEY)
    votes = history.votes
    rows = [
        (votes.units[u], votes.annotators[a], votes.values[v].data, bool(now), bool(seen), bool(arm))
        for u, a, v, now, seen, arm in zip(votes.unit, votes.annotator, votes.value, history.current, history.shown,
                                           history.control_arm, strict=True)
    ]  # fmt: skip
    assert sorted(rows) == [("1", "5", "A", False, False, False), ("1", "5", "B", True, False, False),
                            ("2", "6", "B", True, True, True)]
    assert sorted(np.isnan(history.lead_time_s).tolist()) == [False, False, True]
    store.tasks.remove(KEY, [2])
    assert store.statistics.history(KEY).current.sum() == 1 and len(store.statistics.history(KEY).votes) == 3


def test_the_current_part_of_the_history_is_the_current_view(store):
    rng = np.random.default_rng(1)
    for step in range(4):
        store.tasks.take_over(KEY, [
            snapshot(task, [
                vote(task, str(who), "ABC"[rng.integers(3)], updated_at=NOON + minutes(step),
                     annotation_id=task * 100 + who * 10 + int(rng.integers(2)), provenance=Provenance.ACCEPTED)
                for who in range(1, 5) if rng.random() < 0.7
            ], at=NOON + minutes(step)) for task in range(1, 8)
        ])  # fmt: skip
    history, current = store.statistics.history(KEY), store.votes.current(KEY)
    mine = history.votes.select(history.current)

    def table(votes):
        return sorted(
            (votes.units[u], votes.annotators[a], votes.values[v].to_json(), float(at), int(how), bool(scored))
            for u, a, v, at, how, scored in zip(votes.unit, votes.annotator, votes.value, votes.time, votes.provenance,
                                                votes.scored, strict=True)
        )  # fmt: skip

    assert table(mine) == table(current) and len(history.votes) > len(current)


def test_no_votes_have_an_empty_history(store):
    history = store.statistics.history(KEY)
    assert len(history.votes) == len(history.current) == len(history.lead_time_s) == 0


def test_checks_are_kept_until_taken_back(store):
    check = Check(unit="1", annotator="5", control="label", value='"A"', verdict="slip", checked_at=NOON)
    before = store.statistics.checks_made(KEY)
    store.statistics.check(KEY, check)
    first = store.statistics.checks_made(KEY)
    later = Check(unit="1", annotator="5", control="label", value='"B"', verdict="fine",
                  checked_at=NOON + timedelta(seconds=1))  # fmt: skip
    store.statistics.check(KEY, later)
    assert store.statistics.checks(KEY) == [later]
    assert len({before, first, store.statistics.checks_made(KEY)}) == 3 and before == 0
    assert store.statistics.uncheck(KEY, "1", "5", "label") and not store.statistics.uncheck(KEY, "1", "5", "label")
    assert store.statistics.checks(KEY) == [] and store.statistics.checks_made(KEY) == 0
    with pytest.raises(NotFound):
        store.statistics.check("9.9", check)

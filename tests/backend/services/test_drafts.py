"""Drafts with annotators' own tokens: what is made, what is never touched, crashes between any two steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from backend.errors import JobFailed, LabelStudioError
from backend.labeling import task_in_control_arm
from backend.labeling.provenance import provenance_of
from backend.ports import LabelStudio
from backend.records import Draft
from backend.services import drafts as drafts_module
from backend.services.annotator_tokens import AnnotatorTokens
from backend.services.delivery import Delivery
from backend.services.draft_writer import REMOVING, Place, hashed, look
from backend.services.drafts import Drafts
from backend.services.prediction import Prediction
from backend.services.served import TaskPredictions
from model.data.votes import Provenance
from tests.backend.services.desks import Drawer
from tests.backend.services.politeness import KEY, LABEL_STUDIO_ID, annotation, answer, snapshot, texts, vote
from tests.backend.services.shelf import Crash, PredictionShelf
from tests.backend.services.workshop import Workshop, silent, trained, workshop_of

ONE, TWO = "one@example.com", "two@example.com"
TOKENS = {"secret-1": ONE, "secret-2": TWO, "secret-9": "nine@example.com"}
NEXT = 6
WINDOW = set(range(41, 41 + NEXT))
DOWN = LabelStudioError("Label Studio is down.", retry=True)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("trained"))


class Opposite:
    """A prediction that says "rude" for "polite" and the other way round."""

    def __init__(self, prediction: Prediction) -> None:
        self._prediction = prediction
        self.remember = prediction.remember

    def compute(self, *arguments: Any) -> list[TaskPredictions]:
        return [replace(made, own={who: self._turned(one) for who, one in made.own.items()})
                for made in self._prediction.compute(*arguments)]

    @staticmethod
    def _turned(prediction: dict[str, Any]) -> dict[str, Any]:
        (region,) = prediction["result"]
        other = {"polite": "rude", "rude": "polite"}[region["value"]["choices"][0]]
        return prediction | {"result": [region | {"value": {"choices": [other]}}]}


class Bench:
    """A project with a published version, a Label Studio without the middleware, and two annotators' tokens."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop.having(middleware=False, draft_next_tasks=NEXT, consensus_every_s=0.0)
        self.shelf = PredictionShelf()
        self.drawer = Drawer(TOKENS)
        self.waits: list[float] = []
        self.seconds: Callable[[], float] = lambda: 0.0
        self.opposite = False
        for number in "129":
            self.tokens.add(KEY, TOKENS[f"secret-{number}"], f"secret-{number}")

    @property
    def tokens(self) -> AnnotatorTokens:
        return AnnotatorTokens(store=self.shop.store, settings=self.shop.settings, open_desk=self.drawer.open,
                               clock=self.shop.clock)

    def having(self, **changes: Any) -> None:
        self.shop = self.shop.having(**changes)

    @property
    def drafts(self) -> Drafts:
        shop, label_studio = self.shop, cast(LabelStudio, self.shelf)
        return Drafts(
            store=shop.store, label_studio=label_studio, features=shop.features,
            prediction=Opposite(shop.prediction) if self.opposite else shop.prediction,  # type: ignore[arg-type]
            tokens=self.tokens, open_desk=self.drawer.open, settings=shop.settings, clock=shop.clock,
            wait=self.waits.append, seconds=lambda: self.seconds(),
        )

    def deliver(self) -> dict[str, Any]:
        shop, label_studio = self.shop, cast(LabelStudio, self.shelf)
        shop.clock.forward(1)
        return Delivery(
            store=shop.store, label_studio=label_studio, features=shop.features, registry=shop.registry,
            prediction=shop.prediction, settings=shop.settings, clock=shop.clock, wait=lambda _: shop.clock.forward(9),
            drafts=self.drafts,
        ).run(KEY, silent)

    def vote(self, task: int, annotator: str) -> None:
        given = [one for one in self.shop.store.votes.of_tasks(KEY, [task])]
        votes = [*given, vote(task, annotator, answer(annotator, texts()[task - 1]))]
        self.shop.store.tasks.take_over(KEY, [snapshot(task, texts()[task - 1], votes)])

    def relearn(self) -> None:
        """A next version, which says the opposite."""
        self.shop.publish()
        self.opposite = not self.opposite


@pytest.fixture
def at(template: Path, tmp_path: Path) -> Bench:
    shop = workshop_of(template, tmp_path)
    shop.clock.forward(60)
    return Bench(shop)


def label(draft: dict[str, Any]) -> str:
    return str(draft["result"][0]["value"]["choices"][0])


def test_each_annotator_with_a_token_gets_drafts_of_their_next_tasks(at: Bench) -> None:
    figures = at.deliver()
    one, two = at.drawer.of(ONE), at.drawer.of(TWO)
    assert set(one) == set(two) == WINDOW
    assert at.drawer.of("nine@example.com") == {}  # never labelled here: nothing is known of them
    right = [label(one[task]) == answer("1", texts()[task - 1]) for task in WINDOW]
    right += [label(two[task]) == answer("2", texts()[task - 1]) for task in WINDOW]
    assert sum(right) >= 11
    assert (figures["drafts_made"], figures["drafts_left"], figures["consensus"]) == (12, 0, 20)
    assert all("annotator:" not in one["model_version"] for one in at.shelf.predictions)
    assert at.waits == [drafts_module.PAUSE_S] * 12
    assert [entry.draft_id for entry in at.shop.store.drafts.of(KEY).values() if entry.draft_id is None] == []


def test_a_draft_that_is_submitted_counts_as_an_echo(at: Bench) -> None:
    at.deliver()
    for draft in at.drawer.of(ONE).values():
        (region,) = draft["result"]
        assert region["origin"] == "prediction" and 0.0 < region["score"] <= 1.0
        assert region["meta"] == {"polyvox": "annotator:1@r1"}
        assert provenance_of(draft["result"], annotation(vote(41, "1", "polite"))) is Provenance.ACCEPTED


def test_tasks_in_the_control_arm_get_no_draft(at: Bench) -> None:
    at.having(control_arm_percent=50.0, draft_next_tasks=20)
    withheld = {task for task in range(41, 61) if task_in_control_arm(LABEL_STUDIO_ID, task, 50.0)}
    assert 4 < len(withheld) < 16
    at.deliver()
    assert set(at.drawer.of(ONE)) == set(range(41, 61)) - withheld


def test_that_drafts_can_be_seen_is_remembered_before_they_are_written(at: Bench) -> None:
    project, loaded = at.shop.store.projects.get(KEY), at.shop.registry.published(KEY)
    assert project is not None and loaded is not None
    at.drawer.breaks["create"] = Crash()
    with pytest.raises(Crash):
        at.drafts.run(project, loaded, at.shop.prediction.config(project.label_config), silent)
    assert at.drawer.drafts == []
    assert set(at.shop.store.deliveries.shown_since(KEY, sorted(range(1, 61)))) == WINDOW


def test_nothing_is_written_again_while_nothing_changes(at: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    # Somebody with few votes is answered by what they taught as well, which a copied version does not know.
    monkeypatch.setattr("model.coldstart.adapting.LITTLE", 0)
    at.deliver()
    at.shop.publish()  # a new version that says the same
    at.drawer.calls.clear()
    figures = at.deliver()
    assert at.drawer.calls == [] and figures["drafts_unchanged"] == 12


def test_what_changed_is_written_over_where_nobody_touched_it(at: Bench) -> None:
    at.deliver()
    before = {task: (draft["id"], label(draft)) for task, draft in at.drawer.of(ONE).items()}
    at.relearn()
    figures = at.deliver()
    after = at.drawer.of(ONE)
    assert {task: draft["id"] for task, draft in after.items()} == {task: each[0] for task, each in before.items()}
    assert all(label(after[task]) != before[task][1] for task in WINDOW)
    assert (figures["drafts_changed"], figures["drafts_made"]) == (12, 0)
    assert {draft["result"][0]["meta"]["polyvox"] for draft in after.values()} == {"annotator:1@r2"}


TOUCHES: dict[str, Callable[[Drawer, dict[str, Any]], None]] = {
    "another label": lambda drawer, draft: drawer.edit(
        draft, result=[{**draft["result"][0], "value": {"choices": ["other"]}, "origin": "prediction-changed"}]),
    "saved without a change": lambda drawer, draft: drawer.edit(draft),
    "saved with time": lambda drawer, draft: drawer.edit(draft, lead_time=3.0),
    "postponed": lambda drawer, draft: drawer.edit(draft, was_postponed=True),
    "emptied": lambda drawer, draft: drawer.edit(draft, result=[]),
    "discarded": lambda drawer, draft: drawer.discard(draft),
    "discarded and begun anew": lambda drawer, draft: (
        drawer.discard(draft), drawer.add(ONE, draft["task"], [{"id": "x"}]), None)[-1],
}


@pytest.mark.parametrize("touch", TOUCHES.values(), ids=TOUCHES)
def test_a_touched_draft_is_never_touched_again(at: Bench, touch: Callable[[Drawer, dict[str, Any]], None]) -> None:
    at.deliver()
    for draft in list(at.drawer.of(ONE).values()):
        touch(at.drawer, draft)
    theirs = [dict(draft) for draft in at.drawer.drafts if draft["user"] == ONE]
    for _ in range(2):
        at.relearn()
        at.deliver()
        assert [draft for draft in at.drawer.drafts if draft["user"] == ONE] == theirs
    at.having(own_active_days=0.0)  # nobody is to have any
    at.deliver()
    assert [draft for draft in at.drawer.drafts if draft["user"] == ONE] == theirs
    assert at.drawer.of(TWO) == {}


def test_where_the_annotator_has_begun_a_draft_none_is_made(at: Bench) -> None:
    own = dict(at.drawer.add(ONE, 42, [{"id": "x"}], lead_time=2.0))
    at.drawer.add("somebody.else@example.com", 43, [])
    at.deliver()
    assert at.drawer.of(ONE)[42] == own and label(at.drawer.of(ONE)[43])


def test_a_second_draft_of_the_annotator_makes_ours_go(at: Bench) -> None:
    at.deliver()
    own = at.drawer.add(ONE, 42, [{"id": "x"}], lead_time=2.0)
    at.relearn()
    at.deliver()
    assert at.drawer.of(ONE)[42]["id"] == own["id"]


def test_drafts_move_on_with_the_annotator(at: Bench) -> None:
    at.deliver()
    at.drawer.discard(at.drawer.of(ONE)[41])  # Submit removes it
    at.vote(41, "1")
    at.vote(42, "1")  # submitted by the API, so the draft stays
    figures = at.deliver()
    assert set(at.drawer.of(ONE)) == set(range(43, 49))
    assert (figures["drafts_made"], figures["drafts_removed"]) == (2, 2)
    assert {pair for pair in at.shop.store.drafts.of(KEY) if pair[1] == "1"} == {(task, "1") for task in range(43, 49)}
    assert set(at.drawer.of(TWO)) == WINDOW


def test_a_task_labelled_and_opened_again_gets_a_draft_again(at: Bench) -> None:
    at.deliver()
    at.drawer.edit(at.drawer.of(ONE)[41], lead_time=1.0)
    at.relearn()
    at.deliver()
    assert at.shop.store.drafts.of(KEY)[41, "1"].theirs
    at.drawer.discard(at.drawer.of(ONE)[41])
    at.vote(41, "1")
    at.deliver()
    assert (41, "1") not in at.shop.store.drafts.of(KEY)
    at.shop.store.tasks.take_over(KEY, [snapshot(41, texts()[40])])
    at.deliver()
    assert 41 in at.drawer.of(ONE)


def test_with_the_middleware_drafts_are_taken_back(at: Bench) -> None:
    at.deliver()
    at.drawer.edit(at.drawer.of(TWO)[44], lead_time=1.0)
    at.having(middleware=True)
    figures = at.deliver()
    assert at.drawer.of(ONE) == {} and set(at.drawer.of(TWO)) == {44}
    assert figures["drafts_removed"] == 11
    assert "drafts_made" not in at.deliver() or at.drawer.of(ONE) == {}


def test_without_tokens_nothing_is_asked(at: Bench) -> None:
    for number in "129":
        at.shop.store.tokens.remove(KEY, number)
    at.drawer.calls.clear()
    figures = at.deliver()
    assert at.drawer.calls == [] and not [name for name in figures if name.startswith("drafts")]


def test_a_refused_token_is_said_and_keeps_nobody_else_waiting(at: Bench) -> None:
    at.drawer.refused = {"secret-1"}
    figures = at.deliver()
    assert at.drawer.of(ONE) == {} and set(at.drawer.of(TWO)) == WINDOW
    assert figures["drafts_failed"] == 1 and figures["drafts_left"] == 0
    problems = {each.annotator: each.problem for each in at.shop.store.tokens.of(KEY)}
    assert "refuses the token of one@example.com" in problems["1"] and problems["2"] == ""
    at.drawer.refused = set()
    at.deliver()
    assert set(at.drawer.of(ONE)) == WINDOW
    assert {each.problem for each in at.shop.store.tokens.of(KEY)} == {""}


def test_a_task_that_is_gone_is_passed_over(at: Bench) -> None:
    at.drawer.missing = {42}
    at.shelf.gone = {42}
    figures = at.deliver()
    assert set(at.drawer.of(ONE)) == WINDOW - {42} and figures["drafts_failed"] == 2
    assert [task for task, _ in at.shop.store.tasks.dirty(KEY, 10)] == [42]


def test_a_label_studio_that_is_ill_is_no_task_that_is_gone(at: Bench) -> None:
    at.drawer.missing = {42}
    with pytest.raises(JobFailed, match="500") as failure:
        at.deliver()
    assert failure.value.retry_in_s


def test_the_nearest_tasks_come_first_and_the_rest_in_the_next_run(
    at: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(10_000))
    monkeypatch.setattr(drafts_module, "BUDGET_S", 5.5)
    at.seconds = lambda: float(next(ticks))
    figures = at.deliver()
    assert (figures["drafts_made"], figures["drafts_left"]) == (5, 7)
    assert set(at.drawer.of(ONE)) == {41, 42, 43} and set(at.drawer.of(TWO)) == {41, 42}
    assert at.deliver()["drafts_left"] == 2
    assert at.deliver()["drafts_left"] == 0
    assert set(at.drawer.of(ONE)) == set(at.drawer.of(TWO)) == WINDOW


@pytest.mark.parametrize("how", [Crash(), DOWN], ids=["crash", "down"])
@pytest.mark.parametrize("where", ["drafts", "create", "create:after"])
def test_making_that_broke_off_is_resumed_without_doubles(at: Bench, where: str, how: BaseException) -> None:
    at.drawer.breaks[where] = how
    with pytest.raises((Crash, JobFailed)):
        at.deliver()
    at.deliver()
    assert set(at.drawer.of(ONE)) == set(at.drawer.of(TWO)) == WINDOW
    assert not any(entry.theirs or entry.pending for entry in at.shop.store.drafts.of(KEY).values())


@pytest.mark.parametrize("how", [Crash(), DOWN], ids=["crash", "down"])
@pytest.mark.parametrize("where", ["update", "update:after"])
def test_a_change_that_broke_off_is_resumed(at: Bench, where: str, how: BaseException) -> None:
    at.deliver()
    at.relearn()
    at.drawer.breaks[where] = how
    with pytest.raises((Crash, JobFailed)):
        at.deliver()
    at.deliver()
    entries = at.shop.store.drafts.of(KEY)
    assert not any(entry.theirs or entry.pending for entry in entries.values())
    for email, annotator in ((ONE, "1"), (TWO, "2")):
        for task, draft in at.drawer.of(email).items():
            assert hashed(draft["result"]) == entries[task, annotator].written


@pytest.mark.parametrize("how", [Crash(), DOWN], ids=["crash", "down"])
@pytest.mark.parametrize("where", ["delete", "delete:after"])
def test_a_removal_that_broke_off_is_resumed(at: Bench, where: str, how: BaseException) -> None:
    at.deliver()
    at.having(own_active_days=0.0)
    at.drawer.breaks[where] = how
    with pytest.raises((Crash, JobFailed)):
        at.deliver()
    at.having(own_active_days=60.0)
    at.deliver()  # wanted after all: what we removed ourselves is no refusal
    assert set(at.drawer.of(ONE)) == set(at.drawer.of(TWO)) == WINDOW
    assert not any(entry.theirs for entry in at.shop.store.drafts.of(KEY).values())


def test_an_edit_after_a_crash_is_not_written_over(at: Bench) -> None:
    at.deliver()
    at.relearn()
    at.drawer.breaks["update:after"] = Crash()
    with pytest.raises(Crash):
        at.deliver()
    (pair,) = [pair for pair, entry in at.shop.store.drafts.of(KEY).items() if entry.pending]
    draft = at.drawer.of({"1": ONE, "2": TWO}[pair[1]])[pair[0]]
    at.drawer.edit(draft, lead_time=4.0)
    mine = dict(draft)
    at.deliver()
    assert at.drawer.of(draft["user"])[pair[0]] == mine


ENTRY = Draft(task_id=1, annotator="1", draft_id=7, version="r1", digest="d", written=hashed(["a"]), updated_at="t1")
OURS = {"id": 7, "result": ["a"], "updated_at": "t1", "lead_time": 0.0, "was_postponed": False, "annotation": None}


@pytest.mark.parametrize("entry, found, place", [
    (None, [], Place.FREE),
    (None, [OURS], Place.THEIRS),
    (ENTRY, [OURS], Place.OURS),
    (ENTRY, [OURS | {"updated_at": "t2"}], Place.THEIRS),
    (ENTRY, [OURS | {"result": ["b"]}], Place.THEIRS),
    (ENTRY, [OURS | {"annotation": 5}], Place.THEIRS),
    (ENTRY, [], Place.GONE),
    (ENTRY, [OURS | {"id": 8}], Place.THEIRS),
    (replace(ENTRY, pending=REMOVING), [], Place.FREE),
    (replace(ENTRY, pending=REMOVING), [OURS], Place.OURS),
    (replace(ENTRY, pending=hashed(["b"])), [OURS | {"result": ["b"], "updated_at": "t2"}], Place.OURS),
    (replace(ENTRY, pending=hashed(["b"])), [OURS | {"result": ["b"], "lead_time": 1.0}], Place.THEIRS),
    (replace(ENTRY, pending=hashed(["b"])), [OURS], Place.OURS),
    (replace(ENTRY, draft_id=None, written="", pending=hashed(["a"])), [], Place.FREE),
    (replace(ENTRY, draft_id=None, written="", pending=hashed(["a"])), [OURS], Place.OURS),
    (replace(ENTRY, draft_id=None, written="", pending=hashed(["b"])), [OURS], Place.THEIRS),
    (replace(ENTRY, theirs=True), [OURS], Place.THEIRS),
])
def test_looking(entry: Draft | None, found: list[dict[str, Any]], place: Place) -> None:
    assert look(entry, found)[0] is place

"""The state in words: each sentence true for what it is made from."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from backend.client.alive import SILENT
from backend.records import (
    Delivery,
    DeliveryStep,
    Job,
    JobKind,
    JobState,
    Project,
    SyncState,
    Verdict,
    VoteCounts,
)
from backend.routes import sentences
from backend.routes.overview import AnnotatorScore, CrowdFigures, Overview, ProjectView, control_figures
from backend.settings import Settings
from tests.backend.web.conftest import NOW
from tests.backend.web.test_status_page import FIGURES, KEY, version

DELIVERED = Delivery(
    project=KEY, version="consensus@r12", step=DeliveryStep.DONE, started_at=NOW - timedelta(minutes=5),
    finished_at=NOW - timedelta(minutes=4))


def view(*, votes=750, classes=3, changes=12, published=12, tried=(12,), settings=None, **more):
    usual = {
        "project": Project(key=KEY, label_studio_id=12, title="T", label_config="", version=None, settings={}),
        "link": "", "tasks": 300, "dirty": 0, "sync": SyncState(last_success=NOW), "delivery": DELIVERED, "jobs": (),
        "votes": VoteCounts(total=votes, tasks_with_votes=150, annotators=5, classes=classes, last_change=NOW,
                            changes=changes),
        "published": version(published) if published else None, "answering": version(published) if published else None,
        "versions": [version(number, Verdict.PUBLISHED if number == published else Verdict.REJECTED)
                     for number in tried],
        "figures": control_figures(FIGURES), "settings": settings or Settings(), "delivers": True, "notes": (),
        "crowd": (), "scores": (),
        "problems": ()}
    return ProjectView(**usual | more)


def job(kind, state, *, error="", in_s=0.0):
    moment = NOW + timedelta(seconds=in_s)
    return Job(
        id="x", kind=kind, project=KEY, payload={}, state=state, progress=0.0, note="", error=error, figures={},
        attempts=1, created_at=NOW, not_before=moment, started_at=None, finished_at=None, lease_until=None,
        lease_owner="")


@pytest.mark.parametrize("shown, said", [
    (view(), "Version r12 answers, published 48 minutes ago, and is delivered."),
    (view(delivery=None), "Version r12 answers, published 48 minutes ago; nothing is delivered yet."),
    (view(published=13), "Version r13 answers, published 47 minutes ago; consensus@r12 is delivered, the newer one "
                         "follows."),
    (view(delivers=False), "Version r12 answers, published 48 minutes ago, when Label Studio asks for a task; nothing "
                           "is delivered in bulk."),
    (view(settings=Settings(shadow_mode=True)), "Version r12 answers, published 48 minutes ago, in shadow mode: its "
                                                "predictions are scored and not shown."),
    (view(published=None, votes=12), "No version answers yet: the first training starts at 20 votes, 8 to go."),
    (view(published=None, classes=1), "No version answers yet: all votes say the same."),
    (view(published=None), "No version answers yet."),
    (view(answering=None), "No version answers, since the checkpoint of r12 is missing or damaged and there is no "
                           "earlier one; until the next training only votes count."),
    (view(answering=version(11)), "Version r11 answers, since the checkpoint of r12 is missing or damaged."),
])
def test_which_version_answers(shown, said):
    assert sentences.answering(shown, NOW) == said


def test_how_good_it_is_beside_the_naive_answers():
    (figures,) = control_figures(FIGURES)
    assert sentences.quality(figures) == (
        "The model predicted 80\u202f% of 168 held-out votes on politeness right; simple guesses reach 51\u202f% (how "
        "often each annotator gives each label) and 65\u202f% (content, and how lenient each annotator is). Its "
        "probabilities are better than those of the best of them (log-loss 0.517 against 0.802).")


@pytest.mark.parametrize("served, words", [
    (0.800, "as good as those of the best of them (log-loss 0.800 against 0.802)"),
    (0.850, "worse than those of the best of them (log-loss 0.850 against 0.802)"),
])
def test_it_does_not_boast(served, words):
    heldout = FIGURES["controls"]["politeness"]["heldout"] | {
        "served": {"votes": 30, "accuracy": 0.6, "log_loss": served}}
    (figures,) = control_figures({"controls": {"a": {"heldout": heldout}}})
    said = sentences.quality(figures)
    assert words + "." in said and "30 held-out votes" in said and said.endswith("take the figures as rough.")


def test_figures_that_are_missing_are_not_made_up():
    served = {"served": {"votes": 1, "accuracy": None, "log_loss": None}}
    (figures,) = control_figures({"controls": {"a": {"heldout": served}}})
    assert sentences.quality(figures) == "How good it is at a is not known: no votes were held out that could judge it."
    assert "could not be measured yet" in " ".join(sentences.of_project(view(figures=()), NOW))


def test_how_good_orders_are():
    about = {"unseen": {"scored": 90, "helps": True, "gain": 0.4, "loss": 2.78, "uniform": 3.18},
             "gap": {"scored": 60, "helps": False, "gain": 0.01, "loss": 3.17, "uniform": 3.18}}
    figures = {"controls": {}, "rankings": {"rank": about, "odd": None, "none": {"unseen": {"scored": 1}}}}
    said = sentences.of_project(view(published=12, figures=(), crowd=()), NOW)
    assert any("could not be measured yet" in each for each in said)
    ranked = replace(version(12), figures=figures)
    said = sentences.of_project(replace(view(figures=()), published=ranked), NOW)
    assert said[1] == (
        "Orders of rank: on tasks without a ranking a log-loss of 2.78 a ranking against 3.18 of equal chances for all "
        "orders (90 cross-validated; lower is better): predicted; on tasks with some a log-loss of 3.17 a ranking "
        "against 3.18 of equal chances for all orders (60 cross-validated; lower is better): not predicted, since "
        "that is not beyond chance.")
    assert not any("could not be measured" in each or "odd" in each for each in said)


def test_what_waits():
    assert sentences.waiting(view(), NOW) == []
    assert sentences.waiting(view(dirty=1, changes=15), NOW) == [
        "1 task changed and will be read again.",
        "3 votes changed since the last training; the next one comes after 10, or 20 seconds without a new one."]
    few = view(changes=15, votes=6)
    assert sentences.waiting(few, NOW) == [
        "3 votes changed since the last training; the next one comes at 20 votes, 14 to go."]
    same = replace(view(changes=15), votes=replace(view(changes=15).votes, classes=1))
    assert sentences.waiting(same, NOW)[0].endswith("the next one comes when votes do not all say the same.")
    (waits,) = sentences.waiting(view(changes=15, tried=(14, 13, 12)), NOW)
    assert waits.startswith("1 vote changed") and "since the last 2 tried were not published" in waits
    training = (job(JobKind.TRAIN, JobState.RUNNING),)
    assert sentences.waiting(view(changes=15, jobs=training), NOW) == []
    retried = (job(JobKind.DELIVER, JobState.QUEUED, error="Label Studio does not answer.", in_s=12),)
    assert sentences.waiting(view(jobs=retried), NOW) == [
        "The deliver job of 2026-11-28 12:00:00 UTC failed and is tried again in 12 s: Label Studio does not answer."]
    dead = (replace(job(JobKind.TRAIN, JobState.RUNNING, error="The job process stopped answering."),
                    interrupted_at=NOW + timedelta(seconds=61)),)
    assert sentences.waiting(view(jobs=dead), NOW) == [
        "The train job of 2026-11-28 12:00:00 UTC was interrupted at 2026-11-28 12:01:01 UTC and runs again; its last "
        "error: The job process stopped answering."]
    (unread,) = sentences.waiting(view(published=None, sync=SyncState(), tasks=0), NOW)
    assert "not read from Label Studio yet" in unread


def test_what_is_connected():
    def shown(connected, *views, away=""):
        return Overview(at=NOW, label_studio_url="http://ls", connected=connected, away=away, projects=views,
                        problems=())

    assert sentences.connection(shown(False)).startswith("Polyvox is not connected")
    assert sentences.connection(shown(True)) == "Label Studio at http://ls answers; nothing was read from it yet."
    down = sentences.connection(shown(True, view(), away=SILENT))
    assert down == ("Label Studio at http://ls does not answer: start it again, or check LABEL_STUDIO_URL; until then "
                    "no votes are read and nothing is delivered.")
    refused = view(sync=SyncState(last_success=NOW, last_error="Label Studio refused the token (401).", failures=1))
    assert "answers, but Polyvox cannot read it" in sentences.connection(shown(True, refused))
    assert "works for" in sentences.connection(shown(True, refused, view()))
    assert sentences.connection(shown(True, view())).endswith("at http://ls, last read just now.")


def test_a_rejected_version_is_told_with_its_reason():
    assert sentences.newest_verdict(view()) == ""
    assert sentences.newest_verdict(view(tried=(13, 12))) == "r13 was not published, r12 stays: It is not worse."
    assert "nothing is published yet" in sentences.newest_verdict(view(published=None, tried=(1,)))


def test_what_votes_alone_say_is_there_before_any_version():
    figures = CrowdFigures(control="politeness", tasks=12, confidence=0.91, alpha=0.456)
    scores = [AnnotatorScore(annotator="7", name="Zoe", control="politeness", votes=9, accuracy=0.3, fault="spammer"),
              AnnotatorScore(annotator="8", name="Yan", control="politeness", votes=9, accuracy=0.9, fault="")]
    said = sentences.of_project(view(published=None, crowd=[figures], scores=scores), NOW)
    assert ("From votes alone, 12 tasks have a consensus on politeness with an average confidence of "
            "91 %; annotators agree with Krippendorff's alpha 0.46 (1 is perfect, 0 is guessing).") in said
    assert "Worth asking about: Zoe: labels not explained." in said
    one = CrowdFigures(control="a", tasks=1, confidence=None, alpha=None)
    assert sentences.crowd(view(crowd=[one])) == ["From votes alone, 1 task has a consensus on a."]
    for former in ("dawid-skene", "median"):  # documents that an older release computed
        assert sentences.crowd(view(crowd=[replace(one, method=former)])) == sentences.crowd(view(crowd=[one]))
    assert sentences.crowd(view(crowd=[replace(one, method="r3")])) == ["By version r3, 1 task has a consensus on a."]


def test_whom_the_model_has_learned_is_told_by_name():
    def score(number, learned):
        return AnnotatorScore(annotator=str(number), name=f"Name {number}", control="tone", votes=9, accuracy=None,
                              fault="", learned=learned)

    scores = [*(score(each, "learned") for each in range(7)), score(7, "learning"), score(8, "cannot foresee yet")]
    assert sentences.learned(view(scores=scores)) == [
        "Learned so far on tone: Name 0, Name 1, Name 2, Name 3, Name 4 and 2 more.",
        "Still learning on tone, with too few votes to tell: Name 7.", "On tone the model cannot foresee yet: Name 8.",
    ]
    assert sentences.learned(view(scores=[score(1, "")])) == []

"""GET /: JSON for programs, a page for people; both from the same records, nothing unescaped, nothing inline."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

from backend.app import create_app
from backend.ports import utc_now
from backend.records import (
    Annotation,
    Delivery,
    DeliveryStep,
    JobKind,
    StoredVote,
    SyncState,
    Task,
    TaskSnapshot,
    Verdict,
    Version,
)
from backend.routes import problems
from backend.routes.overview import JOBS_LOOKED_AT, TELL_OF_INTERRUPTIONS, control_figures
from backend.routes.status import ago
from model.data.spaces import Value
from model.data.votes import Provenance
from tests.backend.web.conftest import NOW

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
KEY = "12.1764288000"
EVIL = "<script>alert('x')</script> & Co"
FIGURES = {"controls": {"politeness": {
    "votes": 412, "classes": 3, "temperature": 1.1, "weights": {"prior": 0.12, "pooled": 0.31, "network": 0.94},
    "heldout": {
        "prior": {"votes": 168, "accuracy": 0.512, "log_loss": 0.981},
        "pooled": {"votes": 168, "accuracy": 0.647, "log_loss": 0.802},
        "network": {"votes": 168, "accuracy": 0.781, "log_loss": 0.566},
        "served": {"votes": 168, "accuracy": 0.803, "log_loss": 0.517},
    },
}}}


def version(number, verdict=Verdict.PUBLISHED, reason="It is not worse.", figures=None):
    return Version(
        project=KEY, name=f"r{number}", number=number, path=f"{KEY}/r{number}", verdict=verdict, reason=reason,
        figures=figures or {}, changes=number, created_at=NOW - timedelta(minutes=60 - number))


def label(store, *, tasks, annotators):
    """Each annotator labels each second task."""
    def snapshot(task_id):
        people = [str(who) for who in range(1, annotators + 1) if task_id % 2 == 0]
        annotations = [Annotation(
            id=task_id * 100 + int(who), task_id=task_id, annotator=who, result=[], was_cancelled=False,
            ground_truth=False, created_at=NOW, updated_at=NOW - timedelta(minutes=2), lead_time_s=3.0, imported=False,
            parent_prediction=None) for who in people]
        votes = [StoredVote(
            unit=str(task_id), task_id=task_id, annotation_id=each.id, annotator=each.annotator, control="politeness",
            value=Value.of_class("polite" if (task_id + int(each.annotator)) % 3 else "rude"),
            updated_at=each.updated_at, lead_time_s=3.0, provenance=Provenance.MANUAL, shown=False,
            control_arm=False) for each in annotations]
        task = Task(id=task_id, data={"text": "x"}, updated_at=NOW)
        return TaskSnapshot(task=task, annotations=annotations, votes=votes)

    store.projects.ensure(KEY, title="How polite is this message?")
    store.tasks.take_over(KEY, [snapshot(task_id) for task_id in range(1, tasks + 1)])


def fill(services):
    """A project in the middle of its life, a new one, and one in trouble."""
    store = services.store
    label(store, tasks=300, annotators=5)
    store.versions.add(version(11, figures=FIGURES))
    store.versions.add(version(12, figures=FIGURES))
    store.versions.add(version(13, Verdict.REJECTED, "On 168 held-out votes it is worse by 0.03 (0.01 to 0.05)."))
    store.projects.set_sync_state(KEY, SyncState(last_success=NOW - timedelta(minutes=4)))
    store.deliveries.save(Delivery(
        project=KEY, version="consensus@r12", step=DeliveryStep.DONE, started_at=NOW - timedelta(minutes=47),
        finished_at=NOW - timedelta(minutes=46)))
    store.jobs.enqueue(JobKind.TRAIN, KEY)
    job = store.jobs.claim("test", lease_s=60)
    store.jobs.heartbeat(job.id, "test", progress=0.43, note="network, epoch 9 of 20", lease_s=60)
    store.jobs.enqueue(JobKind.DELIVER, KEY)
    store.projects.ensure("14.1764290000", title=EVIL)
    store.projects.ensure("15.1764290001", title="Sentiment of reviews")
    store.projects.set_sync_state(
        "15.1764290001", SyncState(failures=3, last_error="Label Studio refused the access token (401)."))


@pytest.fixture
def filled(services_with):
    services = services_with(label_studio_url="http://localhost:8080", label_studio_api_key="k")
    fill(services)
    return services


@pytest.fixture
def client(filled):
    # No prediction is made here, so the served object need not exist (it would import torch).
    return create_app(filled, SimpleNamespace()).test_client()


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/plain", "application/json, text/html;q=0.5"])
def test_programs_get_json(accept, client):
    response = client.get("/", headers={"Accept": accept} if accept else {})
    assert response.is_json and response.json["status"] == "UP"
    assert "Accept" in response.headers["Vary"]


def test_the_json_says_what_there_is(client):
    answer = client.get("/").json
    project = next(each for each in answer["projects"] if each["project"] == KEY)
    assert (project["model_version"], project["votes"], project["annotators"], project["tasks"]) == ("r12", 750, 5, 300)
    assert project["heldout"]["politeness"]["ways"]["served"] == {
        "accuracy": 0.803, "log_loss": 0.517, "weight": None}
    assert {(job["kind"], job["state"], job["progress"]) for job in project["jobs"]} == {
        ("train", "running", 0.43), ("deliver", "queued", 0.0)}
    assert project["verdict"].startswith("r13 was not published, r12 stays: On 168")
    assert project["delivered"]["version"] == "consensus@r12"
    assert answer["label_studio"] == {"url": "http://localhost:8080", "connected": True, "answers": True}


def test_the_json_says_it_in_sentences(client):
    answer = client.get("/").json
    project = next(each for each in answer["projects"] if each["project"] == KEY)
    assert answer["says"].startswith("Polyvox works for Label Studio at http://localhost:8080")
    assert project["says"][0].startswith("Version r12 answers")
    assert any("predicted 80\u202f%" in each and "simple guesses reach 51\u202f%" in each for each in project["says"])
    assert [(each["name"], each["verdict"]) for each in project["versions"]] == [
        ("r13", "rejected"), ("r12", "published"), ("r11", "published")]


def test_what_checks_found_is_a_problem(filled, client):
    filled.store.projects.set_findings(KEY, "webhooks", ["Label Studio has no webhook to Polyvox."])
    project = next(each for each in client.get("/").json["projects"] if each["project"] == KEY)
    assert "Label Studio has no webhook to Polyvox." in project["problems"]
    assert "Label Studio has no webhook to Polyvox." in client.get("/", headers=HTML).get_data(as_text=True)


def test_a_job_older_than_many_others_is_still_shown(filled, client):
    """A training of hours has many readings after it."""
    for _ in range(40):
        filled.store.jobs.enqueue(JobKind.RECONCILE, KEY)
        job = filled.store.jobs.claim("other", lease_s=60, kinds=[JobKind.RECONCILE])
        filled.store.jobs.finish(job.id, "other", figures={})
    project = next(each for each in client.get("/").json["projects"] if each["project"] == KEY)
    assert ("train", "running") in {(job["kind"], job["state"]) for job in project["jobs"]}


def test_browsers_get_a_page(client):
    response = client.get("/", headers=HTML)
    page = response.get_data(as_text=True)
    assert response.mimetype == "text/html"
    for shown in ("How polite is this message?", "r12", "750", "43 %", "epoch 9 of 20", "80.3 %", "0.517", "0.94",
                  "r13 was not published", "refused the access token", "0 of 20", "http://localhost:8080/projects/12/data"):
        assert shown in page, shown


def test_everything_is_escaped_and_nothing_is_inline(client):
    response = client.get("/", headers=HTML)
    page = response.get_data(as_text=True)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert "style=" not in page and "onclick" not in page and page.count("<script") == 1
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.mark.parametrize("name, kind", [
    ("status.css", "text/css"), ("status.js", "text/javascript"), ("icon.svg", "image/svg+xml")])
def test_static_files(name, kind, client):
    response = client.get(f"/static/{name}")
    assert response.status_code == 200 and response.mimetype == kind


def test_head_has_no_body(client):
    assert client.head("/", headers=HTML).status_code == 200
    assert client.head("/").data == b""


def test_an_empty_instance_says_what_to_do(services_with):
    client = create_app(services_with(control_arm_percent=0), SimpleNamespace()).test_client()
    page = client.get("/", headers=HTML).get_data(as_text=True)
    assert "No project yet" in page and "set LABEL_STUDIO_URL" in page and "control arm is switched off" in page


def test_jobs_without_anybody_to_run_them_are_a_problem(services_with):
    services = services_with()
    services.store.projects.ensure(KEY)
    services.store.jobs.enqueue(JobKind.TRAIN, KEY)
    begun = services.store.jobs.recent()[0].created_at
    client = create_app(services, SimpleNamespace()).test_client()
    services.clock = lambda: begun + timedelta(seconds=30)
    assert not any("nothing runs them" in each for each in client.get("/").json["problems"])
    services.clock = lambda: begun + timedelta(seconds=90)
    assert any("python -m backend worker" in each for each in client.get("/").json["problems"])


def test_a_failed_job_is_a_problem_until_one_succeeds(filled, client):
    store = filled.store

    def said():
        return [each for project in client.get("/").json["projects"] for each in project["problems"]
                if "job failed" in each]

    store.jobs.enqueue(JobKind.RECONCILE, KEY)
    job = store.jobs.claim("other", lease_s=60, kinds=[JobKind.RECONCILE])
    store.jobs.fail(job.id, "other", error="Label Studio is down.", retry_at=None)
    for _ in range(2):
        (sentence,) = said()
        assert sentence.startswith("The last reconcile job failed, at ") and "Label Studio is down." in sentence
        _end_jobs(store, JOBS_LOOKED_AT)
    store.jobs.enqueue(JobKind.RECONCILE, KEY)
    store.jobs.finish(store.jobs.claim("other", lease_s=60, kinds=[JobKind.RECONCILE]).id, "other", figures={})
    assert said() == []


def test_a_failed_delivery_is_none_where_nothing_is_delivered_any_more(filled, client):
    jobs = filled.store.jobs
    job = jobs.claim("other", lease_s=60, job_id=jobs.enqueue(JobKind.DELIVER, KEY).id)
    if job is None:  # the project has one that runs
        job = jobs.pending(KEY, JobKind.DELIVER)
    jobs.fail(job.id, job.lease_owner, error="Label Studio is down.", retry_at=None)

    def said():
        return [each for each in client.get("/").json["projects"][0]["problems"] if "deliver job failed" in each]

    assert len(said()) == 1
    filled.triggers.delivers = lambda project: False
    assert said() == []


def test_an_interrupted_job_is_named_whatever_followed_it_and_for_some_minutes(services_with):
    services = services_with()
    services.store.projects.ensure(KEY)
    services.clock = utc_now
    jobs, client = services.store.jobs, create_app(services, SimpleNamespace()).test_client()

    def said(job):
        return [each for each in client.get("/").json["projects"][0]["says"] if problems.the(job) in each]

    def ends(job, *words):
        (sentence,) = said(job)
        assert all(each in sentence for each in words), sentence

    first, stopped = jobs.enqueue(JobKind.DELIVER, KEY), jobs.enqueue(JobKind.TRAIN, KEY)
    for job in (first, stopped):
        jobs.claim("dead:heavy", lease_s=60, job_id=job.id)
    jobs.give_back(stopped.id, "dead:heavy", error="The job process was stopped.")
    jobs.release("dead", error="The job process died.")
    newer = jobs.enqueue(JobKind.DELIVER, KEY)
    assert jobs.claim("alive:heavy", lease_s=60, job_id=newer.id) is not None  # one that is younger runs before it
    _end_jobs(services.store, JOBS_LOOKED_AT)
    ends(first, "was interrupted at ", " and is tried again; its last error: The job process died.")
    ends(stopped, "was interrupted at ", " and is tried again; its last error: The job process was stopped.")
    jobs.finish(newer.id, "alive:heavy", figures={})
    for job in (first, stopped):
        jobs.claim("alive:heavy", lease_s=60, job_id=job.id)
        ends(job, " and runs again; its last error: The job process ")
        jobs.finish(job.id, "alive:heavy", figures={})
        ends(job, "was interrupted at ", " and went through.")
    services.clock = lambda: utc_now() + TELL_OF_INTERRUPTIONS
    assert said(first) == said(stopped) == []


def _end_jobs(store, number):
    """More than the status looks at."""
    for _ in range(number):
        job = store.jobs.enqueue(JobKind.SYNC, KEY)
        store.jobs.claim("other", lease_s=60, job_id=job.id)
        store.jobs.finish(job.id, "other", figures={})


@pytest.mark.parametrize("figures", [
    {}, {"controls": None}, {"controls": []}, {"controls": {"a": 1}}, {"controls": {"a": {"heldout": {}}}},
    {"controls": {"a": {"heldout": {"served": {"votes": 0}}, "weights": None}}},
    {"controls": {"a": {"heldout": {"served": 3}}}}])
def test_figures_of_another_shape_are_left_out(figures):
    assert control_figures(figures) == []


def test_figures_may_lack_numbers():
    figures = {"controls": {"a": {"heldout": {"served": {"votes": 3, "accuracy": float("nan")}}}}}
    (only,) = control_figures(figures)
    assert (only.heldout_votes, only.ways[0].accuracy, only.ways[0].log_loss) == (3, None, None)


@pytest.mark.parametrize("seconds, words", [
    (-5, "just now"), (59, "just now"), (60, "1 minute ago"), (7300, "2 hours ago"), (90_000, "1 day ago")])
def test_times_in_words(seconds, words):
    assert ago(NOW - timedelta(seconds=seconds), NOW) == words

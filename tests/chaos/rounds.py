"""One round: annotators work, something is killed at its moment and started again, and everything must hold."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from backend.records import Job
from backend.routes.problems import the
from demo.client import choice
from demo.personas import PERSONAS
from demo.sample import CONTROL, LABEL_CONFIG, OBJECT, load
from tests.chaos import checks
from tests.chaos.annotators import Annotators
from tests.chaos.checks import Subject
from tests.chaos.moments import KIND, NotReached, Watch, When, at, unfinished
from tests.chaos.plan import Round
from tests.chaos.world import Victim, World

TASKS = 120
LABELLED_EACH = 30  # of the tasks, by each annotator, before the first round
MOMENT_S = 400.0  # a training gives way to everything else on the machine
REST_S = 240.0
WORK_ON = 3  # submits that must be accepted while something is away, and again when it is back
NAMED_S = 40.0  # for the status to say what is wrong
NAMES = {Victim.REDIS: "Redis does not answer", Victim.LABEL_STUDIO: "Reading Label Studio failed"}


@dataclass(kw_only=True)
class Outcome:
    """What came of a round; `failures` is empty when all held."""

    round: Round
    answered_s: float | None = None  # from the kill until /setup and /predict answer
    rest_s: float | None = None  # from the kill until at rest, annotators working on meanwhile
    submits: int = 0
    refused: int = 0
    slowest_submit_s: float = 0.0
    said: str = ""  # by the status
    versions: int = 0  # published while the round lasted
    failures: list[str] = field(default_factory=list)


def project(world: World) -> Subject:
    """A project that annotators have begun to label, connected to Polyvox, whose first version is delivered."""
    owner, people = world.label_studio.owner, world.label_studio.annotators
    messages = load()[:TASKS]
    number = owner.create_project("Chaos", LABEL_CONFIG, maximum_annotations=len(people))
    given = [
        {"data": {"text": message.text}, "annotations": [
            {"result": [choice(CONTROL, OBJECT, PERSONAS[who].label(message, 0))], "completed_by": account.id,
             "ground_truth": False}
            for who, account in enumerate(people) if (index + who) % (TASKS // LABELLED_EACH) == 0
        ]}
        for index, message in enumerate(messages)
    ]
    owner.import_tasks(number, given)
    owner.add_ml_backend(number, world.url, "Polyvox")
    found = world.store.projects.by_label_studio_id(number)
    assert found is not None, "Label Studio did not call /setup"
    subject = Subject(world=world, number=number, key=found.key)
    checks.wait_for_rest(subject, since=0.0, timeout_s=REST_S)
    return subject


def play(subject: Subject, this: Round) -> Outcome:
    """Never raises for what it tests: failures are part of the outcome."""
    outcome, world = Outcome(round=this), subject.world
    tasks = world.label_studio.owner.task_ids(subject.number)
    before = len(world.store.versions.recent(subject.key, limit=1000))
    people = Annotators(world.label_studio, tasks, load()[:TASKS], this.seed)
    people.start()
    try:
        with _noted(outcome):
            killed, cut_off = _kill(subject, this, people)
            _outage(subject, this, people, outcome, killed, cut_off)
    finally:
        people.stop()
    outcome.submits, outcome.refused = people.accepted, people.refused
    outcome.slowest_submit_s = people.slowest_s
    if not outcome.failures:
        with _noted(outcome):
            checks.wait_for_rest(subject, since=time.time(), timeout_s=REST_S)
            outcome.rest_s = time.monotonic() - killed
            _check(subject, outcome)
    outcome.versions = len(world.store.versions.recent(subject.key, limit=1000)) - before
    return outcome


def _kill(subject: Subject, this: Round, people: Annotators) -> tuple[float, Job | None]:
    """Wait for the moment and kill; returns when that was, and the job that was in it."""
    world = subject.world
    if this.when is When.SUBMIT:
        people.wait_for(this.submits)
        world.kill(this.victim)
        return time.monotonic(), None
    watch = Watch(world=world, project=subject.key, when=this.when, progress=this.progress,
                  leftovers=unfinished(world, subject.key))
    with at(watch, timeout_s=MOMENT_S):
        job = world.store.jobs.pending(subject.key, KIND[this.when])
        world.kill(this.victim)
        return time.monotonic(), job


def _outage(
    subject: Subject, this: Round, people: Annotators, outcome: Outcome, killed: float, cut_off: Job | None,
) -> None:
    """While it is away: who can work works, the status says what is wrong; then it is started again."""
    world, victim = subject.world, this.victim
    if victim is not Victim.LABEL_STUDIO:
        people.wait_for(WORK_ON)
    if victim not in (Victim.WEB, Victim.EVERYTHING):
        _answering(subject, outcome, killed, "while it was away")
    if victim in NAMES:
        _naming(subject, outcome, NAMES[victim])
    world.revive(victim)
    if victim not in NAMES and cut_off is not None:
        _naming(subject, outcome, f"{the(cut_off)} was interrupted")
    _answering(subject, outcome, killed, "afterwards")
    people.wait_for(WORK_ON)


def _naming(subject: Subject, outcome: Outcome, words: str) -> None:
    """The status must say what is away, or that this very job was interrupted."""
    def said() -> list[str]:
        return [each for each in checks.sentences(subject) if words in each]

    if not checks.until(said, timeout_s=NAMED_S):
        outcome.failures.append(f"the status does not say: {words}")
    outcome.said = next(iter(said()), "")


def _answering(subject: Subject, outcome: Outcome, killed: float, when: str) -> None:
    """/setup and /predict must answer under the published version; one may be published between the two calls."""
    task = {"id": 1, "data": {"text": load()[0].text}}
    found: list[str] = []
    for _ in range(3):
        found = checks.answers(subject, task)
        if not found:
            outcome.answered_s = outcome.answered_s or time.monotonic() - killed
            return
    outcome.failures += [f"{each} ({when})" for each in found]


def _check(subject: Subject, outcome: Outcome) -> None:
    tasks = checks.all_tasks(subject)
    outcome.failures += checks.votes_equal_annotations(subject, tasks)
    outcome.failures += checks.no_duplicates(subject, tasks)
    outcome.failures += checks.delivered_whole(subject, tasks)
    outcome.failures += checks.answers(subject, tasks[0])


@contextmanager
def _noted(outcome: Outcome) -> Iterator[None]:
    try:
        yield
    except (AssertionError, NotReached) as error:
        outcome.failures.append(str(error).splitlines()[0])


"""The state of everything, for people: what is connected, what runs, how good each version is, what needs attention.

Read from the database alone (no request to Label Studio, no checkpoint is loaded), as frozen records, so that the page,
the JSON of GET / and a command can show the same. Problems are sentences that say what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from backend.records import Delivery, Job, JobState, Project, SyncState, Verdict, Version, VoteCounts
from backend.settings import Settings

if TYPE_CHECKING:
    from backend.bootstrap import Services

OPEN_STATES = (JobState.QUEUED, JobState.RUNNING)
JOB_SHOULD_START_S = 60.0  # a due job that waits longer has nobody to run it
WAY_NAMES = {
    "served": "What is served",
    "prior": "Each annotator's habits alone",
    "pooled": "Content, with a bias for each annotator",
    "network": "Network that knows each annotator",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Held-out figures of one way to predict: a rung, or what is served."""

    name: str
    title: str
    votes: int  # held-out votes it was judged on
    accuracy: float | None
    log_loss: float | None
    weight: float | None  # of a rung in what is served


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFigures:
    """How well the published version predicts one control on held-out tasks."""

    control: str
    heldout_votes: int
    ways: Sequence[Way]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """One project, as it is shown."""

    project: Project
    link: str  # into Label Studio, "" where its address is unknown
    votes: VoteCounts
    tasks: int
    dirty: int
    sync: SyncState
    published: Version | None
    latest: Version | None  # the newest tried, published or not
    delivery: Delivery | None
    jobs: Sequence[Job]  # open ones, running first
    figures: Sequence[ControlFigures]
    min_votes: int
    problems: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything at one moment."""

    at: datetime
    label_studio_url: str
    connected: bool
    projects: Sequence[ProjectView]
    problems: Sequence[str]  # of the service; those of a project are with the project


def overview(services: Services) -> Overview:
    """Gather it: a handful of counting queries for each project."""
    now, settings = services.clock(), services.settings
    projects = [_project(services, each, now) for each in services.store.projects.all()]
    return Overview(
        at=now, label_studio_url=settings.label_studio_url,
        connected=bool(settings.label_studio_url and settings.label_studio_api_key),
        projects=projects, problems=service_problems(settings, projects, now),
    )


def _project(services: Services, project: Project, now: datetime) -> ProjectView:
    store, key = services.store, project.key
    recent = store.jobs.recent(key, limit=30)
    tried = store.versions.recent(key, limit=1)
    published, sync = store.versions.published(key), store.projects.sync_state(key)
    settings = services.triggers.settings_of(project)
    base = services.settings.label_studio_url
    return ProjectView(
        project=project, link=f"{base}/projects/{project.label_studio_id}/data" if base else "",
        votes=store.votes.counts(key), tasks=store.tasks.count(key), dirty=store.tasks.dirty_count(key), sync=sync,
        published=published, latest=tried[0] if tried else None, delivery=store.deliveries.latest(key),
        jobs=sorted((job for job in recent if job.state in OPEN_STATES), key=lambda job: job.state, reverse=True),
        figures=control_figures(published.figures) if published else (), min_votes=settings.min_votes,
        problems=[*sync_problems(sync), *job_problems(recent), *_registry_problem(services, key),
                  *store.projects.findings(key), *token_problems(services, project)],
    )


def service_problems(settings: Settings, projects: Sequence[ProjectView], now: datetime) -> list[str]:
    """What is wrong with the set-up as a whole."""
    found = []
    if not settings.label_studio_url:
        found.append("Polyvox does not know where Label Studio is: set LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY.")
    elif not settings.label_studio_api_key:
        found.append("Polyvox cannot read annotations: set LABEL_STUDIO_API_KEY to an access token.")
    jobs = [job for view in projects for job in view.jobs]
    waiting = [job for job in jobs if job.state is JobState.QUEUED]
    overdue = any((now - max(job.not_before, job.created_at)).total_seconds() > JOB_SHOULD_START_S for job in waiting)
    if overdue and len(waiting) == len(jobs):
        found.append("Jobs wait and nothing runs them: start a job process with `python -m backend worker`.")
    if settings.basic_auth_user and not settings.webhook_secret:
        found.append("Events of Label Studio are refused: webhooks carry no basic auth. Set POLYVOX_WEBHOOK_SECRET and "
                     "POLYVOX_URL beside BASIC_AUTH_USER, so that they carry the secret instead.")
    if settings.control_arm_percent == 0:
        found.append("The control arm is switched off, so that held-out figures are biased by shown predictions.")
    return found


def sync_problems(sync: SyncState) -> list[str]:
    if not sync.last_error:
        return []
    often = f"{sync.failures} times in a row" if sync.failures > 1 else "once"
    return [f"Reading Label Studio failed {often}, it is tried again: {sync.last_error}"]


def job_problems(recent: Sequence[Job]) -> list[str]:
    """The last failure of each kind of job that has not succeeded since; `recent` is newest first."""
    found, seen = [], set()
    for job in recent:
        if job.state in (JobState.DONE, JobState.FAILED) and job.kind not in seen:
            seen.add(job.kind)
            if job.state is JobState.FAILED:
                found.append(f"The last {job.kind} job failed: {job.error}")
    return found


def token_problems(services: Services, project: Project) -> list[str]:
    """Annotators' tokens that do not work any more, where they are used."""
    if services.triggers.settings_of(project).middleware:
        return []
    return [token.problem for token in services.store.tokens.of(project.key) if token.problem]


def _registry_problem(services: Services, key: str) -> list[str]:
    sentence = services.registry.problem(key)
    return [sentence] if sentence else []


def control_figures(figures: Mapping[str, Any]) -> list[ControlFigures]:
    """Figures as a training recorded them; whatever does not have the expected shape is left out, since old versions
    stay in the database when the shape changes."""
    controls = figures.get("controls")
    if not isinstance(controls, Mapping):
        return []
    shown = []
    for control, about in controls.items():
        ways = _ways(about) if isinstance(about, Mapping) else []
        if ways:
            shown.append(ControlFigures(control=str(control), heldout_votes=ways[0].votes, ways=ways))
    return shown


def _ways(about: Mapping[str, Any]) -> list[Way]:
    """What is served first, then the rungs by how much they count; [] where nothing was held out."""
    heldout, weights = about.get("heldout"), about.get("weights")
    if not isinstance(heldout, Mapping):
        return []
    weights = weights if isinstance(weights, Mapping) else {}
    judged = {name: each for name, each in heldout.items() if isinstance(each, Mapping) and each.get("votes")}
    ways = [_way(name, each, weights) for name, each in judged.items()]
    return sorted(ways, key=lambda way: (way.name != "served", -(way.weight or 0.0)))


def _way(name: str, about: Mapping[str, Any], weights: Mapping[str, Any]) -> Way:
    return Way(
        name=name, title=WAY_NAMES.get(name, name.replace("_", " ").capitalize()),
        votes=int(about["votes"]), accuracy=_number(about, "accuracy"),
        log_loss=_number(about, "log_loss"), weight=_number(weights, name),
    )


def _number(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value == value else None


def verdict_sentence(view: ProjectView) -> str:
    """What became of the newest version when it was not published, else ""."""
    latest = view.latest
    if latest is None or latest.verdict is Verdict.PUBLISHED:
        return ""
    kept = f"{view.published.name} stays" if view.published else "nothing is published yet"
    return f"{latest.name} was not published, {kept}: {latest.reason}"

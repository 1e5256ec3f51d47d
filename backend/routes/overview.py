"""The state of everything: what is connected, what runs, how good each version is, what needs attention.

Read from the database (no checkpoint is loaded; Label Studio and Redis are asked whether they are there), as frozen
records, so that the page, the JSON of GET / and a command can show the same.
`sentences` puts it into words, `problems` finds what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from backend.bootstrap import build_doorbell
from backend.masking import masked
from backend.queues.supervisor import jobs_are_run
from backend.records import Delivery, Job, JobKind, JobState, Project, SyncState, Version, VoteCounts
from backend.report.names import Names
from backend.report.sentences import way
from backend.routes import problems
from backend.routes.problems import Workers
from backend.services.clock_watch import told
from backend.services.identity import held
from backend.services.statistics.documents import ALONE
from backend.services.storage_watch import of_database
from backend.settings import Settings
from backend.store.patience import AWAY, why

if TYPE_CHECKING:
    from backend.bootstrap import Services

OPEN_STATES = (JobState.QUEUED, JobState.RUNNING)
JOBS_LOOKED_AT = 30
TELL_OF_INTERRUPTIONS = timedelta(minutes=10)  # after the job ended
VERSIONS_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TitledScore:
    """Held-out figures of one way to predict: a base model, or what is served."""

    name: str
    title: str
    votes: int  # held-out votes it was judged on
    accuracy: float | None
    log_loss: float | None
    weight: float | None  # of a base model in what is served


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlFigures:
    """How well the published version predicts one control on held-out tasks."""

    control: str
    heldout_votes: int
    ways: Sequence[TitledScore]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdFigures:
    """Consensus and agreement on one control: there from the first votes on, before any version."""

    control: str
    tasks: int  # with a consensus
    confidence: float | None  # mean, of the consensus
    alpha: float | None  # Krippendorff's
    method: str = ALONE  # the version that says the consensus


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorScore:
    """How an annotator's votes on one control compare with what the others say."""

    annotator: str  # as it is shown: an id, or a number where names are masked
    name: str
    control: str
    votes: int
    accuracy: float | None  # leave-one-out
    fault: str  # "" or constant, inverter, drifter, spammer
    learned: str = ""  # how far the model has learned them: a badge of `Learned`, "" before the first version


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
    answering: Version | None  # the published one, or an earlier one where its checkpoint is missing
    versions: Sequence[Version]  # the last ones tried, published or not, newest first
    delivery: Delivery | None
    jobs: Sequence[Job]  # open ones, running first
    figures: Sequence[ControlFigures]
    crowd: Sequence[CrowdFigures]  # () before the first statistics
    scores: Sequence[AnnotatorScore]
    settings: Settings  # those that hold for this project
    delivers: bool  # whether its predictions are written into Label Studio in bulk
    notes: Sequence[str]  # what is as it is, and worth knowing
    problems: Sequence[str]

    @property
    def min_votes(self) -> int:
        """Below it nothing is trained."""
        return self.settings.min_votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Everything at one moment."""

    at: datetime
    label_studio_url: str
    connected: bool  # an address and a token are set
    away: str  # why Label Studio does not answer, as `Alive.problem` says it; "" when it did, seconds ago
    projects: Sequence[ProjectView]  # () where the database cannot be read
    problems: Sequence[str]  # of the service; those of a project are with the project
    readable: bool = True  # the database was read

    @property
    def works(self) -> bool:
        """Label Studio answers, and what was last read of it came."""
        return self.connected and not self.away and not (
            self.projects and all(view.sync.last_error for view in self.projects))


def overview(services: Services) -> Overview:
    """Gather it: a handful of counting queries for each project. A database that cannot be read is a sentence."""
    settings, storage = services.settings, services.storage.problems()
    frame = Overview(
        at=services.clock(), label_studio_url=masked(settings.label_studio_url), connected=services.triggers.connected,
        away=services.alive.problem(), projects=(), problems=storage, readable=False)
    try:
        return replace(frame, **_read(services, frame, storage), readable=True)
    except AWAY as error:
        return replace(frame, problems=storage or [of_database(why(error))])


def _read(services: Services, frame: Overview, storage: Sequence[str]) -> dict[str, Any]:
    """What the database says. Raises one of `AWAY`."""
    now, settings = frame.at, services.settings
    workers = Workers(stuck=bool(services.storage.refuses()), embedded=jobs_are_run(settings.data_dir))
    projects = [_project(services, each, now, workers) for each in services.store.projects.all()]
    jobs, copied = [job for view in projects for job in view.jobs], held(services.store.instance)
    return {"projects": projects, "problems": [
        *storage, *([copied] if copied else []), *problems.of_service(settings, jobs, now, workers),
        *told(services.store.stamps.notices(), now), *services.late.problems(disk_told=bool(services.storage.disks())),
        *problems.of_redis(settings, redis_answers(settings)),
    ]}


def _project(services: Services, project: Project, now: datetime, workers: Workers) -> ProjectView:
    store, key = services.store, project.key
    recent = store.jobs.recent(key, limit=JOBS_LOOKED_AT)
    cut_off = store.jobs.interrupted(key, since=now - TELL_OF_INTERRUPTIONS)
    jobs, last = _open_jobs(services, key, [*recent, *cut_off]), _last(services, project)
    published, sync, votes = store.versions.published(key), store.projects.sync_state(key), store.votes.counts(key)
    settings = services.triggers.settings_of(project)
    base = services.settings.label_studio_url
    of_config, notes = problems.of_config(project.label_config)
    found = [
        *problems.of_reading(sync, jobs, settings, now, workers, connected=services.triggers.connected),
        *problems.of_jobs(last, said=sync.last_error), *of_config,
        *_lost(services, published, votes, jobs, settings), *store.projects.findings(key),
        *_token_problems(services, project, settings),
    ]
    return ProjectView(
        project=project, link=f"{base}/projects/{project.label_studio_id}/data" if base else "",
        votes=votes, tasks=store.tasks.count(key), dirty=store.tasks.dirty_count(key), sync=sync,
        published=published, answering=services.registry.current(key),
        versions=store.versions.recent(key, limit=VERSIONS_SHOWN),
        delivery=store.deliveries.latest(key), jobs=jobs, settings=settings,
        delivers=services.triggers.delivers(project),
        figures=control_figures(published.figures) if published else (), problems=found,
        crowd=_crowd(services, key), scores=_scores(services, key, settings),
        notes=[*notes, *problems.interruptions(cut_off, last)],
    )


def _crowd(services: Services, key: str) -> list[CrowdFigures]:
    document = services.statistics.overview(key)
    return [
        CrowdFigures(
            control=each.name, tasks=each.consensus.tasks, confidence=each.consensus.mean_confidence,
            alpha=each.agreement.alpha.value, method=each.consensus.method,
        )
        for each in (document.controls if document is not None else ())
    ]


def _scores(services: Services, key: str, settings: Settings) -> list[AnnotatorScore]:
    document = services.statistics.annotators(key)
    if document is None:
        return []
    names = Names({row.annotator: row.name for row in document.rows}, mask=settings.mask_names)
    return [
        AnnotatorScore(
            annotator=names.slug(row.annotator), name=names.name(row.annotator), control=control,
            votes=figures.votes, accuracy=figures.accuracy.value, fault=figures.fault,
            learned="" if figures.foreseen is None else figures.foreseen.badge.value,
        )
        for row in document.rows for control, figures in row.controls.items()
    ]


def redis_answers(settings: Settings) -> bool:
    """Whether the doorbell can be rung; True where there is none. Waits two seconds for an address that is silent."""
    return not settings.redis_url or build_doorbell(settings, limits_s={}).answers()


def _last(services: Services, project: Project) -> list[Job]:
    """Of each kind the newest job that has ended; without deliveries where there will be none that could do better."""
    found = services.store.jobs.last_ended(project.key)
    return found if services.triggers.delivers(project) else [job for job in found if job.kind is not JobKind.DELIVER]


def _open_jobs(services: Services, key: str, known: Sequence[Job]) -> list[Job]:
    """Running ones first. A long training may have begun before all that are `known`, so each kind is asked for."""
    pending = [services.store.jobs.pending(key, kind) for kind in JobKind]
    found = {job.id: job for job in [*known, *(job for job in pending if job)] if job.state in OPEN_STATES}
    return sorted(found.values(), key=lambda job: (job.state is not JobState.RUNNING, job.not_before))


def _token_problems(services: Services, project: Project, settings: Settings) -> list[str]:
    """Annotators' tokens that do not work any more, where they are used."""
    if settings.middleware:
        return []
    return [token.problem for token in services.store.tokens.of(project.key) if token.problem]


def _lost(
    services: Services, published: Version | None, votes: VoteCounts, jobs: Sequence[Job], settings: Settings,
) -> list[str]:
    usable = published is None or services.registry.usable(published)
    return [] if published is None or usable else problems.of_checkpoint(published, votes, jobs, settings)


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


def _ways(about: Mapping[str, Any]) -> list[TitledScore]:
    """What is served first, then the base models by how much they count; [] where nothing was held out."""
    heldout, weights = about.get("heldout"), about.get("weights")
    if not isinstance(heldout, Mapping):
        return []
    weights = weights if isinstance(weights, Mapping) else {}
    judged = {name: each for name, each in heldout.items() if isinstance(each, Mapping) and each.get("votes")}
    ways = [_way(name, each, weights) for name, each in judged.items()]
    return sorted(ways, key=lambda each: (each.name != "served", -(each.weight or 0.0)))


def _way(name: str, about: Mapping[str, Any], weights: Mapping[str, Any]) -> TitledScore:
    return TitledScore(
        name=name, title=way(name),
        votes=int(about["votes"]), accuracy=_number(about, "accuracy"),
        log_loss=_number(about, "log_loss"), weight=_number(weights, name),
    )


def _number(about: Mapping[str, Any], name: str) -> float | None:
    value = about.get(name)
    return float(value) if isinstance(value, int | float) and value == value else None

"""What the pages and the API share: which project is meant, its documents, its names, and jobs that are open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from flask import request

from backend.errors import NotFound
from backend.ports import Store
from backend.records import Job, JobKind, JobState, Project
from backend.report.links import Links
from backend.report.names import Names
from backend.report.pages import Look
from backend.report.texts import texts_of
from backend.routes.context import context
from backend.routes.status import JOB_NAMES
from backend.services.gaps.documents import KIND as GAPS
from backend.services.overrides import settings_of
from backend.services.statistics import DocumentKind
from backend.services.statistics.reading import Reader

D = TypeVar("D")
NOTHING_YET = "There are no figures of this project yet."
ADVICE = (
    "A job process computes them once votes were read from Label Studio; one runs beside `python -m backend serve`, "
    "or is started with `python -m backend worker`."
)
JOBS_LOOKED_AT = 30
OPEN = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One project, as a request looks at it."""

    project: Project
    reader: Reader
    store: Store
    mask: bool
    label_studio: str

    @property
    def key(self) -> str:
        return self.project.key

    def names(self) -> Names:
        """What its annotators are called. Reads the documents of annotators and of regions."""
        found, drawn = self.reader.annotators(self.key), self.reader.regions(self.key)
        return Names({row.annotator: row.name for row in found.rows} if found else {}, mask=self.mask,
                     later=drawn.annotators if drawn is not None else {})

    def look(self) -> Look:
        """What a page of this request is made with."""
        links = Links.of_path(request.path, project=self.project.label_studio_id, label_studio=self.label_studio)
        return Look(project=self.project, names=self.names(), links=links, texts=texts_of(self.store, self.project))

    def version(self) -> str | None:
        """What changes whenever a document of the statistics does."""
        return self.reader.version(self.key, DocumentKind.OVERVIEW)

    def gaps_version(self) -> str | None:
        """What changes with every document on gaps, also with one of the same votes: more may be encoded by then."""
        return self.store.statistics.version(self.key, GAPS)

    def jobs(self) -> list[Job]:
        """Open ones, running first; a long training may be older than all recent ones."""
        recent = self.store.jobs.recent(self.key, limit=JOBS_LOOKED_AT)
        training = self.store.jobs.pending(self.key, JobKind.TRAIN)
        found = {job.id: job for job in [*recent, *([training] if training else [])] if job.state in OPEN}
        return sorted(found.values(), key=lambda job: (job.state is not JobState.RUNNING, job.not_before))


def desk(name: str) -> Desk:
    """The project of a number or key in an address. Raises NotFound."""
    services = context().services
    is_number = name.isascii() and name.isdigit() and len(name) < 19
    projects = services.store.projects
    project = projects.by_label_studio_id(int(name)) if is_number else projects.get(name)
    if project is None:
        raise NotFound("There is no such project here; Polyvox learns of one when Label Studio first calls it.")
    return Desk(
        project=project, reader=services.statistics, store=services.store,
        mask=settings_of(services.settings, project).mask_names, label_studio=services.settings.label_studio_url,
    )


def there(document: D | None) -> D:
    """A document that exists. Raises NotFound with what to do."""
    if document is None:
        raise NotFound(f"{NOTHING_YET} {ADVICE}")
    return document


def job_words(job: Job) -> str:
    """"Training", "Next: training"."""
    words = JOB_NAMES.get(job.kind, job.kind.value.capitalize())
    return words if job.state is JobState.RUNNING else f"Next: {words[:1].lower()}{words[1:]}"


def shown_jobs(jobs: list[Job]) -> list[Mapping[str, Any]]:
    """Jobs for pages and programs."""
    return [{
        "kind": job.kind.value, "state": job.state.value, "running": job.state is JobState.RUNNING,
        "words": job_words(job), "progress": round(job.progress, 3), "note": job.note,
    } for job in jobs]

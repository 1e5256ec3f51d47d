"""All documents of a project from its material, in one pass over its controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backend.ports import Progress
from backend.records import DrawnAnnotation
from backend.services.statistics.alike import alike, places
from backend.services.statistics.documents import Document, DocumentKind, Header
from backend.services.statistics.flags import flags
from backend.services.statistics.material import Material
from backend.services.statistics.overview import overview
from backend.services.statistics.people import annotators
from backend.services.statistics.regions import regions
from backend.services.statistics.shown import Consensuses
from backend.services.statistics.subject import Judge
from backend.services.statistics.tasks import consensus, tasks

Documents = Mapping[tuple[DocumentKind, str], Document]


def compute(
    material: Material, judge: Judge, *, tasks_present: int, progress: Progress, consensuses: Consensuses,
    annotations: Iterable[DrawnAnnotation] = (),
) -> Documents:
    """(kind, part) -> document. `tasks_present` counts the tasks in Label Studio; `consensuses` are those that are
    shown everywhere; `annotations` are read where they have regions to compare; `progress` may raise to stop."""
    progress(0.1, "judging votes")
    subjects = [consensuses.on(subject) for subject in judge.subjects(material)]
    published = material.published
    header = Header(
        project=material.project.key, version=material.stamp.fingerprint, computed_at=material.at,
        changes=material.stamp.changes, votes=len(material.given),
        model_version=published.name if published is not None and material.evidence is not None else None,
    )
    progress(0.5, "describing annotators")
    table, profiles = annotators(material, subjects, header, places(material, subjects))
    progress(0.7, "looking for slips")
    flagged = flags(material, subjects, header)
    progress(0.9, "comparing regions")
    drawn = regions(material, annotations, header)
    return {
        **({} if drawn is None else {(DocumentKind.REGIONS, ""): drawn}),
        (DocumentKind.OVERVIEW, ""): overview(material, subjects, header, tasks_present),
        (DocumentKind.ANNOTATORS, ""): table,
        **{(DocumentKind.PROFILE, profile.row.annotator): profile for profile in profiles},
        (DocumentKind.ALIKE, ""): alike(subjects, header),
        (DocumentKind.TASKS, ""): tasks(material, subjects, header),
        (DocumentKind.FLAGS, ""): flagged,
        (DocumentKind.CONSENSUS, ""): consensus(material, subjects, header),
    }

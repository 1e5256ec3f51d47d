"""The statistics service: computing and reading documents, and keeping what people said of flagged votes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backend.errors import ClientError, JobFailed
from backend.ports import Clock, Progress, Store
from backend.records import Check, JobKind
from backend.registry import Registry
from backend.services.statistics.codec import encode
from backend.services.statistics.compute import compute
from backend.services.statistics.documents import ALONE, Checked, DocumentKind
from backend.services.statistics.material import Material, read_material, stamp_of
from backend.services.statistics.reading import Reader
from backend.services.statistics.shown import Consensuses, Memory
from backend.services.statistics.subject import Judge
from backend.settings import Settings
from model.errors import ModelError

if TYPE_CHECKING:
    from backend.services.features import Features


class Statistics(Reader):
    """Statistics of all projects. Safe for threads."""

    def __init__(
        self, *, store: Store, registry: Registry, settings: Settings, clock: Clock, features: Features,
    ) -> None:
        super().__init__(store)
        self._features = features
        self._said = Memory()
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._judge = Judge()

    def run(self, project: str, progress: Progress) -> dict[str, Any]:
        """Compute the documents anew where anything that they depend on has changed. Raises JobFailed.

        Figures: `computed` (whether anything was), `votes`, `documents`.
        """
        record = self._store.projects.get(project)
        if record is None:
            raise JobFailed("The project is unknown.")
        progress(0.0, "reading votes")
        stamp = stamp_of(self._store, record, self._settings)
        if self.version(project, DocumentKind.OVERVIEW) == stamp.fingerprint:
            return {"computed": False, "votes": 0, "documents": 0}
        material = read_material(self._store, self._registry, self._settings, record, stamp, self._clock())
        found = self._consensuses(material, progress)
        documents = compute(material, self._judge, tasks_present=stamp.tasks, progress=progress, consensuses=found,
                            annotations=self._store.statistics.drawn(project))
        progress(0.95, "writing")
        bodies = {(kind.value, part): encode(document) for (kind, part), document in documents.items()}
        mine = [each.value for each in DocumentKind]  # other jobs keep documents beside them
        self._store.statistics.replace(project, stamp.fingerprint, bodies, kinds=mine)
        return {"computed": True, "votes": len(material.given), "documents": len(documents)}

    def _consensuses(self, material: Material, progress: Progress) -> Consensuses:
        """What is shown everywhere. Raises JobFailed where the version cannot read its features."""
        if material.config is None:
            return Consensuses(answers={}, said_by=ALONE, checks={})
        from backend.services.gaps.answers import board_of  # these load the learners
        from backend.services.statistics.agreed import agreed

        weight, record = self._settings.echo_weight, material.project
        board = board_of(self._store, self._features, record, material.config, self._registry.published(record.key),
                         echo_weight=weight)
        try:
            return agreed(board, self._said, echo_weight=weight, progress=progress,
                          heldout_percent=self._settings.heldout_percent)
        except ModelError as error:
            raise JobFailed(f"The consensus cannot be computed: {error}.") from error

    def check(self, project: str, *, unit: str, annotator: str, control: str, value: str, verdict: str) -> None:
        """Keep what a person said of a flagged vote; "" takes it back. `unit`, `annotator`, `control` and `value` are
        those of the `Flag`.

        Raises ClientError for a verdict that does not exist and for a vote that is not there (any more), NotFound for
        an unknown project.
        """
        if verdict not in ("", *(each.value for each in Checked)):
            raise ClientError(f"A flag is checked as {' or '.join(each.value for each in Checked)}.")
        if not verdict:
            self._store.statistics.uncheck(project, unit, annotator, control)
            self._store.jobs.enqueue(JobKind.STATISTICS, project)
            return
        task = unit.partition("/")[0]
        votes = self._store.votes.of_tasks(project, [int(task)]) if task.isascii() and task.isdigit() else []
        mine = [vote for vote in votes if (vote.unit, vote.annotator, vote.control) == (unit, annotator, control)]
        if not any(vote.value.to_json() == value for vote in mine):
            raise ClientError("This vote is not there any more; it was changed or deleted since it was flagged.")
        self._store.statistics.check(project, Check(
            unit=unit, annotator=annotator, control=control, value=value, verdict=verdict, checked_at=self._clock(),
        ))
        self._store.jobs.enqueue(JobKind.STATISTICS, project)

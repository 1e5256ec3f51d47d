"""The statistics service: reading documents, and keeping what people said of flagged votes."""

from __future__ import annotations

from backend.errors import ClientError
from backend.ports import Clock, Store
from backend.records import Check
from backend.services.statistics.documents import Checked
from backend.services.statistics.reading import Reader
from backend.settings import Settings


class Statistics(Reader):
    """Statistics of all projects. Safe for threads."""

    def __init__(self, *, store: Store, settings: Settings, clock: Clock) -> None:
        super().__init__(store)
        self._settings = settings
        self._clock = clock

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
            return
        task = unit.partition("/")[0]
        votes = self._store.votes.of_tasks(project, [int(task)]) if task.isascii() and task.isdigit() else []
        mine = [vote for vote in votes if (vote.unit, vote.annotator, vote.control) == (unit, annotator, control)]
        if not any(vote.value.to_json() == value for vote in mine):
            raise ClientError("This vote is not there any more; it was changed or deleted since it was flagged.")
        self._store.statistics.check(project, Check(
            unit=unit, annotator=annotator, control=control, value=value, verdict=verdict, checked_at=self._clock(),
        ))

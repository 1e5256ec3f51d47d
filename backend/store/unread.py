"""Projects that a request named and of which nothing was read yet: anybody may name some, so few are kept.

A project counts as unread while it has neither title nor configuration, which come from Label Studio alone, and no task
was read. All else that can belong to such a row is marks, sentences and jobs, which go with it.
"""

from __future__ import annotations

from sqlalchemy import Connection, and_, delete, exists, func, select

from backend.errors import TooMany
from backend.records import JobState
from backend.store.schema import dirty, findings, jobs, projects

UNREAD = and_(
    projects.c.title == "", projects.c.label_config == "", projects.c.cursor_time.is_(None),
    projects.c.version.is_(None),
)


def make_room(connection: Connection, most: int) -> None:
    """Have fewer than `most` unread projects: the oldest that could not be read goes. Raises TooMany."""
    number = connection.execute(select(func.count()).select_from(projects).where(UNREAD)).scalar_one()
    if number < most:
        return
    runs = exists().where(jobs.c.project == projects.c.key, jobs.c.state == JobState.RUNNING.value)
    statement = select(projects.c.id, projects.c.key).where(UNREAD, projects.c.failures > 0, ~runs)
    row = connection.execute(statement.order_by(projects.c.id).limit(1)).first()
    if row is None:
        raise TooMany(
            f"{number} projects were named to Polyvox that it has not read from Label Studio yet; check that it can "
            "(LABEL_STUDIO_URL and LABEL_STUDIO_API_KEY), and try again in a minute.")
    for table in (dirty, findings):
        connection.execute(delete(table).where(table.c.project_id == row.id))
    connection.execute(delete(jobs).where(jobs.c.project == row.key))
    connection.execute(delete(projects).where(projects.c.id == row.id))

"""What the two kinds of transactions promise."""

from sqlalchemy import select, update

from backend.store import SqlStore
from backend.store.schema import projects
from tests.backend.store.samples import KEY


def test_a_read_sees_one_state_whatever_is_committed_meanwhile(store: SqlStore) -> None:
    title = select(projects.c.title).where(projects.c.key == KEY)
    with store.database.read() as connection:
        before = connection.execute(title).scalar_one()
        with store.database.write() as other:
            other.execute(update(projects).values(title="renamed meanwhile"))
        assert connection.execute(title).scalar_one() == before
    with store.database.read() as connection:
        assert connection.execute(title).scalar_one() == "renamed meanwhile"


def test_a_write_after_a_read_on_the_same_connection_is_not_bound_by_its_isolation(store: SqlStore) -> None:
    """Connections are pooled; a write must see what others committed between its statements, or it would fail."""
    level = {"sqlite": "SERIALIZABLE", "postgresql": "READ COMMITTED"}[store.database.engine.dialect.name]
    with store.database.read() as connection:
        connection.execute(select(projects.c.id))
    with store.database.write() as connection:
        assert connection.get_isolation_level() == level

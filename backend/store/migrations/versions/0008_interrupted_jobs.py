"""When a job was cut off last, which the status tells of; and an index for the few that were."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("interrupted_at", sa.BigInteger()))
    cut_off = sa.text("interrupted_at IS NOT NULL")
    op.create_index("ix_jobs_interrupted", "jobs", ["project", "interrupted_at"], sqlite_where=cut_off,
                    postgresql_where=cut_off)


def downgrade() -> None:
    op.drop_index("ix_jobs_interrupted", table_name="jobs")
    op.drop_column("jobs", "interrupted_at")

"""An index for the few jobs that were begun more than once, which the status names."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    again = sa.text("attempts > 1")
    op.create_index("ix_jobs_again", "jobs", ["project", "created_at"], sqlite_where=again, postgresql_where=again)


def downgrade() -> None:
    op.drop_index("ix_jobs_again", table_name="jobs")

"""An index for the newest jobs of one kind of a project, which the triggers read at each tick."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_jobs_kind", "jobs", ["project", "kind", "created_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_kind", table_name="jobs")

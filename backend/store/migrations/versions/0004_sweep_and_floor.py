"""When a comparison of all task ids was last asked for, and the number above which a project's versions begin."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("sweep_wanted", sa.BigInteger()))
    op.add_column("projects", sa.Column("version_floor", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("projects", "version_floor")
    op.drop_column("projects", "sweep_wanted")

"""How far a reading of every task came. All are read again: until now a walk that went on half-way counted as one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("reread_begun", sa.BigInteger()))
    op.add_column("projects", sa.Column("reread_after", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute("UPDATE projects SET last_reread = NULL")


def downgrade() -> None:
    op.drop_column("projects", "reread_after")
    op.drop_column("projects", "reread_begun")

"""When every task of a project was last read again, and when that was last asked for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("last_reread", sa.BigInteger()))
    op.add_column("projects", sa.Column("reread_wanted", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("projects", "reread_wanted")
    op.drop_column("projects", "last_reread")

"""What is to be said of the service as a whole, whichever process noticed it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "notices",
        sa.Column("name", sa.String(32), primary_key=True),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.Column("noticed_at", sa.BigInteger(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("notices")

"""Which instance this database is, and where it lay when it became that; marks on webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "instance",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("contested", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("one", name="pk_instance"),
    )
    op.create_table(
        "webhook_marks",
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False,
                  nullable=False),
        sa.Column("mark", sa.String(32), nullable=False),
        sa.Column("offered", sa.String(32), nullable=False),
        sa.Column("written_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_webhook_marks_project_id"),
        sa.PrimaryKeyConstraint("project_id", name="pk_webhook_marks"),
    )


def downgrade() -> None:
    op.drop_table("webhook_marks")
    op.drop_table("instance")

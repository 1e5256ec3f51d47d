"""Statistics of projects as documents, and what people said of flagged votes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "statistics",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("part", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_statistics_project_id")),
        sa.PrimaryKeyConstraint("project_id", "kind", "part", name=op.f("pk_statistics")),
    )
    op.create_table(
        "checks",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("control", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("checked_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_checks_project_id")),
        sa.PrimaryKeyConstraint("project_id", "unit", "annotator", "control", name=op.f("pk_checks")),
    )


def downgrade() -> None:
    for table in ("checks", "statistics"):
        op.drop_table(table)

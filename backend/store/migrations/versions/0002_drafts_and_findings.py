"""Annotators' tokens, the drafts made with them, and what checks of a project found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "findings",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("check_name", sa.String(length=32), nullable=False),
        sa.Column("sentences", sa.Text(), nullable=False),
        sa.Column("found_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_findings_project_id")),
        sa.PrimaryKeyConstraint("project_id", "check_name", name=op.f("pk_findings")),
    )
    op.create_table(
        "annotator_tokens",
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "annotator", name=op.f("pk_annotator_tokens")),
    )
    op.create_table(
        "drafts",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("draft_id", sa.BigInteger()),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=128), nullable=False),
        sa.Column("written", sa.String(length=128), nullable=False),
        sa.Column("pending", sa.String(length=128), nullable=False),
        sa.Column("updated_at", sa.String(length=64), nullable=False),
        sa.Column("theirs", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_drafts_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", "annotator", name=op.f("pk_drafts")),
    )


def downgrade() -> None:
    for table in ("drafts", "annotator_tokens", "findings"):
        op.drop_table(table)

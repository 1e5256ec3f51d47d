"""First schema: projects, tasks, annotations, revisions of votes, jobs, versions, deliveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("project", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("slot", sa.String(length=128)),
        sa.Column("progress", sa.Float(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger()),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("lease_until", sa.BigInteger()),
        sa.Column("lease_owner", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("slot", name=op.f("uq_jobs_slot")),
    )
    op.create_index("ix_jobs_due", "jobs", ["state", "not_before"], unique=False)
    op.create_index("ix_jobs_project", "jobs", ["project", "created_at"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", BIG_KEY, autoincrement=True, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("label_studio_id", sa.BigInteger(), nullable=False),
        sa.Column("created_epoch", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("label_config", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=64)),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("last_change", sa.BigInteger()),
        sa.Column("cursor_time", sa.BigInteger()),
        sa.Column("cursor_id", sa.BigInteger(), nullable=False),
        sa.Column("last_sweep", sa.BigInteger()),
        sa.Column("last_success", sa.BigInteger()),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("key", name=op.f("uq_projects_key")),
    )
    op.create_index(op.f("ix_projects_label_studio_id"), "projects", ["label_studio_id"], unique=False)
    op.create_table(
        "annotations",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("annotation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("was_cancelled", sa.Boolean(), nullable=False),
        sa.Column("ground_truth", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("lead_time_s", sa.Float()),
        sa.Column("imported", sa.Boolean(), nullable=False),
        sa.Column("parent_prediction", sa.BigInteger()),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_annotations_project_id")),
        sa.PrimaryKeyConstraint("project_id", "annotation_id", name=op.f("pk_annotations")),
    )
    op.create_index("ix_annotations_task", "annotations", ["project_id", "task_id"], unique=False)
    op.create_table(
        "annotators",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_annotators_project_id")),
        sa.PrimaryKeyConstraint("project_id", "annotator", name=op.f("pk_annotators")),
    )
    op.create_table(
        "arm_log",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=128), nullable=False),
        sa.Column("logged_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_arm_log_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", "annotator", name=op.f("pk_arm_log")),
    )
    op.create_table(
        "deliveries",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.String(length=128), nullable=False),
        sa.Column("step", sa.String(length=16), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
        sa.Column("imported_through", sa.BigInteger(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_deliveries_project_id")),
        sa.PrimaryKeyConstraint("project_id", "started_at", name=op.f("pk_deliveries")),
    )
    op.create_table(
        "dirty",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_dirty_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", name=op.f("pk_dirty")),
    )
    op.create_index("ix_dirty_sequence", "dirty", ["project_id", "sequence"], unique=False)
    op.create_table(
        "own_predictions",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("version", sa.String(length=128), nullable=False),
        sa.Column("digest", sa.String(length=128), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_own_predictions_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", "annotator", name=op.f("pk_own_predictions")),
    )
    op.create_table(
        "shown",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("shown_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_shown_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", name=op.f("pk_shown")),
    )
    op.create_table(
        "tasks",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("deleted_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id")),
        sa.PrimaryKeyConstraint("project_id", "task_id", name=op.f("pk_tasks")),
    )
    op.create_table(
        "versions",
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_versions_project_id")),
        sa.PrimaryKeyConstraint("project_id", "number", name=op.f("pk_versions")),
    )
    op.create_table(
        "votes",
        sa.Column("id", BIG_KEY, autoincrement=True, nullable=False),
        sa.Column("project_id", BIG_KEY, autoincrement=False, nullable=False),
        sa.Column("task_id", sa.BigInteger(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("annotation_id", sa.BigInteger(), nullable=False),
        sa.Column("annotator", sa.Text(), nullable=False),
        sa.Column("control", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("lead_time_s", sa.Float()),
        sa.Column("provenance", sa.SmallInteger(), nullable=False),
        sa.Column("shown", sa.Boolean(), nullable=False),
        sa.Column("control_arm", sa.Boolean(), nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("stored_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_votes_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_votes")),
    )
    op.create_index(
        "ix_votes_live", "votes", ["project_id", "task_id"], unique=False,
        sqlite_where=sa.text("ended_at IS NULL"), postgresql_where=sa.text("ended_at IS NULL"),
    )


def downgrade() -> None:
    for table in ("votes", "versions", "tasks", "shown", "own_predictions", "dirty",
                  "deliveries", "arm_log", "annotators", "annotations", "projects", "jobs"):
        op.drop_table(table)

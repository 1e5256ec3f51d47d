"""An index of the live votes of an annotator: what newcomers have said is read with every request for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    live = sa.text("ended_at IS NULL")
    op.create_index("ix_votes_annotator", "votes", ["project_id", "annotator"], sqlite_where=live,
                    postgresql_where=live)


def downgrade() -> None:
    op.drop_index("ix_votes_annotator", table_name="votes")

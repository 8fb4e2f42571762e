"""History of work. New tables alone: whatever a release before it does goes on beside them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import KEY, NAME, TEXT

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _work_item_history()
    _work_retention()


def _work_item_history() -> None:
    op.create_table(
        "work_item_history",
        sa.Column("id", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("subject_kind", NAME, nullable=False),
        sa.Column("subject_id", NAME, nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("capability_version", sa.BigInteger(), nullable=False),
        sa.Column("source_lane", KEY, nullable=True),
        sa.Column("source_position", sa.BigInteger(), nullable=True),
        sa.Column("target_lane", KEY, nullable=True),
        sa.Column("target_position", sa.BigInteger(), nullable=True),
        sa.Column("state", NAME, nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("deferrals", sa.BigInteger(), nullable=False),
        sa.Column("expiries", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", NAME, nullable=True),
        sa.Column("ownership_epoch", sa.BigInteger(), nullable=False),
        sa.Column("failure_class", NAME, nullable=True),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("replay_of", NAME, nullable=True),
        sa.Column("predecessor", NAME, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("work_item_history_pk")),
    )
    op.create_index("work_item_history_subject_id", "work_item_history", ["subject_id"], unique=False)
    op.create_index(
        "work_item_history_predecessor",
        "work_item_history",
        ["predecessor"],
        unique=True,
        postgresql_where=sa.text("predecessor IS NOT NULL"),
        sqlite_where=sa.text("predecessor IS NOT NULL"),
    )


def _work_retention() -> None:
    op.create_table(
        "work_retention",
        sa.Column("name", NAME, nullable=False),
        sa.Column("passed", NAME, nullable=False),
        sa.Column("moved", sa.BigInteger(), nullable=False),
        sa.Column("seen_since", sa.BigInteger(), nullable=True),
        sa.Column("overdue_since", sa.BigInteger(), nullable=True),
        sa.Column("walked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("work_retention_pk")),
        postgresql_with={"fillfactor": "45"},
    )

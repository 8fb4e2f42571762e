"""What the older release, N, brought: a table that its workers and producers are busy with."""

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import NAME

revision = "9001"
down_revision = "HEAD"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("id", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("job_pk")),
    )
    op.create_index("job_state", "job", ["state"], unique=False)

"""The half before of N+1: adds what it needs, and has `kind` filled by the server, since N+1 does not."""

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import NAME

revision = "9002"
down_revision = "9001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job_tag",
        sa.Column("job_id", NAME, nullable=False),
        sa.PrimaryKeyConstraint("job_id", name=op.f("job_tag_pk")),
    )
    with op.batch_alter_table("job") as job:
        job.add_column(sa.Column("priority", sa.BigInteger(), nullable=True))
        job.add_column(sa.Column("claims", sa.BigInteger(), nullable=False, server_default="0"))
        job.alter_column("kind", existing_type=NAME, existing_nullable=False, server_default="plain")
    op.create_index("job_next", "job", ["state", "id"], unique=False)
    op.create_index("job_priority", "job", ["priority", "id"], unique=True)

"""The half after of N+1: what only N needed goes, and what N left empty has to be filled."""

import sqlalchemy as sa
from alembic import op

revision = "9003"
down_revision = "9002"
branch_labels = None
depends_on = None

UNTIL = ("column job.kind", "column job.priority", "index job_state on job")


def upgrade() -> None:
    op.execute("UPDATE job SET priority = 0 WHERE priority IS NULL")
    op.drop_index("job_state", table_name="job")
    with op.batch_alter_table("job") as job:
        job.alter_column("priority", existing_type=sa.BigInteger(), nullable=False)
        job.drop_column("kind")

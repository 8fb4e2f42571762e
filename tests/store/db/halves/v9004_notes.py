"""The half before of N+2."""

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import TEXT

revision = "9004"
down_revision = "9003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("job", sa.Column("note", TEXT, nullable=True))

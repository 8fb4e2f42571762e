"""The ownership table."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS, metadata

work_ownership = sa.Table(
    "work_ownership",
    metadata,
    sa.Column("family", IDENTITY, primary_key=True),
    sa.Column("deployment", IDENTITY, nullable=False),
    sa.Column("release_digest", IDENTITY, nullable=False),
    sa.Column("epoch", COUNT, nullable=False),
    sa.Column("operation_id", IDENTITY, nullable=False),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("changed_at", MICROSECONDS, nullable=False),
)

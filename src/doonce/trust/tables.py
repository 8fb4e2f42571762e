"""The table of bearer credentials: of each only a digest, its scope and its state."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import IDENTITY, MICROSECONDS, TEXT, metadata

credential = sa.Table(
    "credential",
    metadata,
    sa.Column("hash", IDENTITY, primary_key=True),
    sa.Column("id", IDENTITY, nullable=False, unique=True),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("capabilities", TEXT, nullable=False),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("note", TEXT, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("revoked_at", MICROSECONDS),
)

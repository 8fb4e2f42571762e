"""Tables of principals. The secret of a token version is only here, sealed, and only while it is the newest."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import BODY, COUNT, IDENTITY, KEY, MICROSECONDS, TEXT, metadata

principal = sa.Table(
    "principal",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("pack", IDENTITY, nullable=False),
    sa.Column("name", IDENTITY, nullable=False),
    sa.Column("current_generation", COUNT, nullable=False),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("updated_at", MICROSECONDS, nullable=False),
    sa.UniqueConstraint("org", "installation", "name", name="principal_name_key"),
)

binding_generation = sa.Table(
    "binding_generation",
    metadata,
    sa.Column("principal_id", IDENTITY, primary_key=True),
    sa.Column("generation", COUNT, primary_key=True, autoincrement=False),
    sa.Column("id", IDENTITY, nullable=False, unique=True),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("remote_subject", KEY, nullable=False),
    sa.Column("remote_tenant", KEY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("ended_at", MICROSECONDS),
    sa.Column("reason", TEXT),
)

token_version = sa.Table(
    "token_version",
    metadata,
    sa.Column("principal_id", IDENTITY, primary_key=True),
    sa.Column("generation", COUNT, primary_key=True, autoincrement=False),
    sa.Column("version", COUNT, primary_key=True, autoincrement=False),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
)
"""`sealed` is erased when a version is superseded or its generation ends; the row stays as history."""

"""The table of remote links."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, KEY, MICROSECONDS, metadata

remote_link = sa.Table(
    "remote_link",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("principal_id", IDENTITY, nullable=False),
    sa.Column("generation", COUNT, nullable=False),
    sa.Column("kind", IDENTITY, nullable=False),
    sa.Column("local_ref", IDENTITY, nullable=False),
    sa.Column("remote_id", KEY, nullable=False),
    sa.Column("slot", IDENTITY, nullable=False),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("version", COUNT, nullable=False),
    sa.Column("authority", IDENTITY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("updated_at", MICROSECONDS, nullable=False),
    sa.UniqueConstraint("org", "installation", "kind", "local_ref", "slot", name="remote_link_local_key"),
    sa.UniqueConstraint(
        "org", "installation", "principal_id", "kind", "remote_id", "slot", name="remote_link_remote_key"
    ),
)
"""`slot` is empty while a link lives and its own id once it is retired: so the unique keys speak of living links alone,
on engines without partial indexes too, and history stays."""

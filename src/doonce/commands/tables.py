"""Tables of acceptance. Both admission outcomes outlive every outbox, redelivery and replay window."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import BODY, COUNT, IDENTITY, KEY, MICROSECONDS, TEXT, metadata

handoff = sa.Table(
    "handoff",
    metadata,
    sa.Column("key", KEY, primary_key=True),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("capability", IDENTITY, nullable=False),
    sa.Column("binding_digest", IDENTITY, nullable=False),
    sa.Column("outbox_id", IDENTITY, nullable=False),
    sa.Column("payload_digest", IDENTITY, nullable=False),
    sa.Column("command_id", IDENTITY),
    sa.Column("receipt_id", IDENTITY, nullable=False, unique=True),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("nonce", IDENTITY, nullable=False),
    sa.Column("recorded_at", MICROSECONDS, nullable=False),
    sa.Index("handoff_outbox_id", "outbox_id"),
)

handoff_conflict = sa.Table(
    "handoff_conflict",
    metadata,
    sa.Column("key", KEY, primary_key=True),
    sa.Column("slot", COUNT, primary_key=True, autoincrement=False),
    sa.Column("asked", TEXT, nullable=False),
    sa.Column("mismatch", TEXT, nullable=False),
    sa.Column("outbox_id", IDENTITY, nullable=False),
    sa.Column("payload_digest", IDENTITY, nullable=False),
    sa.Column("recorded_at", MICROSECONDS, nullable=False),
)
"""What was quarantined, at most `CONFLICT_SLOTS` a key: appended, and never allowed to grow without bound."""

command = sa.Table(
    "command",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("origin", IDENTITY, nullable=False),
    sa.Column("origin_key", KEY, nullable=False),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("capability", IDENTITY, nullable=False),
    sa.Column("operation", IDENTITY, nullable=False),
    sa.Column("local_ref", IDENTITY, nullable=False),
    sa.Column("outbox_id", IDENTITY, nullable=False),
    sa.Column("payload_digest", IDENTITY, nullable=False),
    sa.Column("payload", BODY, nullable=False),
    sa.Column("remote_id", KEY),
    sa.Column("view_digest", IDENTITY, nullable=False),
    sa.Column("principal_id", IDENTITY, nullable=False),
    sa.Column("generation", COUNT, nullable=False),
    sa.Column("link_id", IDENTITY),
    sa.Column("link_version", COUNT),
    sa.Column("method", IDENTITY, nullable=False),
    sa.Column("request_origin", TEXT, nullable=False),
    sa.Column("target", TEXT, nullable=False),
    sa.Column("headers", TEXT, nullable=False),
    sa.Column("body", BODY, nullable=False),
    sa.Column("body_digest", IDENTITY, nullable=False),
    sa.Column("idempotency_key", TEXT),
    sa.Column("accepted_at", MICROSECONDS, nullable=False),
    sa.UniqueConstraint("origin", "origin_key"),
)

command_end = sa.Table(
    "command_end",
    metadata,
    sa.Column("command_id", IDENTITY, primary_key=True),
    sa.Column("ended_as", IDENTITY, nullable=False),
    sa.Column("attempt_id", IDENTITY),
    sa.Column("result", TEXT, nullable=False),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("recorded_at", MICROSECONDS, nullable=False),
)

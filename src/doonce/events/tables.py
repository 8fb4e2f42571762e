"""The tables of events. Rows never change; a second event of one identity is never made."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import BODY, COUNT, IDENTITY, MICROSECONDS, metadata

event = sa.Table(
    "event",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("identity", IDENTITY, nullable=False, unique=True),
    sa.Column("org", IDENTITY, nullable=False),
    sa.Column("installation", IDENTITY, nullable=False),
    sa.Column("capability", IDENTITY, nullable=False),
    sa.Column("webhook", IDENTITY, nullable=False),
    sa.Column("type", IDENTITY, nullable=False),
    sa.Column("receipt_id", IDENTITY, nullable=False),
    sa.Column("position", COUNT, nullable=False),
    sa.Column("view_digest", IDENTITY, nullable=False),
    sa.Column("sealed", BODY, nullable=False),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("derived_at", MICROSECONDS, nullable=False),
    sa.Index("event_receipt", "receipt_id", "position"),
)

event_object = sa.Table(
    "event_object",
    metadata,
    sa.Column("event_id", IDENTITY, primary_key=True),
    sa.Column("attempt_id", IDENTITY, nullable=False),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("read_at", MICROSECONDS, nullable=False),
)
"""The whole object as it was read for an event, by which attempt; `sealed` is NULL where the provider had none.

It is beside the event, which never changes; and not in it, since what is kept of either, and for how long, differs.
"""

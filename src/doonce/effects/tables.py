"""Tables of the effect journal. History is appended to, never edited; an attempt only ever moves forward."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.schema import COUNT, HOT_ROW, IDENTITY, MICROSECONDS, TEXT, metadata

effect_attempt = sa.Table(
    "effect_attempt",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("kind", IDENTITY, nullable=False),
    sa.Column("subject_id", IDENTITY, nullable=False),
    sa.Column("number", COUNT, nullable=False),
    sa.Column("work_id", IDENTITY, nullable=False),
    sa.Column("operation", IDENTITY, nullable=False),
    sa.Column("state", IDENTITY, nullable=False),
    sa.Column("outcome", IDENTITY),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("token", IDENTITY, nullable=False),
    sa.Column("epoch", COUNT, nullable=False),
    sa.Column("generation", COUNT, nullable=False),
    sa.Column("link_version", COUNT),
    sa.Column("request_digest", IDENTITY, nullable=False),
    sa.Column("mark_nonce", IDENTITY),
    sa.Column("prepared_at", MICROSECONDS, nullable=False),
    sa.Column("dispatched_at", MICROSECONDS),
    sa.Column("horizon_at", MICROSECONDS),
    sa.Column("ended_at", MICROSECONDS),
    sa.Column("settled_by", IDENTITY),
    sa.Column("effect_free", COUNT, nullable=False),
    sa.Column("status", COUNT),
    sa.Column("receipt", TEXT),
    sa.Column("result", TEXT),
    sa.Column("evidence_version", COUNT, nullable=False),
    sa.Index("effect_attempt_number", "subject_id", "number", unique=True),
    **HOT_ROW,
)
"""`number`: how many attempts of the subject had ended before this one. Whoever makes an attempt has seen all of those
ended, and an end is for ever; so with the unique key a subject has at most one attempt without an outcome (PROTOCOL
W4). A unique key over the open ones alone would say so too, but every end would have to touch each index of its row.
"""

attempt_evidence = sa.Table(
    "attempt_evidence",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    sa.Column("attempt_id", IDENTITY, nullable=False),
    sa.Column("kind", IDENTITY, nullable=False),
    sa.Column("outcome", IDENTITY),
    sa.Column("result", TEXT, nullable=False),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("token", IDENTITY, nullable=False),
    sa.Column("recorded_at", MICROSECONDS, nullable=False),
    sa.Index("attempt_evidence_attempt_id", "attempt_id"),
)

disposition = sa.Table(
    "disposition",
    metadata,
    sa.Column("attempt_id", IDENTITY, primary_key=True),
    sa.Column("verdict", IDENTITY, nullable=False),
    sa.Column("evidence_version", COUNT, nullable=False),
    sa.Column("names_attempt", COUNT, nullable=False),
    sa.Column("decided_by", IDENTITY, nullable=False),
    sa.Column("reason", TEXT, nullable=False),
    sa.Column("result", TEXT, nullable=False),
    sa.Column("successor_item_id", IDENTITY, unique=True),
    sa.Column("recorded_at", MICROSECONDS, nullable=False),
)
"""One row an attempt: what was decided about an unknown outcome, by whom, from which evidence (PROTOCOL H2)."""

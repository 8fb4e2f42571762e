"""Tables of ingress. A receipt never changes, but that its body is emptied after a time of its own.

Its identity and its digests stay for ever, so that a redelivery is still known however late it comes (PROTOCOL I3).
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from doonce.db.schema import BODY, COUNT, IDENTITY, MICROSECONDS, TEXT, metadata

KEPT: Final[dict[str, Any]] = {
    "postgresql_where": sa.text("sealed IS NOT NULL"),
    "sqlite_where": sa.text("sealed IS NOT NULL"),
}
"""Of an index that has only the rows whose body is still there."""


def _route(*, primary_key: bool = False) -> list[sa.Column[Any]]:
    """The route that a row belongs to."""
    names = ("org", "installation", "capability", "webhook")
    return [sa.Column(name, IDENTITY, primary_key=primary_key, nullable=False) for name in names]


webhook_secret = sa.Table(
    "webhook_secret",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    *_route(),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("ended_at", MICROSECONDS),
    sa.Index("webhook_secret_route", "org", "installation", "capability", "webhook"),
)
"""`sealed` is erased when a secret ends; the row stays as history."""

ingress_identity = sa.Table(
    "ingress_identity",
    metadata,
    sa.Column("identity", IDENTITY, primary_key=True),
    sa.Column("receipt_id", IDENTITY, nullable=False, unique=True),
    sa.Column("body_digest", IDENTITY, nullable=False),
    sa.Column("nonce", IDENTITY, nullable=False),
    sa.Column("received_at", MICROSECONDS, nullable=False),
)

ingress_receipt = sa.Table(
    "ingress_receipt",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    *_route(),
    sa.Column("view_digest", IDENTITY, nullable=False),
    sa.Column("identity", IDENTITY, nullable=False),
    sa.Column("secret_id", IDENTITY, nullable=False),
    sa.Column("signed_at", MICROSECONDS),
    sa.Column("event_type", IDENTITY),
    sa.Column("body_digest", IDENTITY, nullable=False),
    sa.Column("body_bytes", COUNT, nullable=False),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("received_at", MICROSECONDS, nullable=False),
    sa.Index("ingress_receipt_body", "received_at", "id", **KEPT),
)
"""`sealed` is emptied when the body's time is over; `ingress_receipt_body` has the receipts that still hold one."""

ingress_quarantine = sa.Table(
    "ingress_quarantine",
    metadata,
    sa.Column("identity", IDENTITY, primary_key=True),
    sa.Column("slot", COUNT, primary_key=True, autoincrement=False),
    *_route(),
    sa.Column("receipt_id", IDENTITY, nullable=False, unique=True),
    sa.Column("secret_id", IDENTITY, nullable=False),
    sa.Column("signed_at", MICROSECONDS),
    sa.Column("body_digest", IDENTITY, nullable=False),
    sa.Column("body_bytes", COUNT, nullable=False),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("received_at", MICROSECONDS, nullable=False),
    sa.Index("ingress_quarantine_body", "received_at", "receipt_id", **KEPT),
)
"""Other bodies under an identity that has its receipt, at most `QUARANTINE_SLOTS` of them."""

ingress_rejection = sa.Table(
    "ingress_rejection",
    metadata,
    *_route(primary_key=True),
    sa.Column("reason", IDENTITY, primary_key=True),
    sa.Column("count", COUNT, nullable=False),
    sa.Column("first_at", MICROSECONDS, nullable=False),
    sa.Column("last_at", MICROSECONDS, nullable=False),
)
"""What was turned away before its receipt: one row for each route and reason, whatever anybody sends."""

ingress_gap = sa.Table(
    "ingress_gap",
    metadata,
    *_route(primary_key=True),
    sa.Column("sequence", COUNT, primary_key=True, autoincrement=False),
    sa.Column("losses", COUNT, nullable=False),
    sa.Column("opened_at", MICROSECONDS, nullable=False),
    sa.Column("last_at", MICROSECONDS, nullable=False),
    sa.Column("closed_at", MICROSECONDS),
    sa.Column("closed_by", IDENTITY),
    sa.Column("reason", TEXT),
    sa.Column("cause", IDENTITY, nullable=False),
    sa.Column("asked_by", IDENTITY),
    sa.Column("asked_why", TEXT),
    sa.Column("catch_up_id", IDENTITY),
)
"""Time in which deliveries of a route may have been lost for good (PROTOCOL I4); of each cause at most one is open at a
route. `catch_up_id` is its newest catch-up; `asked_by` and `asked_why` are of a gap that an operator opened."""

ingress_catch_up = sa.Table(
    "ingress_catch_up",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    *_route(),
    sa.Column("sequence", COUNT, nullable=False),
    sa.Column("view_digest", IDENTITY, nullable=False),
    sa.Column("asked_by", IDENTITY),
    sa.Column("asked_why", TEXT),
    sa.Column("covered_since", MICROSECONDS),
    sa.Column("covered_until", MICROSECONDS),
    sa.Column("passes", COUNT, nullable=False),
    sa.Column("from_at", MICROSECONDS),
    sa.Column("since_at", MICROSECONDS),
    sa.Column("until_at", MICROSECONDS),
    sa.Column("losses", COUNT),
    sa.Column("page_id", IDENTITY, nullable=False),
    sa.Column("page_number", COUNT, nullable=False),
    sa.Column("page_cursor", TEXT),
    sa.Column("pages", COUNT, nullable=False),
    sa.Column("items", COUNT, nullable=False),
    sa.Column("events", COUNT, nullable=False),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("updated_at", MICROSECONDS, nullable=False),
    sa.Index("ingress_catch_up_page", "page_id", unique=True),
)
"""Reading a gap from its provider, pass by pass and page by page; its work item says when and by whom.

`since_at` to `until_at` is the window of the pass under way, `losses` what the gap counted when that pass began;
without one they are null. `page_id`, `page_number` and `page_cursor` are of the page that is read next: a cursor that
moves only in the transaction that has stored the page before (DESIGN rule 9).
"""

ingress_page = sa.Table(
    "ingress_page",
    metadata,
    sa.Column("id", IDENTITY, primary_key=True),
    *_route(),
    sa.Column("catch_up_id", IDENTITY, nullable=False),
    sa.Column("pass", COUNT, nullable=False),
    sa.Column("number", COUNT, nullable=False),
    sa.Column("cursor_digest", IDENTITY, nullable=False),
    sa.Column("view_digest", IDENTITY, nullable=False),
    sa.Column("attempt_id", IDENTITY, nullable=False),
    sa.Column("items", COUNT, nullable=False),
    sa.Column("events", COUNT, nullable=False),
    sa.Column("fault", TEXT),
    sa.Column("body_digest", IDENTITY, nullable=False),
    sa.Column("body_bytes", COUNT, nullable=False),
    sa.Column("sealed", BODY),
    sa.Column("key_id", IDENTITY, nullable=False),
    sa.Column("received_at", MICROSECONDS, nullable=False),
    sa.Index("ingress_page_number", "catch_up_id", "pass", "number", unique=True),
    sa.Index("ingress_page_body", "received_at", "id", **KEPT),
)
"""Pages of a provider's answers, as a receipt is of a delivery; `fault` is why no events could be made of one."""

"""Deliveries and events."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import BODY, NAME, TEXT

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEPT: dict[str, Any] = {
    "postgresql_where": sa.text("sealed IS NOT NULL"),
    "sqlite_where": sa.text("sealed IS NOT NULL"),
}


def upgrade() -> None:
    _event()
    _event_object()
    _ingress_catch_up()
    _ingress_gap()
    _ingress_identity()
    _ingress_page()
    _ingress_quarantine()
    _ingress_receipt()
    _ingress_rejection()
    _webhook_secret()


def _event() -> None:
    op.create_table(
        "event",
        sa.Column("id", NAME, nullable=False),
        sa.Column("identity", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("type", NAME, nullable=False),
        sa.Column("receipt_id", NAME, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("sealed", BODY, nullable=False),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("derived_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("event_pk")),
        sa.UniqueConstraint("identity", name=op.f("event_identity_key")),
    )
    op.create_index("event_receipt", "event", ["receipt_id", "position"], unique=False)


def _event_object() -> None:
    op.create_table(
        "event_object",
        sa.Column("event_id", NAME, nullable=False),
        sa.Column("attempt_id", NAME, nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name=op.f("event_object_pk")),
    )


def _ingress_catch_up() -> None:
    op.create_table(
        "ingress_catch_up",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("asked_by", NAME, nullable=True),
        sa.Column("asked_why", TEXT, nullable=True),
        sa.Column("covered_since", sa.BigInteger(), nullable=True),
        sa.Column("covered_until", sa.BigInteger(), nullable=True),
        sa.Column("passes", sa.BigInteger(), nullable=False),
        sa.Column("from_at", sa.BigInteger(), nullable=True),
        sa.Column("since_at", sa.BigInteger(), nullable=True),
        sa.Column("until_at", sa.BigInteger(), nullable=True),
        sa.Column("losses", sa.BigInteger(), nullable=True),
        sa.Column("page_id", NAME, nullable=False),
        sa.Column("page_number", sa.BigInteger(), nullable=False),
        sa.Column("page_cursor", TEXT, nullable=True),
        sa.Column("pages", sa.BigInteger(), nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("ingress_catch_up_pk")),
    )
    op.create_index("ingress_catch_up_page", "ingress_catch_up", ["page_id"], unique=True)


def _ingress_gap() -> None:
    op.create_table(
        "ingress_gap",
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("losses", sa.BigInteger(), nullable=False),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("closed_at", sa.BigInteger(), nullable=True),
        sa.Column("closed_by", NAME, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("cause", NAME, nullable=False),
        sa.Column("asked_by", NAME, nullable=True),
        sa.Column("asked_why", TEXT, nullable=True),
        sa.Column("catch_up_id", NAME, nullable=True),
        sa.PrimaryKeyConstraint(
            "org", "installation", "capability", "webhook", "sequence", name=op.f("ingress_gap_pk")
        ),
    )


def _ingress_identity() -> None:
    op.create_table(
        "ingress_identity",
        sa.Column("identity", NAME, nullable=False),
        sa.Column("receipt_id", NAME, nullable=False),
        sa.Column("body_digest", NAME, nullable=False),
        sa.Column("nonce", NAME, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("identity", name=op.f("ingress_identity_pk")),
        sa.UniqueConstraint("receipt_id", name=op.f("ingress_identity_receipt_id_key")),
    )


def _ingress_page() -> None:
    op.create_table(
        "ingress_page",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("catch_up_id", NAME, nullable=False),
        sa.Column("pass", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("cursor_digest", NAME, nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("attempt_id", NAME, nullable=False),
        sa.Column("items", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("fault", TEXT, nullable=True),
        sa.Column("body_digest", NAME, nullable=False),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("ingress_page_pk")),
    )
    op.create_index("ingress_page_number", "ingress_page", ["catch_up_id", "pass", "number"], unique=True)
    op.create_index("ingress_page_body", "ingress_page", ["received_at", "id"], unique=False, **KEPT)


def _ingress_quarantine() -> None:
    op.create_table(
        "ingress_quarantine",
        sa.Column("identity", NAME, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("receipt_id", NAME, nullable=False),
        sa.Column("secret_id", NAME, nullable=False),
        sa.Column("signed_at", sa.BigInteger(), nullable=True),
        sa.Column("body_digest", NAME, nullable=False),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("identity", "slot", name=op.f("ingress_quarantine_pk")),
        sa.UniqueConstraint("receipt_id", name=op.f("ingress_quarantine_receipt_id_key")),
    )
    op.create_index(
        "ingress_quarantine_body", "ingress_quarantine", ["received_at", "receipt_id"], unique=False, **KEPT
    )


def _ingress_receipt() -> None:
    op.create_table(
        "ingress_receipt",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("identity", NAME, nullable=False),
        sa.Column("secret_id", NAME, nullable=False),
        sa.Column("signed_at", sa.BigInteger(), nullable=True),
        sa.Column("event_type", NAME, nullable=True),
        sa.Column("body_digest", NAME, nullable=False),
        sa.Column("body_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("ingress_receipt_pk")),
    )
    op.create_index("ingress_receipt_body", "ingress_receipt", ["received_at", "id"], unique=False, **KEPT)


def _ingress_rejection() -> None:
    op.create_table(
        "ingress_rejection",
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("reason", NAME, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "org", "installation", "capability", "webhook", "reason", name=op.f("ingress_rejection_pk")
        ),
    )


def _webhook_secret() -> None:
    op.create_table(
        "webhook_secret",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("webhook", NAME, nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("webhook_secret_pk")),
    )
    op.create_index(
        "webhook_secret_route",
        "webhook_secret",
        ["org", "installation", "capability", "webhook"],
        unique=False,
    )

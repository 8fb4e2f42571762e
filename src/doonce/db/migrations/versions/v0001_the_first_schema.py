"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")
BODY = sa.LargeBinary().with_variant(postgresql.BYTEA(), "postgresql")


def upgrade() -> None:
    _attempt_evidence()
    _binding_generation()
    _binding_view()
    _command()
    _command_end()
    _credential()
    _database_incarnation()
    _disposition()
    _doonce_clock()
    _effect_attempt()
    _handoff()
    _handoff_conflict()
    _principal()
    _remote_link()
    _token_version()
    _view_publication()
    _work_claimer()
    _work_item()
    _work_lane()
    _work_lane_entry()
    _work_ownership()
    _work_ready()
    op.execute("INSERT INTO doonce_clock (id, now_us) VALUES (1, 0)")


def _attempt_evidence() -> None:
    op.create_table(
        "attempt_evidence",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("attempt_id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=True),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("token", TEXT, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("attempt_evidence_pk")),
    )
    op.create_index("attempt_evidence_attempt_id", "attempt_evidence", ["attempt_id"], unique=False)


def _binding_generation() -> None:
    op.create_table(
        "binding_generation",
        sa.Column("principal_id", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("remote_subject", TEXT, nullable=False),
        sa.Column("remote_tenant", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("principal_id", "generation", name=op.f("binding_generation_pk")),
        sa.UniqueConstraint("id", name=op.f("binding_generation_id_key")),
    )


def _binding_view() -> None:
    op.create_table(
        "binding_view",
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("document", BODY, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("capability", TEXT, nullable=False),
        sa.Column("pack_name", TEXT, nullable=False),
        sa.Column("pack_version", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("binding_view_pk")),
    )


def _command() -> None:
    op.create_table(
        "command",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("origin", TEXT, nullable=False),
        sa.Column("origin_key", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("capability", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("local_ref", TEXT, nullable=False),
        sa.Column("outbox_id", TEXT, nullable=False),
        sa.Column("payload_digest", TEXT, nullable=False),
        sa.Column("payload", BODY, nullable=False),
        sa.Column("remote_id", TEXT, nullable=True),
        sa.Column("view_digest", TEXT, nullable=False),
        sa.Column("principal_id", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("link_id", TEXT, nullable=True),
        sa.Column("link_version", sa.BigInteger(), nullable=True),
        sa.Column("method", TEXT, nullable=False),
        sa.Column("request_origin", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("headers", TEXT, nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.Column("body_digest", TEXT, nullable=False),
        sa.Column("idempotency_key", TEXT, nullable=True),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("command_pk")),
        sa.UniqueConstraint("origin", "origin_key", name=op.f("command_origin_origin_key_key")),
    )


def _command_end() -> None:
    op.create_table(
        "command_end",
        sa.Column("command_id", TEXT, nullable=False),
        sa.Column("ended_as", TEXT, nullable=False),
        sa.Column("attempt_id", TEXT, nullable=True),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("command_id", name=op.f("command_end_pk")),
    )


def _credential() -> None:
    op.create_table(
        "credential",
        sa.Column("hash", TEXT, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("capabilities", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("note", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("hash", name=op.f("credential_pk")),
        sa.UniqueConstraint("id", name=op.f("credential_id_key")),
    )


def _database_incarnation() -> None:
    op.create_table(
        "database_incarnation",
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("identity", TEXT, nullable=False),
        sa.Column("timeline", TEXT, nullable=False),
        sa.Column("declaration", TEXT, nullable=False),
        sa.Column("operator", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("declared_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("database_incarnation_pk")),
        sa.UniqueConstraint("id", name=op.f("database_incarnation_id_key")),
    )


def _disposition() -> None:
    op.create_table(
        "disposition",
        sa.Column("attempt_id", TEXT, nullable=False),
        sa.Column("verdict", TEXT, nullable=False),
        sa.Column("evidence_version", sa.BigInteger(), nullable=False),
        sa.Column("names_attempt", sa.BigInteger(), nullable=False),
        sa.Column("decided_by", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("successor_item_id", TEXT, nullable=True),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("disposition_pk")),
        sa.UniqueConstraint("successor_item_id", name=op.f("disposition_successor_item_id_key")),
    )


def _doonce_clock() -> None:
    op.create_table(
        "doonce_clock",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False
        ),
        sa.Column("now_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("doonce_clock_pk")),
    )


def _effect_attempt() -> None:
    op.create_table(
        "effect_attempt",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("subject_id", TEXT, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("work_id", TEXT, nullable=False),
        sa.Column("operation", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("token", TEXT, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("link_version", sa.BigInteger(), nullable=True),
        sa.Column("request_digest", TEXT, nullable=False),
        sa.Column("mark_nonce", TEXT, nullable=True),
        sa.Column("prepared_at", sa.BigInteger(), nullable=False),
        sa.Column("dispatched_at", sa.BigInteger(), nullable=True),
        sa.Column("horizon_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("settled_by", TEXT, nullable=True),
        sa.Column("effect_free", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.BigInteger(), nullable=True),
        sa.Column("receipt", TEXT, nullable=True),
        sa.Column("result", TEXT, nullable=True),
        sa.Column("evidence_version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("effect_attempt_pk")),
        postgresql_with={"fillfactor": "45"},
    )
    op.create_index("effect_attempt_number", "effect_attempt", ["subject_id", "number"], unique=True)


def _handoff() -> None:
    op.create_table(
        "handoff",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("capability", TEXT, nullable=False),
        sa.Column("binding_digest", TEXT, nullable=False),
        sa.Column("outbox_id", TEXT, nullable=False),
        sa.Column("payload_digest", TEXT, nullable=False),
        sa.Column("command_id", TEXT, nullable=True),
        sa.Column("receipt_id", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("nonce", TEXT, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("handoff_pk")),
        sa.UniqueConstraint("receipt_id", name=op.f("handoff_receipt_id_key")),
    )
    op.create_index("handoff_outbox_id", "handoff", ["outbox_id"], unique=False)


def _handoff_conflict() -> None:
    op.create_table(
        "handoff_conflict",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("asked", TEXT, nullable=False),
        sa.Column("mismatch", TEXT, nullable=False),
        sa.Column("outbox_id", TEXT, nullable=False),
        sa.Column("payload_digest", TEXT, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "slot", name=op.f("handoff_conflict_pk")),
    )


def _principal() -> None:
    op.create_table(
        "principal",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("pack", TEXT, nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("current_generation", sa.BigInteger(), nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("principal_pk")),
        sa.UniqueConstraint("org", "installation", "name", name="principal_name_key"),
    )


def _remote_link() -> None:
    op.create_table(
        "remote_link",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("principal_id", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("local_ref", TEXT, nullable=False),
        sa.Column("remote_id", TEXT, nullable=False),
        sa.Column("slot", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("authority", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("remote_link_pk")),
        sa.UniqueConstraint("org", "installation", "kind", "local_ref", "slot", name="remote_link_local_key"),
        sa.UniqueConstraint(
            "org", "installation", "principal_id", "kind", "remote_id", "slot", name="remote_link_remote_key"
        ),
    )


def _token_version() -> None:
    op.create_table(
        "token_version",
        sa.Column("principal_id", TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("principal_id", "generation", "version", name=op.f("token_version_pk")),
    )


def _view_publication() -> None:
    op.create_table(
        "view_publication",
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("capability", TEXT, nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest", TEXT, nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "org", "installation", "capability", "sequence", name=op.f("view_publication_pk")
        ),
    )
    op.create_index(
        "view_publication_digest",
        "view_publication",
        ["org", "installation", "capability", "digest"],
        unique=False,
    )


def _work_claimer() -> None:
    op.create_table(
        "work_claimer",
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("family", TEXT, nullable=False),
        sa.Column("token", TEXT, nullable=False),
        sa.Column("items", TEXT, nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "family", name=op.f("work_claimer_pk")),
        postgresql_with={"fillfactor": "45"},
    )


def _work_item() -> None:
    op.create_table(
        "work_item",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("family", TEXT, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("subject_kind", TEXT, nullable=False),
        sa.Column("subject_id", TEXT, nullable=False),
        sa.Column("view_digest", TEXT, nullable=False),
        sa.Column("capability_version", sa.BigInteger(), nullable=False),
        sa.Column("source_lane", TEXT, nullable=True),
        sa.Column("source_position", sa.BigInteger(), nullable=True),
        sa.Column("target_lane", TEXT, nullable=True),
        sa.Column("target_position", sa.BigInteger(), nullable=True),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("run_after", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("deferrals", sa.BigInteger(), nullable=False),
        sa.Column("first_deferred_at", sa.BigInteger(), nullable=True),
        sa.Column("expiries", sa.BigInteger(), nullable=False),
        sa.Column("alone", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", TEXT, nullable=True),
        sa.Column("lease_token", TEXT, nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("ownership_epoch", sa.BigInteger(), nullable=False),
        sa.Column("cancel_requested", sa.BigInteger(), nullable=False),
        sa.Column("failure_class", TEXT, nullable=True),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("replay_of", TEXT, nullable=True),
        sa.Column("predecessor", TEXT, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("work_item_pk")),
        postgresql_with={"fillfactor": "45"},
    )
    op.create_index(
        "work_item_predecessor",
        "work_item",
        ["predecessor"],
        unique=True,
        postgresql_where=sa.text("predecessor IS NOT NULL"),
        sqlite_where=sa.text("predecessor IS NOT NULL"),
    )
    op.create_index(
        "work_item_reconciles",
        "work_item",
        ["subject_id"],
        unique=False,
        postgresql_where=sa.text("family = 'reconcile'::text"),
        sqlite_where=sa.text("family = 'reconcile'"),
    )
    op.create_index("work_item_subject_id", "work_item", ["subject_id"], unique=False)


def _work_lane() -> None:
    op.create_table(
        "work_lane",
        sa.Column("lane", TEXT, nullable=False),
        sa.Column("policy", TEXT, nullable=False),
        sa.Column("tail", sa.BigInteger(), nullable=False),
        sa.Column("holder", TEXT, nullable=True),
        sa.Column("hold_until", sa.BigInteger(), nullable=False),
        sa.Column("nominee", TEXT, nullable=True),
        sa.Column("nominee_due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane", name=op.f("work_lane_pk")),
        postgresql_with={"fillfactor": "45"},
    )


def _work_lane_entry() -> None:
    op.create_table(
        "work_lane_entry",
        sa.Column("lane", TEXT, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", TEXT, nullable=False),
        sa.Column("open", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane", "position", name=op.f("work_lane_entry_pk")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "work_lane_entry_next", "work_lane_entry", ["lane", "open", "due", "position"], unique=False
    )


def _work_ownership() -> None:
    op.create_table(
        "work_ownership",
        sa.Column("family", TEXT, nullable=False),
        sa.Column("deployment", TEXT, nullable=False),
        sa.Column("release_digest", TEXT, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("operation_id", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("family", name=op.f("work_ownership_pk")),
    )


def _work_ready() -> None:
    op.create_table(
        "work_ready",
        sa.Column("family", TEXT, nullable=False),
        sa.Column("shelf", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("org", TEXT, nullable=False),
        sa.Column("installation", TEXT, nullable=False),
        sa.Column("due", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", TEXT, nullable=False),
        sa.Column("source_lane", TEXT, nullable=True),
        sa.Column("target_lane", TEXT, nullable=True),
        sa.PrimaryKeyConstraint(
            "family", "shelf", "org", "installation", "due", "item_id", name=op.f("work_ready_pk")
        ),
        sqlite_with_rowid=False,
    )

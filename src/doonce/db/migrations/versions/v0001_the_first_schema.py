"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import BODY, KEY, NAME, TEXT, on_mysql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


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
    _doonce_fence()
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
    _work_lease()
    _work_ownership()
    _work_ready()
    op.execute("INSERT INTO doonce_clock (id, now_us) VALUES (1, 0)")


def _attempt_evidence() -> None:
    op.create_table(
        "attempt_evidence",
        sa.Column("id", NAME, nullable=False),
        sa.Column("attempt_id", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("outcome", NAME, nullable=True),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("token", NAME, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("attempt_evidence_pk")),
    )
    op.create_index("attempt_evidence_attempt_id", "attempt_evidence", ["attempt_id"], unique=False)


def _binding_generation() -> None:
    op.create_table(
        "binding_generation",
        sa.Column("principal_id", NAME, nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("remote_subject", KEY, nullable=False),
        sa.Column("remote_tenant", KEY, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("principal_id", "generation", name=op.f("binding_generation_pk")),
        sa.UniqueConstraint("id", name=op.f("binding_generation_id_key")),
    )


def _binding_view() -> None:
    op.create_table(
        "binding_view",
        sa.Column("digest", NAME, nullable=False),
        sa.Column("document", BODY, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("pack_name", NAME, nullable=False),
        sa.Column("pack_version", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("binding_view_pk")),
    )


def _command() -> None:
    op.create_table(
        "command",
        sa.Column("id", NAME, nullable=False),
        sa.Column("origin", NAME, nullable=False),
        sa.Column("origin_key", KEY, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("operation", NAME, nullable=False),
        sa.Column("local_ref", NAME, nullable=False),
        sa.Column("outbox_id", NAME, nullable=False),
        sa.Column("payload_digest", NAME, nullable=False),
        sa.Column("payload", BODY, nullable=False),
        sa.Column("remote_id", KEY, nullable=True),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("principal_id", NAME, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("link_id", NAME, nullable=True),
        sa.Column("link_version", sa.BigInteger(), nullable=True),
        sa.Column("method", NAME, nullable=False),
        sa.Column("request_origin", TEXT, nullable=False),
        sa.Column("target", TEXT, nullable=False),
        sa.Column("headers", TEXT, nullable=False),
        sa.Column("body", BODY, nullable=False),
        sa.Column("body_digest", NAME, nullable=False),
        sa.Column("idempotency_key", TEXT, nullable=True),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("command_pk")),
        sa.UniqueConstraint("origin", "origin_key", name=op.f("command_origin_origin_key_key")),
    )


def _command_end() -> None:
    op.create_table(
        "command_end",
        sa.Column("command_id", NAME, nullable=False),
        sa.Column("ended_as", NAME, nullable=False),
        sa.Column("attempt_id", NAME, nullable=True),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("command_id", name=op.f("command_end_pk")),
    )


def _credential() -> None:
    op.create_table(
        "credential",
        sa.Column("hash", NAME, nullable=False),
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capabilities", TEXT, nullable=False),
        sa.Column("state", NAME, nullable=False),
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
        sa.Column("id", NAME, nullable=False),
        sa.Column("identity", NAME, nullable=False),
        sa.Column("timeline", NAME, nullable=False),
        sa.Column("declaration", NAME, nullable=False),
        sa.Column("operator", NAME, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("declared_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("database_incarnation_pk")),
        sa.UniqueConstraint("id", name=op.f("database_incarnation_id_key")),
    )


def _disposition() -> None:
    op.create_table(
        "disposition",
        sa.Column("attempt_id", NAME, nullable=False),
        sa.Column("verdict", NAME, nullable=False),
        sa.Column("evidence_version", sa.BigInteger(), nullable=False),
        sa.Column("names_attempt", sa.BigInteger(), nullable=False),
        sa.Column("decided_by", NAME, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("result", TEXT, nullable=False),
        sa.Column("successor_item_id", NAME, nullable=True),
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


def _doonce_fence() -> None:
    op.create_table(
        "doonce_fence",
        sa.Column("name", NAME, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("moves", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "slot", name=op.f("doonce_fence_pk")),
    )


def _effect_attempt() -> None:
    op.create_table(
        "effect_attempt",
        sa.Column("id", NAME, nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("subject_id", NAME, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("work_id", NAME, nullable=False),
        sa.Column("operation", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("outcome", NAME, nullable=True),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("token", NAME, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("link_version", sa.BigInteger(), nullable=True),
        sa.Column("request_digest", NAME, nullable=False),
        sa.Column("mark_nonce", NAME, nullable=True),
        sa.Column("prepared_at", sa.BigInteger(), nullable=False),
        sa.Column("dispatched_at", sa.BigInteger(), nullable=True),
        sa.Column("horizon_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("settled_by", NAME, nullable=True),
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
        sa.Column("key", KEY, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("binding_digest", NAME, nullable=False),
        sa.Column("outbox_id", NAME, nullable=False),
        sa.Column("payload_digest", NAME, nullable=False),
        sa.Column("command_id", NAME, nullable=True),
        sa.Column("receipt_id", NAME, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("nonce", NAME, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("handoff_pk")),
        sa.UniqueConstraint("receipt_id", name=op.f("handoff_receipt_id_key")),
    )
    op.create_index("handoff_outbox_id", "handoff", ["outbox_id"], unique=False)


def _handoff_conflict() -> None:
    op.create_table(
        "handoff_conflict",
        sa.Column("key", KEY, nullable=False),
        sa.Column("slot", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("asked", TEXT, nullable=False),
        sa.Column("mismatch", TEXT, nullable=False),
        sa.Column("outbox_id", NAME, nullable=False),
        sa.Column("payload_digest", NAME, nullable=False),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "slot", name=op.f("handoff_conflict_pk")),
    )


def _principal() -> None:
    op.create_table(
        "principal",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("pack", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("current_generation", sa.BigInteger(), nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("principal_pk")),
        sa.UniqueConstraint("org", "installation", "name", name="principal_name_key"),
    )


def _remote_link() -> None:
    op.create_table(
        "remote_link",
        sa.Column("id", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("principal_id", NAME, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("kind", NAME, nullable=False),
        sa.Column("local_ref", NAME, nullable=False),
        sa.Column("remote_id", KEY, nullable=False),
        sa.Column("slot", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("authority", NAME, nullable=False),
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
        sa.Column("principal_id", NAME, nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("sealed", BODY, nullable=True),
        sa.Column("key_id", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("principal_id", "generation", "version", name=op.f("token_version_pk")),
    )


def _view_publication() -> None:
    op.create_table(
        "view_publication",
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("capability", NAME, nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest", NAME, nullable=False),
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
        sa.Column("owner", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("token", NAME, nullable=False),
        sa.Column("items", TEXT, nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "family", name=op.f("work_claimer_pk")),
        postgresql_with={"fillfactor": "45"},
    )


def _work_item() -> None:
    op.create_table(
        "work_item",
        sa.Column("id", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("subject_kind", NAME, nullable=False),
        sa.Column("subject_id", NAME, nullable=False),
        sa.Column("view_digest", NAME, nullable=False),
        sa.Column("capability_version", sa.BigInteger(), nullable=False),
        sa.Column("source_lane", KEY, nullable=True),
        sa.Column("source_position", sa.BigInteger(), nullable=True),
        sa.Column("target_lane", KEY, nullable=True),
        sa.Column("target_position", sa.BigInteger(), nullable=True),
        sa.Column("state", NAME, nullable=False),
        sa.Column("run_after", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("first_failed_at", sa.BigInteger(), nullable=True),
        sa.Column("deferrals", sa.BigInteger(), nullable=False),
        sa.Column("first_deferred_at", sa.BigInteger(), nullable=True),
        sa.Column("expiries", sa.BigInteger(), nullable=False),
        sa.Column("alone", sa.BigInteger(), nullable=False),
        sa.Column("lease_owner", NAME, nullable=True),
        sa.Column("lease_token", NAME, nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("ownership_epoch", sa.BigInteger(), nullable=False),
        sa.Column("cancel_requested", sa.BigInteger(), nullable=False),
        sa.Column("failure_class", NAME, nullable=True),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("replay_of", NAME, nullable=True),
        sa.Column("predecessor", NAME, nullable=True),
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
    if on_mysql():
        op.create_index("work_item_family", "work_item", ["family", "subject_id"], unique=False)
    else:
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
        sa.Column("lane", KEY, nullable=False),
        sa.Column("policy", NAME, nullable=False),
        sa.Column("tail", sa.BigInteger(), nullable=False),
        sa.Column("holder", NAME, nullable=True),
        sa.Column("hold_until", sa.BigInteger(), nullable=False),
        sa.Column("nominee", NAME, nullable=True),
        sa.Column("nominee_due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane", name=op.f("work_lane_pk")),
        postgresql_with={"fillfactor": "45"},
    )


def _work_lane_entry() -> None:
    op.create_table(
        "work_lane_entry",
        sa.Column("lane", KEY, nullable=False),
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", NAME, nullable=False),
        sa.Column("open", sa.BigInteger(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lane", "position", name=op.f("work_lane_entry_pk")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "work_lane_entry_next", "work_lane_entry", ["lane", "open", "due", "position"], unique=False
    )


def _work_lease() -> None:
    op.create_table(
        "work_lease",
        sa.Column("token", NAME, nullable=False),
        sa.Column("family", NAME, nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("items", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("token", name=op.f("work_lease_pk")),
    )
    op.create_index("work_lease_due", "work_lease", ["family", "due"], unique=False)


def _work_ownership() -> None:
    op.create_table(
        "work_ownership",
        sa.Column("family", NAME, nullable=False),
        sa.Column("deployment", NAME, nullable=False),
        sa.Column("release_digest", NAME, nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("operation_id", NAME, nullable=False),
        sa.Column("state", NAME, nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("family", name=op.f("work_ownership_pk")),
    )


def _work_ready() -> None:
    op.create_table(
        "work_ready",
        sa.Column("family", NAME, nullable=False),
        sa.Column("shelf", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("org", NAME, nullable=False),
        sa.Column("installation", NAME, nullable=False),
        sa.Column("due", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", NAME, nullable=False),
        sa.Column("source_lane", KEY, nullable=True),
        sa.Column("target_lane", KEY, nullable=True),
        sa.PrimaryKeyConstraint(
            "family", "shelf", "org", "installation", "due", "item_id", name=op.f("work_ready_pk")
        ),
        sqlite_with_rowid=False,
    )

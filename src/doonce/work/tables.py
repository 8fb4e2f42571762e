"""Tables of the kernel. `work_item` is the authority; `work_ready` and the entries of a lane can be rebuilt from it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from doonce.db.schema import (
    COUNT,
    HINTS,
    HOT_ROW,
    IDENTITY,
    KEY,
    MICROSECONDS,
    MYSQL,
    PARTIAL,
    TEXT,
    metadata,
    only_on,
)


def _what_it_is() -> list[sa.Column[Any]]:
    """What an item is from its birth, and where it stands: the same here and in history."""
    return [
        sa.Column("id", IDENTITY, primary_key=True),
        sa.Column("family", IDENTITY, nullable=False),
        sa.Column("org", IDENTITY, nullable=False),
        sa.Column("installation", IDENTITY, nullable=False),
        sa.Column("subject_kind", IDENTITY, nullable=False),
        sa.Column("subject_id", IDENTITY, nullable=False),
        sa.Column("view_digest", IDENTITY, nullable=False),
        sa.Column("capability_version", COUNT, nullable=False),
        sa.Column("source_lane", KEY),
        sa.Column("source_position", COUNT),
        sa.Column("target_lane", KEY),
        sa.Column("target_position", COUNT),
        sa.Column("state", IDENTITY, nullable=False),
    ]


work_item = sa.Table(
    "work_item",
    metadata,
    *_what_it_is(),
    sa.Column("run_after", MICROSECONDS, nullable=False),
    sa.Column("attempts", COUNT, nullable=False),
    sa.Column("claims", COUNT, nullable=False),
    sa.Column("failures", COUNT, nullable=False),
    sa.Column("first_failed_at", MICROSECONDS),
    sa.Column("deferrals", COUNT, nullable=False),
    sa.Column("first_deferred_at", MICROSECONDS),
    sa.Column("expiries", COUNT, nullable=False),
    sa.Column("alone", COUNT, nullable=False),
    sa.Column("lease_owner", IDENTITY),
    sa.Column("lease_token", IDENTITY),
    sa.Column("lease_until", MICROSECONDS, nullable=False),
    sa.Column("ownership_epoch", COUNT, nullable=False),
    sa.Column("cancel_requested", COUNT, nullable=False),
    sa.Column("failure_class", IDENTITY),
    sa.Column("summary", TEXT),
    sa.Column("replay_of", IDENTITY),
    sa.Column("predecessor", IDENTITY),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("updated_at", MICROSECONDS, nullable=False),
    sa.Column("finished_at", MICROSECONDS),
    sa.Index("work_item_subject_id", "subject_id"),
    only_on(
        sa.Index(
            "work_item_reconciles",
            "subject_id",
            postgresql_where=sa.text("family = 'reconcile'::text"),
            sqlite_where=sa.text("family = 'reconcile'"),
        ),
        *PARTIAL,
    ),
    sa.Index(
        "work_item_predecessor",
        "predecessor",
        unique=True,
        postgresql_where=sa.text("predecessor IS NOT NULL"),
        sqlite_where=sa.text("predecessor IS NOT NULL"),
    ),
    only_on(sa.Index("work_item_family", "family", "subject_id"), *MYSQL),
    **HOT_ROW,
)
"""`work_item_reconciles`: the few items that an operator asks for, found whatever the history holds.
`work_item_family` does the same where an engine has no partial indexes. `work_item_predecessor`: an item has one
successor; most have none, and cost it nothing where the index can be partial."""

work_ready = sa.Table(
    "work_ready",
    metadata,
    sa.Column("family", IDENTITY, primary_key=True),
    sa.Column("shelf", COUNT, primary_key=True, autoincrement=False),
    sa.Column("org", IDENTITY, primary_key=True),
    sa.Column("installation", IDENTITY, primary_key=True),
    sa.Column("due", MICROSECONDS, primary_key=True, autoincrement=False),
    sa.Column("item_id", IDENTITY, primary_key=True),
    sa.Column("source_lane", KEY),
    sa.Column("target_lane", KEY),
    sqlite_with_rowid=False,
    info={HINTS: True},
)
"""Hints: look at this item at this time. An item under a lease has none until the lease is over."""

work_lease = sa.Table(
    "work_lease",
    metadata,
    sa.Column("token", IDENTITY, primary_key=True),
    sa.Column("family", IDENTITY, nullable=False),
    sa.Column("due", MICROSECONDS, nullable=False),
    sa.Column("items", TEXT, nullable=False),
    sa.Index("work_lease_due", "family", "due"),
)
"""Hints as well: look at the items of this claim when its lease is over."""

work_lane = sa.Table(
    "work_lane",
    metadata,
    sa.Column("lane", KEY, primary_key=True),
    sa.Column("policy", IDENTITY, nullable=False),
    sa.Column("tail", COUNT, nullable=False),
    sa.Column("holder", IDENTITY),
    sa.Column("hold_until", MICROSECONDS, nullable=False),
    sa.Column("nominee", IDENTITY),
    sa.Column("nominee_due", MICROSECONDS, nullable=False),
    **HOT_ROW,
)
"""One row a lane: where it ends, who holds it, who is next. Locked before anything that touches the lane (L1)."""

work_lane_entry = sa.Table(
    "work_lane_entry",
    metadata,
    sa.Column("lane", KEY, primary_key=True),
    sa.Column("position", COUNT, primary_key=True, autoincrement=False),
    sa.Column("item_id", IDENTITY, nullable=False),
    sa.Column("open", COUNT, nullable=False),
    sa.Column("due", MICROSECONDS, nullable=False),
    sa.Index("work_lane_entry_next", "lane", "open", "due", "position"),
    sqlite_with_rowid=False,
)
"""The items of a lane that have not ended; `open` when nothing but the lane itself keeps one waiting."""

work_claimer = sa.Table(
    "work_claimer",
    metadata,
    sa.Column("owner", IDENTITY, primary_key=True),
    sa.Column("family", IDENTITY, primary_key=True),
    sa.Column("token", IDENTITY, nullable=False),
    sa.Column("items", TEXT, nullable=False),
    sa.Column("claimed_at", MICROSECONDS, nullable=False),
    **HOT_ROW,
)
"""What each process claimed last: a claim whose commit was not answered finds its own result here (PROTOCOL T5)."""

work_item_history = sa.Table(
    "work_item_history",
    metadata,
    *_what_it_is(),
    sa.Column("attempts", COUNT, nullable=False),
    sa.Column("claims", COUNT, nullable=False),
    sa.Column("failures", COUNT, nullable=False),
    sa.Column("deferrals", COUNT, nullable=False),
    sa.Column("expiries", COUNT, nullable=False),
    sa.Column("lease_owner", IDENTITY),
    sa.Column("ownership_epoch", COUNT, nullable=False),
    sa.Column("failure_class", IDENTITY),
    sa.Column("summary", TEXT),
    sa.Column("replay_of", IDENTITY),
    sa.Column("predecessor", IDENTITY),
    sa.Column("created_at", MICROSECONDS, nullable=False),
    sa.Column("finished_at", MICROSECONDS, nullable=False),
    sa.Column("moved_at", MICROSECONDS, nullable=False),
    sa.Index("work_item_history_subject_id", "subject_id"),
    sa.Index(
        "work_item_history_predecessor",
        "predecessor",
        unique=True,
        postgresql_where=sa.text("predecessor IS NOT NULL"),
        sqlite_where=sa.text("predecessor IS NOT NULL"),
    ),
)
"""Ended items, moved here by retention: inserted once, never changed. What only a running item needs stays behind."""

work_retention = sa.Table(
    "work_retention",
    metadata,
    sa.Column("name", IDENTITY, primary_key=True),
    sa.Column("passed", IDENTITY, nullable=False),
    sa.Column("moved", COUNT, nullable=False),
    sa.Column("seen_since", MICROSECONDS),
    sa.Column("overdue_since", MICROSECONDS),
    sa.Column("walked_at", MICROSECONDS),
    **HOT_ROW,
)
"""One row for each table that is walked. `passed`: the walk under way has been up to here. `seen_since`: when the
oldest row had ended that this walk had to leave although its time is over; `overdue_since`: the same of the last whole
walk, which ended at `walked_at`."""

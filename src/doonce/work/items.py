"""Rows of work items and of their ready hints: reading, locking, putting back, dropping.

Everybody locks items in order of their ids (PROTOCOL T4). A ready row only says *look at this item at this time*: it
may be missing, doubled or out of date, and the decision is always taken on the locked item (W7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Batch, Dialect, DialectName, Statement
from doonce.db.transaction import Txn, clock, fetch, fetch_then_clock, fetch_then_steady_clock, insert_many
from doonce.work.model import Claimed, Item, Scope, Shelf, State, shelf_of
from doonce.work.tables import work_item, work_ready

READ_COLUMNS = (
    "id", "family", "org", "installation", "subject_kind", "subject_id", "view_digest", "capability_version",
    "source_lane", "source_position", "target_lane", "target_position", "state", "run_after", "attempts", "claims",
    "failures", "first_failed_at", "deferrals", "first_deferred_at", "expiries", "alone", "lease_owner",
    "lease_token", "lease_until", "ownership_epoch", "cancel_requested", "predecessor",
)  # fmt: skip

MOVING_COLUMNS = ("id", *READ_COLUMNS[READ_COLUMNS.index("state") : READ_COLUMNS.index("predecessor")])
"""What may change after an item is made: all that the holder of a claim has to read again."""

READY_COLUMNS = tuple(column.name for column in work_ready.c)
ReadyKey = tuple[str, int, str, str, int, str]
ReadyRow = tuple[str, int, str, str, int, str, str | None, str | None]
READY_KEY = ("family", "shelf", "org", "installation", "due", "item_id")


def now_expression(dialect: Dialect) -> sa.ColumnElement[int]:
    """The database's time inside a statement: for finding candidates only, never for a fence (PROTOCOL T3)."""
    if dialect.name is DialectName.POSTGRESQL:
        return sa.literal_column(
            "(date_part('epoch', statement_timestamp()) * 1000000)::bigint", sa.BigInteger()
        )
    if dialect.name is DialectName.MYSQL:
        return sa.literal_column("CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)", sa.BigInteger())
    return sa.literal_column(
        "(SELECT max(now_us, doonce_host_us()) FROM doonce_clock WHERE id = 1)", sa.BigInteger()
    )


def _lock_items(dialect: Dialect, *, skip_locked: bool) -> sa.Select[Any]:
    return _plain_items(dialect).order_by(work_item.c.id).with_for_update(skip_locked=skip_locked)


def _lock_claimed(dialect: Dialect) -> sa.Select[Any]:
    return _plain_items(dialect, MOVING_COLUMNS).order_by(work_item.c.id).with_for_update()


def _plain_items(dialect: Dialect, columns: tuple[str, ...] = READ_COLUMNS) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(*[work_item.c[name] for name in columns]).where(
        work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _ready_keys(dialect: Dialect) -> Batch:
    kinds: dict[str, sa.types.TypeEngine[Any]] = dict.fromkeys(READY_KEY, IDENTITY)
    return dialect.batch("keys", **(kinds | {"shelf": COUNT, "due": MICROSECONDS}))


def _drop_ready(dialect: Dialect) -> sa.Delete:
    keys = _ready_keys(dialect)
    if dialect.name is not DialectName.SQLITE:
        return sa.delete(work_ready).where(*[work_ready.c[name] == keys.c[name] for name in READY_KEY])
    return sa.delete(work_ready).where(
        sa.tuple_(*[work_ready.c[name] for name in READY_KEY]).in_(
            sa.select(*[keys.c[name] for name in READY_KEY]).select_from(keys.source)
        )
    )


def _made_at(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(work_item.c.id, work_item.c.created_at).where(
        work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


MADE_AT = Statement("work.made_at", _made_at)
PLAIN_ITEMS = Statement("work.plain_items", _plain_items)
LOCK_ITEMS = Statement("work.lock_items", lambda dialect: _lock_items(dialect, skip_locked=False))
LOCK_CLAIMED = Statement("work.lock_claimed", _lock_claimed)
LOCK_FREE_ITEMS = Statement("work.lock_free_items", lambda dialect: _lock_items(dialect, skip_locked=True))
DROP_READY = Statement("work.drop_ready", _drop_ready)


_STATES = {state.value: state for state in State}


def read_item(row: Iterable[Any]) -> Item:
    """The item of a row that has `READ_COLUMNS`, in their order."""
    v = tuple(row)
    where, counts, lease = v[4:12], v[13:21], v[22:26]
    return Item(
        v[0], v[1], Scope(v[2], v[3]), *where, _STATES[v[12]], *counts, v[21] == 1, *lease, v[26] == 1, v[27]
    )  # type: ignore[call-arg]  # the slices are as long as READ_COLUMNS says


def made_at(ids: Iterable[str]) -> Txn[dict[str, int]]:
    """When these items were made, which never changes."""
    rows = yield from fetch(MADE_AT, ids=[(item_id,) for item_id in sorted(set(ids))])
    return {row[0]: row[1] for row in rows}


def _moved(item: Item, row: Iterable[Any]) -> Item:
    """An item with what has changed since it was claimed, from a row that has `MOVING_COLUMNS`, in their order."""
    v = tuple(row)
    counts, lease = v[2:10], v[11:15]
    return Item(  # type: ignore[call-arg]  # the slices are as long as MOVING_COLUMNS says
        item.id, item.family, item.scope, item.subject_kind, item.subject_id, item.view_digest,
        item.capability_version, item.source_lane, item.source_position, item.target_lane, item.target_position,
        _STATES[v[1]], *counts, v[10] == 1, *lease, v[15] == 1, item.predecessor,
    )  # fmt: skip


def lock_items(ids: Iterable[str]) -> Txn[dict[str, Item]]:
    """Lock these items in order of their ids; a missing one is absent from the result."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = yield from fetch(LOCK_ITEMS, ids=[(item_id,) for item_id in wanted])
    return {row[0]: read_item(row) for row in rows}


def lock_claimed(claims: Iterable[Claimed]) -> Txn[dict[str, Item]]:
    """Lock the items of these claims in order of their ids, and read again what may have changed of them."""
    known = {claimed.item.id: claimed.item for claimed in claims}
    if not known:
        return {}
    rows = yield from fetch(LOCK_CLAIMED, ids=[(item_id,) for item_id in sorted(known)])
    return {row[0]: _moved(known[row[0]], row) for row in rows}


def lock_claimed_then_clock(claims: Iterable[Claimed]) -> Txn[tuple[dict[str, Item], int]]:
    """The same, and the time after the last lock (PROTOCOL T3)."""
    known = {claimed.item.id: claimed.item for claimed in claims}
    if not known:
        return {}, (yield from clock())
    rows, now_us = yield from fetch_then_clock(LOCK_CLAIMED, ids=[(item_id,) for item_id in sorted(known)])
    return {row[0]: _moved(known[row[0]], row) for row in rows}, now_us


def lock_items_then_clock(ids: Iterable[str]) -> Txn[tuple[dict[str, Item], int]]:
    """The same, and the time after the last lock (PROTOCOL T3)."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}, (yield from clock())
    rows, now_us = yield from fetch_then_clock(LOCK_ITEMS, ids=[(item_id,) for item_id in wanted])
    return {row[0]: read_item(row) for row in rows}, now_us


def lock_free_items_then_clock(ids: Iterable[str]) -> Txn[tuple[dict[str, Item], int | None]]:
    """Lock those of these items that nobody else has locked; the others are absent. The time is None after a jump."""
    wanted = [(item_id,) for item_id in sorted(set(ids))]
    rows, now_us = yield from fetch_then_steady_clock(LOCK_FREE_ITEMS, ids=wanted)
    return {row[0]: read_item(row) for row in rows}, now_us


def topic(family: str) -> str:
    """What a family's claimers wait on."""
    return f"work:{family}"


def ready_row(item: Item, due: int, *, alone: bool = False) -> ReadyRow:
    """An item's hint at one time. It names the lanes, so that a claim can lock them before the item."""
    scope = item.scope
    shelf = Shelf.ALONE.value if alone else shelf_of(item.capability_version)
    return (
        item.family, shelf, scope.org, scope.installation, due, item.id, item.source_lane, item.target_lane,
    )  # fmt: skip


def add_ready(rows: Iterable[ReadyRow]) -> Txn[None]:
    """Put hints there that are not there yet."""
    yield from insert_many(
        work_ready, READY_COLUMNS, sorted(rows, key=lambda row: row[:6]), skip_conflicts=True
    )


def drop_ready(keys: Iterable[ReadyKey]) -> Txn[None]:
    """Take away hints that this transaction has locked.

    Others are left to the claimer who meets them. Waiting for a hint that a claimer has locked could be a deadlock: he
    may be waiting for a lane that this transaction holds.
    """
    listed = list(keys)
    if listed:
        yield from fetch(DROP_READY, keys=listed)

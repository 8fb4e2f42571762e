"""The sweep: puts back hints that are missing, so that losing one delays work instead of stranding it (PROTOCOL W7)."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, notify, steady_clock
from doonce.work import lanes as lane_store
from doonce.work.items import READ_COLUMNS, add_ready, read_item, ready_row, topic
from doonce.work.model import WAITING, Item, State
from doonce.work.tables import work_claimer, work_item

CLAIMER_KEPT_US = 86_400_000_000
"""How long the last claim of a process is remembered: far longer than any transaction is run again."""


def _sweep(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(*[work_item.c[name] for name in READ_COLUMNS])
        .where(work_item.c.id > sa.bindparam("after", type_=IDENTITY))
        .order_by(work_item.c.id)
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _old_claimers(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(work_claimer.c.owner, work_claimer.c.family).where(
        work_claimer.c.claimed_at < sa.bindparam("before_us", type_=MICROSECONDS)
    )


def _forget_claimers(dialect: Dialect) -> sa.Delete:
    old = dialect.batch("old", owner=IDENTITY, family=IDENTITY)
    keys = sa.select(old.c.owner, old.c.family).select_from(old.source)
    return sa.delete(work_claimer).where(
        sa.tuple_(work_claimer.c.owner, work_claimer.c.family).in_(keys),
        work_claimer.c.claimed_at < sa.bindparam("before_us", type_=MICROSECONDS),
    )


SWEEP = Statement("work.sweep", _sweep)
OLD_CLAIMERS = Statement("work.old_claimers", _old_claimers)
FORGET_CLAIMERS = Statement("work.forget_claimers", _forget_claimers)


def sweep(after: str, rows_max: int) -> Txn[str]:
    """Put back ready rows that are missing, looking at `rows_max` items; returns where to go on ("" at the end).

    Spare rows it leaves lose the compare-and-swap.
    """
    rows = yield from fetch(SWEEP, after=after, rows=rows_max)
    items = [read_item(row) for row in rows]
    waiting = [item for item in items if item.state in WAITING]
    sources = {item.source_lane for item in waiting if item.source_lane is not None}
    targets = {item.target_lane for item in waiting if item.target_lane is not None}
    held = yield from lane_store.lock(sources | targets)
    now_us = yield from clock()
    yield from lane_store.promote(held, sources, targets, now_us)
    ready = [ready_row(item, item.run_after) for item in waiting if _laneless(item)]
    ready += [ready_row(item, item.lease_until + 1) for item in items if item.state is State.PROCESSING]
    yield from add_ready(ready)
    yield from lane_store.save(held.values())
    yield from notify(topic(row[0]) for row in ready if row[4] <= now_us)
    if after == "" and (steady_us := (yield from steady_clock())) is not None:
        yield from _forget(steady_us - CLAIMER_KEPT_US)
    return items[-1].id if len(items) == rows_max else ""


def _forget(before_us: int) -> Txn[None]:
    """Looked for without a lock: a scan that locks would wait for every claim under way."""
    rows = yield from fetch(OLD_CLAIMERS, before_us=before_us)
    if rows:
        yield from fetch(FORGET_CLAIMERS, old=[(row[0], row[1]) for row in rows], before_us=before_us)


def _laneless(item: Item) -> bool:
    return item.source_lane is None and item.target_lane is None

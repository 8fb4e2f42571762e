"""History: ended work items in a table of their own, where no claim, sweep or update ever comes by.

An item is in one of two tables, and moves once, from the working one to history, in a transaction that holds its lock.
So whoever looks in the working table first and in history then has seen it, whatever moves meanwhile. History is never
changed: a plain read of it is as good as a locked one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, fetch, fetch_then_steady_clock, insert_many, steady_clock
from doonce.work.items import PLAIN_ITEMS, READ_COLUMNS, lock_items, read_item
from doonce.work.model import TERMINAL, Item, State
from doonce.work.tables import work_item, work_item_history, work_retention

MOVED: Final = tuple(column.name for column in work_item_history.c if column.name != "moved_at")
OLD_COLUMNS: Final = (
    "id", "family", "subject_kind", "subject_id", "source_lane", "source_position", "target_lane", "target_position",
    "state", "finished_at",
)  # fmt: skip
WALK_COLUMNS: Final = tuple(column.name for column in work_retention.c)
ENDED: Final = sorted(state.value for state in TERMINAL)
NUMBERS: Final = frozenset({"run_after", "alone", "lease_until", "cancel_requested"})
"""What an item has only while it works, and history does not keep: read as 0; the rest of it as nothing."""


def _page(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(*[work_item.c[name] for name in OLD_COLUMNS])
        .where(
            work_item.c.id > sa.bindparam("after", type_=IDENTITY),
            work_item.c.id < sa.bindparam("before", type_=IDENTITY),
        )
        .order_by(work_item.c.id)
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _lock_old(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(*[work_item.c[name] for name in OLD_COLUMNS])
        .where(work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(work_item.c.id)
        .with_for_update(skip_locked=True)
    )


def _keep(dialect: Dialect) -> sa.Insert:
    ids = dialect.batch("ids", id=IDENTITY)
    rows = sa.select(
        *[work_item.c[name] for name in MOVED], sa.bindparam("now_us", type_=MICROSECONDS).label("moved_at")
    ).where(work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
    return sa.insert(work_item_history).from_select([*MOVED, "moved_at"], rows, include_defaults=False)


def _leave(dialect: Dialect) -> sa.Delete:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.delete(work_item).where(work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))


def _as_items() -> list[sa.ColumnElement[Any]]:
    """What `read_item` reads, of a row of history."""
    kept = work_item_history.c
    return [
        kept[name] if name in kept else sa.literal_column("0" if name in NUMBERS else "NULL").label(name)
        for name in READ_COLUMNS
    ]


def _in_history(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(*_as_items()).where(
        work_item_history.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


def _lock_in_history(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(*_as_items())
        .where(work_item_history.c.id == sa.bindparam("item", type_=IDENTITY))
        .with_for_update()
    )


def _successor(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(*_as_items()).where(
        work_item_history.c.predecessor == sa.bindparam("predecessor", type_=IDENTITY)
    )


def _under_way(dialect: Dialect) -> sa.Select[Any]:
    subjects = dialect.batch("subjects", id=IDENTITY)
    return sa.select(work_item.c.subject_id).where(
        work_item.c.subject_id.in_(sa.select(subjects.c.id).select_from(subjects.source)),
        work_item.c.state.not_in(ENDED),
    )


def _walk(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(work_retention).where(work_retention.c.name == sa.bindparam("walk", type_=IDENTITY))


def _save_walk(dialect: Dialect) -> sa.Update:
    return (
        sa.update(work_retention)
        .where(work_retention.c.name == sa.bindparam("walk", type_=IDENTITY))
        .values(
            passed=sa.bindparam("now_passed", type_=IDENTITY),
            moved=work_retention.c.moved + sa.bindparam("more", type_=COUNT),
            seen_since=sa.bindparam("now_seen", type_=MICROSECONDS),
            overdue_since=sa.bindparam("now_overdue", type_=MICROSECONDS),
            walked_at=sa.bindparam("now_walked", type_=MICROSECONDS),
        )
    )


PAGE = Statement("work.page_of_old", _page)
LOCK_OLD = Statement("work.lock_old", _lock_old)
KEEP = Statement("work.keep_in_history", _keep)
LEAVE = Statement("work.leave_for_history", _leave)
IN_HISTORY = Statement("work.in_history", _in_history)
LOCK_IN_HISTORY = Statement("work.lock_in_history", _lock_in_history)
HISTORY_SUCCESSOR = Statement("work.successor_in_history", _successor)
UNDER_WAY = Statement("work.under_way", _under_way)
WALK = Statement("work.walk", _walk)
LOCK_WALK = Statement("work.lock_walk", lambda dialect: _walk(dialect).with_for_update())
SAVE_WALK = Statement("work.save_walk", _save_walk)


class Old(Record, frozen=True):
    """A row that a walk comes by: who it is, where it stood in its lanes, and when it ended."""

    id: str
    family: str
    subject_kind: str
    subject_id: str
    source_lane: str | None
    source_position: int | None
    target_lane: str | None
    target_position: int | None
    state: State
    finished_at: int | None

    def places(self) -> list[tuple[str, int]]:
        """Its places in lanes; most have been passed."""
        pairs = ((self.source_lane, self.source_position), (self.target_lane, self.target_position))
        return [(lane, position) for lane, position in pairs if lane is not None and position is not None]


class Walk(Record, frozen=True):
    """How far the walk over one table has come; see `work_retention`."""

    name: str
    passed: str
    moved: int
    seen_since: int | None
    overdue_since: int | None
    walked_at: int | None


def old_page(after: str, before: str, rows_max: int) -> Txn[list[Old]]:
    """Items by id, whatever their state. Ids are older than what they name, so the old ones are at the front."""
    return [_old(row) for row in (yield from fetch(PAGE, after=after, before=before, rows=rows_max))]


def lock_old(ids: Iterable[str]) -> Txn[tuple[list[Old], int | None]]:
    """Those of these items that nobody else has locked, locked; and the time after that, None after a jump (C1)."""
    wanted = [(one,) for one in sorted(set(ids))]
    if not wanted:
        return [], (yield from steady_clock())
    rows, now_us = yield from fetch_then_steady_clock(LOCK_OLD, ids=wanted)
    return [_old(row) for row in rows], now_us


def _old(row: Row) -> Old:
    return Old(
        id=row["id"],
        family=row["family"],
        subject_kind=row["subject_kind"],
        subject_id=row["subject_id"],
        source_lane=row["source_lane"],
        source_position=row["source_position"],
        target_lane=row["target_lane"],
        target_position=row["target_position"],
        state=State(row["state"]),
        finished_at=row["finished_at"],
    )


def move(ids: Sequence[str], now_us: int) -> Txn[None]:
    """Move locked, ended items into history."""
    if ids:
        yield from fetch(KEEP, ids=[(one,) for one in ids], now_us=now_us)
        yield from fetch(LEAVE, ids=[(one,) for one in ids])


def subjects_under_way(subjects: Iterable[str]) -> Txn[set[str]]:
    """Those of these subjects that have work which has not ended."""
    wanted = [(one,) for one in sorted(set(subjects))]
    return {row[0] for row in (yield from fetch(UNDER_WAY, subjects=wanted))} if wanted else set()


def find(ids: Iterable[str]) -> Txn[dict[str, Item]]:
    """Items that have moved. Without what only a running item has."""
    wanted = [(one,) for one in sorted(set(ids))]
    rows = (yield from fetch(IN_HISTORY, ids=wanted)) if wanted else []
    return {row[0]: read_item(row) for row in rows}


def plain_anywhere(ids: Iterable[str]) -> Txn[dict[str, Item]]:
    """Items without a lock, wherever they are."""
    wanted = sorted(set(ids))
    rows = (yield from fetch(PLAIN_ITEMS, ids=[(one,) for one in wanted])) if wanted else []
    found = {row[0]: read_item(row) for row in rows}
    return found | (yield from find(one for one in wanted if one not in found))


def lock_anywhere(ids: Iterable[str]) -> Txn[dict[str, Item]]:
    """Items locked, wherever they are; one that is in history can no longer change anyway."""
    wanted = sorted(set(ids))
    found = yield from lock_items(wanted)
    return found | (yield from find(one for one in wanted if one not in found))


def lock_moved(item_id: str) -> Txn[Item | None]:
    """An item of history, locked: whoever makes its successor holds it, as it would hold the item itself."""
    rows = yield from fetch(LOCK_IN_HISTORY, item=item_id)
    return read_item(rows[0]) if rows else None


def moved_successor(item_id: str) -> Txn[Item | None]:
    """The successor of an item, if that has moved."""
    rows = yield from fetch(HISTORY_SUCCESSOR, predecessor=item_id)
    return read_item(rows[0]) if rows else None


def lock_walk(name: str) -> Txn[Walk]:
    """The walk over one table, locked: two passes are one after the other, and each goes on where the other was."""
    rows = yield from fetch(LOCK_WALK, walk=name)
    if not rows:
        first = (name, "", 0, None, None, None)
        yield from insert_many(work_retention, WALK_COLUMNS, [first], skip_conflicts=True)
        rows = yield from fetch(LOCK_WALK, walk=name)
    return Walk(*rows[0])


def read_walk(name: str) -> Txn[Walk | None]:
    """The same without a lock; None before the first pass."""
    rows = yield from fetch(WALK, walk=name)
    return Walk(*rows[0]) if rows else None


def save_walk(walk: Walk, more: int) -> Txn[None]:
    """Write where a locked walk stands now, and that it has moved `more` rows."""
    yield from fetch(
        SAVE_WALK,
        walk=walk.name,
        now_passed=walk.passed,
        more=more,
        now_seen=walk.seen_since,
        now_overdue=walk.overdue_since,
        now_walked=walk.walked_at,
    )

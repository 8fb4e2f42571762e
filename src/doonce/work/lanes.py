"""Lanes: a source lane orders (head of line only), a target lane excludes (one at a time per remote object).

Everything here runs with the lane's row locked (PROTOCOL L1): then a finish and an accept cannot miss each other, and
two claimers cannot take one lane. `nominee` is the item of a lane that has a ready row: in a source lane its head.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, fetch_then_clock, insert_many, notify
from doonce.work.items import ReadyRow, add_ready, topic
from doonce.work.model import WAITING, LanePolicy, State, shelf_of
from doonce.work.tables import work_item, work_lane, work_lane_entry

LANE_COLUMNS = tuple(column.name for column in work_lane.c)
ENTRY_COLUMNS = tuple(column.name for column in work_lane_entry.c)


@dataclass(slots=True)
class Lane:
    """A locked lane; `changed` says that its row has to be written."""

    lane: str
    policy: LanePolicy
    tail: int
    holder: str | None
    hold_until: int
    nominee: str | None
    nominee_due: int
    changed: bool = False

    def draw(self) -> int:
        """The next position (PROTOCOL L2)."""
        self.tail += 1
        self.changed = True
        return self.tail

    def nominate(self, item_id: str | None, due: int) -> None:
        """Say whose turn it is."""
        self.nominee, self.nominee_due, self.changed = item_id, due, True

    def hold(self, holder: str | None, hold_until: int | None = None) -> None:
        """Give the lane to an item or an unresolved attempt, or free it, from `hold_until` on."""
        self.holder, self.changed = holder, True
        if hold_until is not None:
            self.hold_until = max(self.hold_until, hold_until)

    def admits(self, item_id: str, now_us: int) -> bool:
        """Whether this item may be processed now."""
        return self.holder == item_id or (self.holder is None and self.hold_until <= now_us)


def _lock(dialect: Dialect) -> sa.Select[Any]:
    lanes = dialect.batch("lanes", lane=IDENTITY)
    return (
        sa.select(work_lane)
        .where(work_lane.c.lane.in_(sa.select(lanes.c.lane).select_from(lanes.source)))
        .order_by(work_lane.c.lane)
        .with_for_update()
    )


def _save(dialect: Dialect) -> sa.Update:
    lanes = dialect.batch(
        "lanes",
        lane=IDENTITY,
        tail=COUNT,
        holder=IDENTITY,
        hold_until=MICROSECONDS,
        nominee=IDENTITY,
        due=MICROSECONDS,
    )
    return (
        sa.update(work_lane)
        .where(work_lane.c.lane == lanes.c.lane)
        .values(
            tail=lanes.c.tail,
            holder=lanes.c.holder,
            hold_until=lanes.c.hold_until,
            nominee=lanes.c.nominee,
            nominee_due=lanes.c.due,
        )
    )


def _drop_entries(dialect: Dialect) -> sa.Delete:
    entries = dialect.batch("entries", lane=IDENTITY, position=COUNT)
    return sa.delete(work_lane_entry).where(
        sa.tuple_(work_lane_entry.c.lane, work_lane_entry.c.position).in_(
            sa.select(entries.c.lane, entries.c.position).select_from(entries.source)
        )
    )


def _set_entries(dialect: Dialect) -> sa.Update:
    entries = dialect.batch("entries", lane=IDENTITY, position=COUNT, open=COUNT, due=MICROSECONDS)
    return (
        sa.update(work_lane_entry)
        .where(work_lane_entry.c.lane == entries.c.lane, work_lane_entry.c.position == entries.c.position)
        .values(open=entries.c.open, due=entries.c.due)
    )


def _inherit_entries(dialect: Dialect) -> sa.Update:
    entries = dialect.batch("entries", lane=IDENTITY, position=COUNT, item_id=IDENTITY, due=MICROSECONDS)
    return (
        sa.update(work_lane_entry)
        .where(work_lane_entry.c.lane == entries.c.lane, work_lane_entry.c.position == entries.c.position)
        .values(item_id=entries.c.item_id, due=entries.c.due)
    )


def _next(dialect: Dialect, *, target: bool) -> sa.Select[Any]:
    lanes = dialect.batch("lanes", lane=IDENTITY)
    entry = work_lane_entry
    first = sa.select(entry.c.item_id).where(entry.c.lane == lanes.c.lane).correlate(lanes.source).limit(1)
    if target:
        first = first.where(entry.c.open == 1).order_by(entry.c.open, entry.c.due, entry.c.position)
    else:
        first = first.order_by(entry.c.position)
    head = sa.select(lanes.c.lane.label("lane"), first.scalar_subquery().label("item_id"))
    chosen = dialect.apart(head).subquery("chosen")
    item = work_item
    return sa.select(
        chosen.c.lane,
        item.c.id,
        item.c.family,
        item.c.capability_version,
        item.c.org,
        item.c.installation,
        item.c.state,
        item.c.run_after,
        item.c.source_lane,
        item.c.target_lane,
        item.c.target_position,
    ).select_from(chosen.join(item, item.c.id == chosen.c.item_id))


def _entries_at(dialect: Dialect) -> sa.Select[Any]:
    entries = dialect.batch("entries", lane=IDENTITY, position=COUNT)
    entry = work_lane_entry
    return sa.select(entry.c.lane, entry.c.position, entry.c.item_id).where(
        sa.tuple_(entry.c.lane, entry.c.position).in_(
            sa.select(entries.c.lane, entries.c.position).select_from(entries.source)
        )
    )


LOCK = Statement("lanes.lock", _lock)
SAVE = Statement("lanes.save", _save)
DROP_ENTRIES = Statement("lanes.drop_entries", _drop_entries)
ENTRIES_AT = Statement("lanes.entries_at", _entries_at)
SET_ENTRIES = Statement("lanes.set_entries", _set_entries)
INHERIT_ENTRIES = Statement("lanes.inherit_entries", _inherit_entries)
NEXT_IN_SOURCE = Statement("lanes.next_in_source", lambda dialect: _next(dialect, target=False))
NEXT_IN_TARGET = Statement("lanes.next_in_target", lambda dialect: _next(dialect, target=True))


def lock(names: Iterable[str | None]) -> Txn[dict[str, Lane]]:
    """Lock these lanes in order of their names."""
    wanted = sorted({name for name in names if name is not None})
    if not wanted:
        return {}
    rows = yield from fetch(LOCK, lanes=[(name,) for name in wanted])
    return {row["lane"]: _lane(row) for row in rows}


def _lane(row: Row) -> Lane:
    return Lane(
        lane=row["lane"],
        policy=LanePolicy(row["policy"]),
        tail=row["tail"],
        holder=row["holder"],
        hold_until=row["hold_until"],
        nominee=row["nominee"],
        nominee_due=row["nominee_due"],
    )


def make_and_lock(policies: dict[str, LanePolicy]) -> Txn[dict[str, Lane]]:
    """Lock these lanes, making those that do not exist yet. A lane keeps the policy it was made with."""
    yield from _make(policies)
    return (yield from lock(policies))


def make_and_lock_then_clock(policies: dict[str, LanePolicy]) -> Txn[tuple[dict[str, Lane], int]]:
    """The same, and the time after the last lock (PROTOCOL T3)."""
    yield from _make(policies)
    if not policies:
        return {}, (yield from clock())
    rows, now_us = yield from fetch_then_clock(LOCK, lanes=[(name,) for name in sorted(policies)])
    return {row["lane"]: _lane(row) for row in rows}, now_us


def _make(policies: dict[str, LanePolicy]) -> Txn[None]:
    yield from insert_many(
        work_lane,
        LANE_COLUMNS,
        [(name, policies[name].value, 0, None, 0, None, 0) for name in sorted(policies)],
        skip_conflicts=True,
    )


def save(lanes: Iterable[Lane]) -> Txn[None]:
    """Write the lanes that changed."""
    changed = [
        (lane.lane, lane.tail, lane.holder, lane.hold_until, lane.nominee, lane.nominee_due)
        for lane in lanes
        if lane.changed
    ]
    if changed:
        yield from fetch(SAVE, lanes=changed)


def drop_entries(entries: Iterable[tuple[str, int]]) -> Txn[None]:
    """Take ended items out of their lanes."""
    listed = list(entries)
    if listed:
        yield from fetch(DROP_ENTRIES, entries=listed)


def entries_at(positions: Iterable[tuple[str, int]]) -> Txn[dict[tuple[str, int], str]]:
    """Which item stands at these places of locked lanes; a place that the lane has passed is absent."""
    listed = list(positions)
    if not listed:
        return {}
    rows = yield from fetch(ENTRIES_AT, entries=listed)
    return {(row["lane"], row["position"]): row["item_id"] for row in rows}


def inherit_entries(entries: Iterable[tuple[Any, ...]]) -> Txn[None]:
    """Give (lane, position)'s entry to a successor, with its due time."""
    listed = list(entries)
    if listed:
        yield from fetch(INHERIT_ENTRIES, entries=listed)


def set_entries(entries: Iterable[tuple[str, int, int, int]]) -> Txn[None]:
    """Set (lane, position)'s openness and due time."""
    listed = list(entries)
    if listed:
        yield from fetch(SET_ENTRIES, entries=listed)


def promote(lanes: dict[str, Lane], sources: set[str], targets: set[str], now_us: int) -> Txn[None]:
    """Make the next item of each lane ready; harmless when it already is, so also the way to rebuild a lane.

    The head of a source lane opens its entry in its target lane without locking that lane: a ready row for a lane that
    turns out to be held is dropped at the claim, and the lane's release then finds the entry open.
    """
    ready: set[ReadyRow] = set()
    if sources:
        ready |= yield from _promote_sources([lanes[name] for name in sorted(sources)])
    free = [lanes[name] for name in sorted(targets) if lanes[name].holder is None]
    if free:
        ready |= yield from _promote_targets(free)
    yield from add_ready(ready)
    yield from notify(topic(row[0]) for row in ready if row[4] <= now_us)


def _promote_sources(lanes: list[Lane]) -> Txn[set[ReadyRow]]:
    rows = yield from fetch(NEXT_IN_SOURCE, lanes=[(lane.lane,) for lane in lanes])
    heads = {row["lane"]: row for row in rows}
    ready: set[ReadyRow] = set()
    opened: list[tuple[str, int, int, int]] = []
    for lane in lanes:
        head = heads.get(lane.lane)
        lane.nominate(head["id"] if head else None, head["run_after"] if head else 0)
        if head is None or State(head["state"]) not in WAITING:
            continue
        if head["target_lane"] is not None:
            opened.append((head["target_lane"], head["target_position"], 1, head["run_after"]))
        ready.add(_ready(head, head["run_after"]))
    yield from set_entries(opened)
    return ready


def _promote_targets(lanes: list[Lane]) -> Txn[set[ReadyRow]]:
    rows = yield from fetch(NEXT_IN_TARGET, lanes=[(lane.lane,) for lane in lanes])
    chosen = {row["lane"]: row for row in rows}
    ready: set[ReadyRow] = set()
    for lane in lanes:
        row = chosen.get(lane.lane)
        due = max(row["run_after"], lane.hold_until) if row else 0
        lane.nominate(row["id"] if row else None, due)
        if row is not None and State(row["state"]) in WAITING:
            ready.add(_ready(row, due))
    return ready


def _ready(row: Row, due: int) -> ReadyRow:
    return (
        row["family"], shelf_of(row["capability_version"]), row["org"], row["installation"], due, row["id"],
        row["source_lane"], row["target_lane"],
    )  # fmt: skip

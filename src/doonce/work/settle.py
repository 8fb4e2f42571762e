"""How work ends or goes back: settlements of live claims, cancellation, the release of a blocked lane.

`apply` is for transactions of other owners that settle an item together with their own facts: they hold the lanes and
the items already. `settle` is the whole transaction for families that have no facts of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS, TEXT
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch, notify
from doonce.ownership import store as ownership
from doonce.work import lanes as lane_store
from doonce.work.items import (
    PLAIN_ITEMS,
    ReadyRow,
    add_ready,
    lock_claimed_then_clock,
    lock_items_then_clock,
    read_item,
    ready_row,
    topic,
)
from doonce.work.lanes import Lane
from doonce.work.model import (
    TERMINAL,
    TRANSITIONS,
    WAITING,
    Claimed,
    Event,
    Item,
    LanePolicy,
    Settled,
    Settlement,
    State,
    judge_settlement,
)
from doonce.work.tables import work_item


def _settle(dialect: Dialect) -> sa.Update:
    kinds: dict[str, sa.types.TypeEngine[Any]] = {
        "state": IDENTITY, "run_after": MICROSECONDS, "claims": COUNT, "failures": COUNT,
        "first_failed_at": MICROSECONDS, "deferrals": COUNT, "first_deferred_at": MICROSECONDS, "expiries": COUNT,
        "failure_class": IDENTITY, "summary": IDENTITY, "finished_at": MICROSECONDS,
    }  # fmt: skip
    ends = dialect.batch("ends", id=IDENTITY, **kinds)
    return (
        sa.update(work_item)
        .where(work_item.c.id == ends.c.id)
        .values(
            alone=0,
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
            **{name: ends.c[name] for name in kinds},
        )
    )


def _succeed(dialect: Dialect) -> sa.Update:
    ends = dialect.batch("ends", id=IDENTITY, summary=IDENTITY)
    return (
        sa.update(work_item)
        .where(work_item.c.id == ends.c.id)
        .values(
            state=sa.literal_column(f"'{State.SUCCEEDED.value}'"),
            expiries=sa.literal_column("0"),
            alone=sa.literal_column("0"),
            failure_class=sa.null(),
            summary=ends.c.summary,
            finished_at=sa.bindparam("now_us", type_=MICROSECONDS),
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _count_dispatch(dialect: Dialect) -> sa.Update:
    marks = dialect.batch("marks", id=IDENTITY, until_us=MICROSECONDS)
    return (
        sa.update(work_item)
        .where(work_item.c.id == marks.c.id)
        .values(
            attempts=work_item.c.attempts + 1,
            lease_until=marks.c.until_us,
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _request_cancel(dialect: Dialect) -> sa.Update:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.update(work_item)
        .where(work_item.c.id == ids.c.id)
        .values(cancel_requested=1, updated_at=sa.bindparam("now_us", type_=MICROSECONDS))
    )


def _advance(dialect: Dialect) -> sa.Update:
    due = dialect.batch("due", id=IDENTITY)
    return (
        sa.update(work_item)
        .where(work_item.c.id == due.c.id)
        .values(
            run_after=sa.bindparam("now_us", type_=MICROSECONDS),
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _for_subject(dialect: Dialect) -> sa.Select[Any]:
    return sa.select(work_item.c.id, work_item.c.source_lane, work_item.c.target_lane).where(
        work_item.c.subject_id == sa.bindparam("subject_id", type_=IDENTITY),
        work_item.c.family == sa.bindparam("family", type_=IDENTITY),
    )


def _note(dialect: Dialect) -> sa.Update:
    return (
        sa.update(work_item)
        .where(work_item.c.id == sa.bindparam("item", type_=IDENTITY))
        .values(
            summary=sa.func.coalesce(work_item.c.summary, "", type_=TEXT) + sa.bindparam("note", type_=TEXT)
        )
    )


NOTE = Statement("work.note", _note)
SETTLE = Statement("work.settle", _settle)
SUCCEED = Statement("work.succeed", _succeed)
COUNT_DISPATCH = Statement("work.count_dispatch", _count_dispatch)
REQUEST_CANCEL = Statement("work.request_cancel", _request_cancel)
ADVANCE = Statement("work.advance", _advance)
FOR_SUBJECT = Statement("work.for_subject", _for_subject)


def lanes_of(claims: Iterable[Claimed]) -> set[str]:
    """The lanes that settling these claims touches."""
    return {
        name
        for claimed in claims
        for name in (claimed.item.source_lane, claimed.item.target_lane)
        if name is not None
    }


def apply(
    settlements: Sequence[Settlement], items: dict[str, Item], held: dict[str, Lane], now_us: int
) -> Txn[list[Settled]]:
    """Settle claims whose items and lanes this transaction has locked, and make ready what waited behind them.

    Each settlement is judged on its own: a stale one changes nothing and says so. The caller saves the lanes.
    """
    outcomes = [judge_settlement(items.get(s.claimed.item.id), s, now_us) for s in settlements]
    done = [s for s, outcome in zip(settlements, outcomes, strict=True) if outcome is Settled.DONE]
    if not done:
        return outcomes
    left = _leave_lanes(done, items, held, now_us)
    plain = [s for s in done if _plainly_succeeds(s)]
    others = [s for s in done if not _plainly_succeeds(s)]
    if plain:
        yield from fetch(SUCCEED, ends=[(s.claimed.item.id, s.summary) for s in plain], now_us=now_us)
    if others:
        yield from fetch(
            SETTLE, ends=[_end(items[s.claimed.item.id], s, now_us) for s in others], now_us=now_us
        )
    yield from lane_store.drop_entries(left.gone)
    yield from lane_store.set_entries(left.waiting)
    yield from add_ready(left.ready)
    yield from lane_store.promote(held, left.sources, left.targets, now_us)
    yield from notify(topic(row[0]) for row in left.ready if row[4] <= now_us)
    return outcomes


def settle(settlements: Sequence[Settlement], deployment: str) -> Txn[list[Settled]]:
    """Settle claims that have no facts of another owner beside them. A rerun after an unknown commit is harmless."""
    claims = [s.claimed for s in settlements]
    owners = yield from ownership.fence(claimed.item.family for claimed in claims)
    held = yield from lane_store.lock(lanes_of(claims))
    items, now_us = yield from lock_claimed_then_clock(claims)
    allowed = [
        s
        for s in settlements
        if (owner := owners.get(s.claimed.item.family)) is not None
        and owner.lets_finish(deployment, s.claimed.epoch)
    ]
    outcomes = yield from apply(allowed, items, held, now_us)
    yield from lane_store.save(held.values())
    by_item = {s.claimed.item.id: outcome for s, outcome in zip(allowed, outcomes, strict=True)}
    return [by_item.get(s.claimed.item.id, Settled.STALE) for s in settlements]


def _end(item: Item, settlement: Settlement, now_us: int) -> tuple[Any, ...]:
    event = settlement.event
    state = TRANSITIONS[(item.state, event)]
    deferred = event is Event.DEFER
    return (
        item.id,
        state.value,
        _next_run(item, settlement, now_us),
        item.claims - int(event is Event.HAND_BACK),
        item.failures + int(settlement.failed),
        (item.first_failed_at or now_us) if settlement.failed else item.first_failed_at,
        item.deferrals + int(deferred),
        (item.first_deferred_at or now_us) if deferred else item.first_deferred_at,
        item.expiries if _reports_no_end(settlement) else 0,
        settlement.failure_class,
        settlement.summary,
        now_us if state in TERMINAL else None,
    )


def _plainly_succeeds(settlement: Settlement) -> bool:
    """Most do, and then all but two columns are the same for all of them."""
    plain = not (settlement.failed or settlement.for_vanished or settlement.failure_class)
    return plain and settlement.event is Event.SUCCEED


def _reports_no_end(settlement: Settlement) -> bool:
    """Going back unstarted, or ending what a dead claimant left: the next run may die as the last one did (W2)."""
    return settlement.event is Event.HAND_BACK or settlement.for_vanished


def _next_run(item: Item, settlement: Settlement, now_us: int) -> int:
    waits = settlement.event in (Event.RETRY, Event.DEFER)
    return now_us + settlement.delay_us if waits else item.run_after


@dataclass(slots=True)
class _Left:
    """What settled items leave behind: lane entries that go or wait, hints, and lanes whose next item may run."""

    gone: list[tuple[str, int]] = field(default_factory=list)
    waiting: list[tuple[str, int, int, int]] = field(default_factory=list)
    ready: list[ReadyRow] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)


def _leave_lanes(done: list[Settlement], items: dict[str, Item], held: dict[str, Lane], now_us: int) -> _Left:
    left = _Left()
    for settlement in done:
        item = items[settlement.claimed.item.id]
        ends = TRANSITIONS[(item.state, settlement.event)] in TERMINAL
        run_after = _next_run(item, settlement, now_us)
        if item.source_lane is not None and item.source_position is not None and ends:
            blocks = settlement.event is Event.DIE and held[item.source_lane].policy is LanePolicy.BLOCK
            if not blocks and not settlement.leaves_place:
                left.gone.append((item.source_lane, item.source_position))
                left.sources.add(item.source_lane)
        if item.target_lane is not None and item.target_position is not None:
            held[item.target_lane].hold(settlement.hold_lane_for)
            left.targets.add(item.target_lane)
            if ends:
                left.gone.append((item.target_lane, item.target_position))
            else:
                left.waiting.append((item.target_lane, item.target_position, 1, run_after))
        elif not ends:
            left.ready.append(ready_row(item, run_after))
    return left


def count_dispatch(marks: Sequence[tuple[str, int]], now_us: int) -> Txn[None]:
    """Count one dispatch of each locked item and set its lease's end (PROTOCOL W3, C4)."""
    if marks:
        yield from fetch(COUNT_DISPATCH, marks=list(marks), now_us=now_us)


class Cancelled(str, Enum):
    """What a cancellation did."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    ENDED = "ended"


def cancel(
    items: dict[str, Item], held: dict[str, Lane], now_us: int, summary: str
) -> Txn[dict[str, Cancelled]]:
    """Cancel locked items that wait; ask the holder of one that runs (PROTOCOL W5). The caller saves the lanes."""
    waiting = [item for item in items.values() if item.state in WAITING]
    running = [item for item in items.values() if item.state is State.PROCESSING]
    if waiting:
        yield from fetch(SETTLE, ends=[_cancelled(item, summary, now_us) for item in waiting], now_us=now_us)
        yield from _withdraw(waiting, held, now_us)
    if running:
        yield from fetch(REQUEST_CANCEL, ids=[(item.id,) for item in running], now_us=now_us)
    return {item.id: _cancellation(item.state) for item in items.values()}


def _cancelled(item: Item, summary: str, now_us: int) -> tuple[Any, ...]:
    state = TRANSITIONS[(item.state, Event.CANCEL)]
    return (
        item.id, state.value, item.run_after, item.claims, item.failures, item.first_failed_at, item.deferrals,
        item.first_deferred_at, item.expiries, None, summary, now_us,
    )  # fmt: skip


def _withdraw(waiting: list[Item], held: dict[str, Lane], now_us: int) -> Txn[None]:
    """Take waiting items out of their lanes; what stood behind them may be next."""
    gone: list[tuple[str, int]] = []
    for item in waiting:
        if item.source_lane is not None and item.source_position is not None:
            gone.append((item.source_lane, item.source_position))
        if item.target_lane is not None and item.target_position is not None:
            gone.append((item.target_lane, item.target_position))
            if held[item.target_lane].holder == item.id:
                held[item.target_lane].hold(None)
    yield from lane_store.drop_entries(gone)
    yield from lane_store.promote(held, _sources(waiting), _targets(waiting), now_us)


def _cancellation(before: State) -> Cancelled:
    if before in WAITING or before is State.CANCELLED:
        return Cancelled.CANCELLED
    return Cancelled.REQUESTED if before is State.PROCESSING else Cancelled.ENDED


def _sources(items: Iterable[Item]) -> set[str]:
    return {item.source_lane for item in items if item.source_lane is not None}


def _targets(items: Iterable[Item]) -> set[str]:
    return {item.target_lane for item in items if item.target_lane is not None}


def bring_forward(subject_id: str, family: str) -> Txn[bool]:
    """Make waiting items of this subject due now: what they wait for has happened. False when none is active.

    An item whose lane makes it wait still waits for its turn.
    """
    found = yield from fetch(FOR_SUBJECT, subject_id=subject_id, family=family)
    held = yield from lane_store.lock(lane for row in found for lane in (row[1], row[2]))
    items, now_us = yield from lock_items_then_clock(row[0] for row in found)
    early = [item for item in items.values() if item.state in WAITING and item.run_after > now_us]
    if early:
        yield from fetch(ADVANCE, due=[(item.id,) for item in early], now_us=now_us)
        yield from lane_store.set_entries(
            (item.target_lane, item.target_position, int(_is_head(item, held)), now_us)
            for item in early
            if item.target_lane is not None and item.target_position is not None
        )
        yield from lane_store.promote(held, _sources(early), _targets(early), now_us)
        free = [item for item in early if item.source_lane is None and item.target_lane is None]
        yield from add_ready(ready_row(item, now_us) for item in free)
        yield from notify(topic(item.family) for item in free)
        yield from lane_store.save(held.values())
    return any(item.state not in TERMINAL for item in items.values())


def _is_head(item: Item, held: dict[str, Lane]) -> bool:
    return item.source_lane is None or held[item.source_lane].nominee == item.id


def release(item_id: str, note: str) -> Txn[bool]:
    """Let the source lane of an ended item go on past it; see `release_head`."""
    for row in (yield from fetch(PLAIN_ITEMS, ids=[(item_id,)])):
        lane_name = read_item(row).source_lane  # it never changes, and is locked before the item
        if lane_name is not None:
            return (yield from release_head(lane_name, item_id, note))
    return False


def release_head(lane_name: str, item_id: str, note: str = "") -> Txn[bool]:
    """Let a source lane go on past an ended item that blocks it (PROTOCOL L3), once however often it is asked for.

    `note` is added to the item's summary: who let the lane go on, and why. False when the item has not ended, or is not
    of this lane.
    """
    held = yield from lane_store.lock([lane_name])
    items, now_us = yield from lock_items_then_clock([item_id])
    item = items.get(item_id)
    if (
        item is None
        or item.source_position is None
        or item.source_lane != lane_name
        or item.state not in TERMINAL
    ):
        return False
    place = (lane_name, item.source_position)
    if (yield from lane_store.entries_at([place])).get(place) == item_id:
        yield from lane_store.drop_entries([place])
        yield from lane_store.promote(held, {lane_name}, set(), now_us)
        yield from lane_store.save(held.values())
        yield from fetch(NOTE, item=item_id, note=f"; {note}" if note else "")
    return True

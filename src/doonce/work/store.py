"""Transactions of the kernel: insert, claim, renew, settle, cancel, sweep. All take and return batches.

Lock order within each: ownership, lanes, work items (PROTOCOL T4). The clock is read after the locks (T3). A ready
row is only a hint; the compare-and-swap is on the locked work item (W7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, DialectName, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, notify
from doonce.ownership import store as ownership
from doonce.work import lanes as lane_store
from doonce.work.lanes import READY_COLUMNS, Lane, ReadyRow
from doonce.work.model import (
    TRANSITIONS,
    Claimed,
    ClaimVerdict,
    Event,
    Item,
    LanePolicy,
    NewItem,
    Scope,
    Shelf,
    State,
    judge_claim,
)
from doonce.work.tables import work_item, work_lane_entry, work_ready

ITEM_COLUMNS = tuple(column.name for column in work_item.c)
READ_COLUMNS = (
    "id", "family", "org", "installation", "subject_kind", "subject_id", "view_digest", "capability_version",
    "source_lane", "source_position", "target_lane", "target_position", "state", "run_after", "attempts", "claims",
    "failures", "first_failed_at", "deferrals", "first_deferred_at", "expiries", "alone", "lease_owner",
    "lease_token", "lease_until", "ownership_epoch", "cancel_requested", "predecessor",
)  # fmt: skip


def now_expression(dialect: Dialect) -> sa.ColumnElement[int]:
    """The database's time inside a statement: for finding candidates only, never for a fence (PROTOCOL T3)."""
    if dialect.name is DialectName.POSTGRESQL:
        return sa.literal_column(
            "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint", sa.BigInteger()
        )
    return sa.literal_column(
        "(SELECT max(now_us, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)) FROM doonce_clock)",
        sa.BigInteger(),
    )


def _candidates(dialect: Dialect) -> sa.Select[Any]:
    ready = work_ready
    return (
        sa.select(ready)
        .where(
            ready.c.family == sa.bindparam("family", type_=IDENTITY),
            ready.c.shelf == sa.bindparam("shelf", type_=COUNT),
            ready.c.org == sa.bindparam("org", type_=IDENTITY),
            ready.c.installation == sa.bindparam("installation", type_=IDENTITY),
            ready.c.due <= now_expression(dialect),
        )
        .order_by(ready.c.due, ready.c.item_id)
        .limit(sa.bindparam("rows", type_=COUNT))
        .with_for_update(skip_locked=True)
    )


def _lock_items(dialect: Dialect, *, skip_locked: bool) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(*[work_item.c[name] for name in READ_COLUMNS])
        .where(work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(work_item.c.id)
        .with_for_update(skip_locked=skip_locked)
    )


def _take(dialect: Dialect) -> sa.Update:
    taken = dialect.batch("taken", id=IDENTITY, expiries=COUNT)
    return (
        sa.update(work_item)
        .where(work_item.c.id == taken.c.id)
        .values(
            state=State.PROCESSING.value,
            claims=work_item.c.claims + 1,
            expiries=taken.c.expiries,
            alone=sa.bindparam("alone", type_=COUNT),
            lease_owner=sa.bindparam("owner", type_=IDENTITY),
            lease_token=sa.bindparam("token", type_=IDENTITY),
            lease_until=sa.bindparam("until_us", type_=MICROSECONDS),
            ownership_epoch=sa.bindparam("epoch", type_=COUNT),
            updated_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _drop_ready(dialect: Dialect) -> sa.Delete:
    keys = dialect.batch(
        "keys",
        family=IDENTITY,
        shelf=COUNT,
        org=IDENTITY,
        installation=IDENTITY,
        due=MICROSECONDS,
        item_id=IDENTITY,
    )
    names = ("family", "shelf", "org", "installation", "due", "item_id")
    if dialect.name is DialectName.POSTGRESQL:
        return sa.delete(work_ready).where(*[work_ready.c[name] == keys.c[name] for name in names])
    return sa.delete(work_ready).where(
        sa.tuple_(*[work_ready.c[name] for name in names]).in_(
            sa.select(*[keys.c[name] for name in names]).select_from(keys.source)
        )
    )


def _renew(dialect: Dialect) -> sa.Update:
    leases = dialect.batch("leases", id=IDENTITY, until_us=MICROSECONDS)
    return (
        sa.update(work_item)
        .where(work_item.c.id == leases.c.id)
        .values(lease_until=leases.c.until_us, updated_at=sa.bindparam("now_us", type_=MICROSECONDS))
    )


def _sweep(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(*[work_item.c[name] for name in READ_COLUMNS])
        .where(work_item.c.id > sa.bindparam("after", type_=IDENTITY))
        .order_by(work_item.c.id)
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _plain_items(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(*[work_item.c[name] for name in READ_COLUMNS]).where(
        work_item.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


CANDIDATES = Statement("work.candidates", _candidates)


def _suspects(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(work_ready.c.item_id)
        .where(
            work_ready.c.family == sa.bindparam("family", type_=IDENTITY),
            work_ready.c.shelf == Shelf.ALONE.value,
        )
        .limit(1)
    )


SUSPECTS = Statement("work.suspects", _suspects)
PLAIN_ITEMS = Statement("work.plain_items", _plain_items)
LOCK_ITEMS = Statement("work.lock_items", lambda dialect: _lock_items(dialect, skip_locked=False))
LOCK_FREE_ITEMS = Statement("work.lock_free_items", lambda dialect: _lock_items(dialect, skip_locked=True))
TAKE = Statement("work.take", _take)
DROP_READY = Statement("work.drop_ready", _drop_ready)
RENEW = Statement("work.renew", _renew)
SWEEP = Statement("work.sweep", _sweep)


def read_item(row: Row) -> Item:
    """The item of a row that has `READ_COLUMNS`."""
    return Item(
        id=row[0],
        family=row[1],
        scope=Scope(row[2], row[3]),
        subject_kind=row[4],
        subject_id=row[5],
        view_digest=row[6],
        capability_version=row[7],
        source_lane=row[8],
        source_position=row[9],
        target_lane=row[10],
        target_position=row[11],
        state=State(row[12]),
        run_after=row[13],
        attempts=row[14],
        claims=row[15],
        failures=row[16],
        first_failed_at=row[17],
        deferrals=row[18],
        first_deferred_at=row[19],
        expiries=row[20],
        alone=bool(row[21]),
        lease_owner=row[22],
        lease_token=row[23],
        lease_until=row[24],
        ownership_epoch=row[25],
        cancel_requested=bool(row[26]),
        predecessor=row[27],
    )


def lock_items(ids: Iterable[str]) -> Txn[dict[str, Item]]:
    """Lock these items in order of their ids; a missing one is absent from the result."""
    wanted = sorted(set(ids))
    if not wanted:
        return {}
    rows = yield from fetch(LOCK_ITEMS, ids=[(item_id,) for item_id in wanted])
    return {row[0]: read_item(row) for row in rows}


def suspects_wait(family: str) -> Txn[bool]:
    """Whether any item of the family waits to run alone."""
    return bool((yield from fetch(SUSPECTS, family=family)))


def topic(family: str) -> str:
    """What a family's claimers wait on."""
    return f"work:{family}"


def insert(items: Sequence[NewItem], locked: dict[str, Lane] | None = None) -> Txn[None]:
    """Insert work and make ready what may run. Positions are drawn under the lanes' locks (PROTOCOL L1, L2).

    The caller has fenced ownership. `locked` are lanes that its transaction already holds; any others named by the
    items are locked here, so a caller that holds later locks must have locked all of them before.
    """
    if not items:
        return
    held = dict(locked or {})
    policies = {
        name: item.source_policy
        for item in items
        for name in (item.source_lane, item.target_lane)
        if name is not None and name not in held
    }
    if policies:
        held |= yield from lane_store.make_and_lock(policies)
    now_us = yield from clock()
    rows: list[tuple[Any, ...]] = []
    entries: list[tuple[Any, ...]] = []
    inherited: list[tuple[Any, ...]] = []
    ready: list[ReadyRow] = []
    for item in items:
        source_position, target_position, due = _place(item, held, now_us, entries, inherited)
        rows.append(_new_row(item, source_position, target_position, now_us))
        if due is not None:
            ready.append(
                (
                    item.family,
                    Shelf.OPEN.value,
                    item.scope.org,
                    item.scope.installation,
                    due,
                    item.id,
                    item.target_lane,
                )
            )
    yield from insert_many(work_item, ITEM_COLUMNS, rows)
    yield from insert_many(work_lane_entry, lane_store.ENTRY_COLUMNS, entries)
    yield from lane_store.inherit_entries(inherited)
    yield from insert_many(work_ready, READY_COLUMNS, ready)
    yield from lane_store.save(lane for lane in held.values() if locked is None or lane.lane not in locked)
    yield from notify(topic(item.family) for item in items if item.delay_us == 0)


def _place(
    item: NewItem,
    held: dict[str, Lane],
    now_us: int,
    entries: list[tuple[Any, ...]],
    inherited: list[tuple[Any, ...]],
) -> tuple[int | None, int | None, int | None]:
    """Give an item its positions; the due time of its ready row, or None while a lane keeps it waiting."""
    run_after = now_us + item.delay_us
    source = held[item.source_lane] if item.source_lane is not None else None
    target = held[item.target_lane] if item.target_lane is not None else None
    source_position, target_position = item.source_position, item.target_position
    is_head = True
    if source is not None:
        if source_position is not None and source.policy is LanePolicy.BLOCK:
            inherited.append((source.lane, source_position, item.id, run_after))
        else:
            source_position = source.draw()
            entries.append((source.lane, source_position, item.id, 1, run_after))
        is_head = source.nominee in (None, item.predecessor)
        if is_head:
            source.nominate(item.id, run_after)
    if target is None:
        return source_position, None, run_after if is_head else None
    if target_position is None:
        target_position = target.draw()
    entries.append((target.lane, target_position, item.id, int(is_head), run_after))
    if not is_head or target.holder not in (None, item.id):
        return source_position, target_position, None
    due = max(run_after, target.hold_until)
    if target.nominee is not None and target.nominee_due <= due and target.holder is None:
        return source_position, target_position, None
    target.nominate(item.id, due)
    return source_position, target_position, due


def _new_row(
    item: NewItem, source_position: int | None, target_position: int | None, now_us: int
) -> tuple[Any, ...]:
    run_after = now_us + item.delay_us
    values: dict[str, Any] = dict.fromkeys(ITEM_COLUMNS)
    values |= {
        "id": item.id, "family": item.family, "org": item.scope.org, "installation": item.scope.installation,
        "subject_kind": item.subject_kind, "subject_id": item.subject_id, "view_digest": item.view_digest,
        "capability_version": item.capability_version, "source_lane": item.source_lane,
        "source_position": source_position, "target_lane": item.target_lane, "target_position": target_position,
        "state": State.PENDING.value, "run_after": run_after, "attempts": 0, "claims": 0, "failures": 0,
        "deferrals": 0, "expiries": 0, "alone": 0, "lease_until": 0, "ownership_epoch": 0, "cancel_requested": 0,
        "replay_of": item.replay_of, "predecessor": item.predecessor, "created_at": now_us, "updated_at": now_us,
    }  # fmt: skip
    return tuple(values[name] for name in ITEM_COLUMNS)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What one process asks for. The token is made before the transaction; all rows of a claim share it.

    `scopes`: exactly what this worker may act for, in the order to look; empty claims nothing. `alone`: the process
    runs nothing else, so it may take one item from the shelf of suspects.
    """

    family: str
    scopes: tuple[Scope, ...]
    deployment: str
    owner: str
    token: str
    rows_max: int
    lease_us: int
    expiries_max: int
    alone: bool = False


def claim(request: ClaimRequest) -> Txn[list[Claimed]]:
    """Take due items under a fresh lease; one winner an item. Costs what it takes, whatever waits.

    A crash afterwards leaves them processing until the lease ends, when anyone may reclaim them.
    """
    owner = (yield from ownership.fence([request.family])).get(request.family)
    if owner is None or not owner.admits(request.deployment) or request.rows_max < 1:
        return []
    shelf = Shelf.ALONE if request.alone else Shelf.OPEN
    candidates: list[Row] = []
    for scope in request.scopes:
        candidates += yield from fetch(
            CANDIDATES,
            family=request.family,
            shelf=shelf.value,
            org=scope.org,
            installation=scope.installation,
            rows=1 if request.alone else request.rows_max - len(candidates),
        )
        if len(candidates) >= (1 if request.alone else request.rows_max):
            break
    if not candidates:
        return []
    held = yield from lane_store.lock({row[6] for row in candidates})
    ids = sorted({row[5] for row in candidates})
    rows = yield from fetch(LOCK_FREE_ITEMS, ids=[(item_id,) for item_id in ids])
    items = {row[0]: read_item(row) for row in rows}
    now_us = yield from clock()
    plan = _plan(request, candidates, items, held, now_us)
    if plan.taken:
        yield from fetch(
            TAKE,
            taken=[(item.id, expiries) for item, expiries, _ in plan.taken],
            alone=int(request.alone),
            owner=request.owner,
            token=request.token,
            until_us=now_us + request.lease_us,
            epoch=owner.epoch,
            now_us=now_us,
        )
    if plan.dropped:
        yield from fetch(DROP_READY, keys=plan.dropped)
    yield from insert_many(work_ready, READY_COLUMNS, plan.moved, skip_conflicts=True)
    yield from lane_store.save(held.values())
    until_us = now_us + request.lease_us
    return [
        Claimed(item, request.token, owner.epoch, until_us, until_us + 1, poison)
        for item, _, poison in plan.taken
    ]


@dataclass(slots=True)
class _ClaimPlan:
    taken: list[tuple[Item, int, bool]]
    dropped: list[tuple[Any, ...]]
    moved: list[ReadyRow]


def _plan(
    request: ClaimRequest, candidates: list[Row], items: dict[str, Item], held: dict[str, Lane], now_us: int
) -> _ClaimPlan:
    plan = _ClaimPlan([], [], [])
    seen: set[str] = set()
    for row in candidates:
        item = items.get(row[5])
        if item is None:
            continue  # another transaction holds the item; its ready row stays for the next look
        plan.dropped.append(tuple(row[position] for position in range(6)))
        if item.id in seen:
            continue
        seen.add(item.id)
        verdict, due = judge_claim(item, now_us, alone=request.alone, expiries_max=request.expiries_max)
        lane = held.get(item.target_lane) if item.target_lane is not None else None
        shelf = Shelf.OPEN
        if verdict in (ClaimVerdict.TAKE, ClaimVerdict.TAKE_POISON):
            if lane is not None and not lane.admits(item.id, now_us):
                if lane.holder is None:  # a hold in time: come back when it ends
                    plan.moved.append(_ready(item, Shelf.OPEN, lane.hold_until))
                continue  # held: its release promotes the next
            if lane is not None:
                lane.hold(item.id)
                lane.nominate(None, 0)
            expired = item.state is State.PROCESSING
            plan.taken.append((item, item.expiries + int(expired), verdict is ClaimVerdict.TAKE_POISON))
            due = now_us + request.lease_us + 1
        elif verdict is ClaimVerdict.SHELVE:
            shelf = Shelf.ALONE
        elif verdict is ClaimVerdict.DROP:
            continue
        plan.moved.append(_ready(item, shelf, due))
    return plan


def _ready(item: Item, shelf: Shelf, due: int) -> ReadyRow:
    return (item.family, shelf.value, item.scope.org, item.scope.installation, due, item.id, item.target_lane)


@dataclass(frozen=True, slots=True)
class RenewRequest:
    """A claimed item whose lease should last `lease_us` from now."""

    claimed: Claimed
    deployment: str
    lease_us: int


def renew(requests: Sequence[RenewRequest]) -> Txn[list[int | None]]:
    """Extend live leases; each gets its new end, or None when it is stale. Strictly advances (PROTOCOL C3)."""
    owners = yield from ownership.fence(request.claimed.item.family for request in requests)
    items = yield from lock_items(request.claimed.item.id for request in requests)
    now_us = yield from clock()
    ends: list[int | None] = []
    leases: list[tuple[str, int]] = []
    for request in requests:
        claimed = request.claimed
        item = items.get(claimed.item.id)
        owner = owners.get(claimed.item.family)
        alive = (
            item is not None
            and owner is not None
            and owner.lets_finish(request.deployment, claimed.epoch)
            and (item.lease_token, item.ownership_epoch) == (claimed.token, claimed.epoch)
            and (item.state, Event.RENEW) in TRANSITIONS
            and item.lease_until >= now_us
        )
        if not alive or item is None:
            ends.append(None)
            continue
        until_us = max(item.lease_until + 1, now_us + request.lease_us)
        ends.append(until_us)
        leases.append((item.id, until_us))
    if leases:
        yield from fetch(RENEW, leases=leases, now_us=now_us)
    return ends


def sweep(after: str, rows_max: int) -> Txn[str]:
    """Put back ready rows that are missing, looking at `rows_max` items; returns where to go on ("" at the end).

    Spare rows it leaves lose the compare-and-swap (PROTOCOL W7).
    """
    rows = yield from fetch(SWEEP, after=after, rows=rows_max)
    items = [read_item(row) for row in rows]
    waiting = [item for item in items if item.state in (State.PENDING, State.RETRY)]
    held = yield from lane_store.lock(
        {name for item in waiting for name in (item.source_lane, item.target_lane)}
    )
    now_us = yield from clock()
    sources = {item.source_lane for item in waiting if item.source_lane is not None}
    targets = {item.target_lane for item in waiting if item.target_lane is not None}
    yield from lane_store.promote(held, sources, targets, now_us)
    ready = [_ready(item, Shelf.OPEN, item.run_after) for item in waiting if _laneless(item)]
    ready += [
        _ready(item, Shelf.OPEN, item.lease_until + 1) for item in items if item.state is State.PROCESSING
    ]
    yield from insert_many(work_ready, READY_COLUMNS, ready, skip_conflicts=True)
    yield from lane_store.save(held.values())
    return items[-1].id if len(items) == rows_max else ""


def _laneless(item: Item) -> bool:
    return item.source_lane is None and item.target_lane is None

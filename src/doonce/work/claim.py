"""Claims: due items under a fresh lease, one winner each; and the renewal of leases.

Candidates come from the ready rows, which are hints; every decision is taken on the locked item and its locked lanes
(PROTOCOL W7, L1). The clock is read after the locks (T3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, fetch, insert_many
from doonce.ownership import store as ownership
from doonce.work import lanes as lane_store
from doonce.work import leases, looking
from doonce.work.fairness import Room
from doonce.work.floors import Floors
from doonce.work.items import (
    PLAIN_ITEMS,
    ReadyKey,
    ReadyRow,
    add_ready,
    drop_ready,
    lock_claimed_then_clock,
    lock_free_items_then_clock,
    lock_items,
    ready_row,
)
from doonce.work.lanes import Lane
from doonce.work.looking import Sought
from doonce.work.model import (
    ENGINE,
    Claimed,
    ClaimVerdict,
    Item,
    Scope,
    Shelf,
    State,
    judge_claim,
    live,
    shelves_of,
)
from doonce.work.tables import work_claimer, work_item, work_ready

CLAIMER_COLUMNS = tuple(column.name for column in work_claimer.c)


def _suspects(dialect: Dialect) -> sa.Select[Any]:
    ready = work_ready
    return (
        sa.select(ready.c.item_id)
        .where(
            ready.c.family == sa.bindparam("family", type_=IDENTITY),
            ready.c.shelf == sa.literal_column(str(Shelf.ALONE.value)),
        )
        .limit(sa.literal_column("1"))
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


def _lock_claimer(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(work_claimer.c.token, work_claimer.c["items"])
        .where(
            work_claimer.c.owner == sa.bindparam("owner", type_=IDENTITY),
            work_claimer.c.family == sa.bindparam("family", type_=IDENTITY),
        )
        .with_for_update()
    )


def _save_claimer(dialect: Dialect) -> sa.Update:
    return (
        sa.update(work_claimer)
        .where(
            work_claimer.c.owner == sa.bindparam("claimer", type_=IDENTITY),
            work_claimer.c.family == sa.bindparam("claimed_family", type_=IDENTITY),
        )
        .values(
            token=sa.bindparam("new_token", type_=IDENTITY),
            items=sa.bindparam("new_items", type_=IDENTITY),
            claimed_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _renew(dialect: Dialect) -> sa.Update:
    leases = dialect.batch("leases", id=IDENTITY, until_us=MICROSECONDS)
    return (
        sa.update(work_item)
        .where(work_item.c.id == leases.c.id)
        .values(lease_until=leases.c.until_us, updated_at=sa.bindparam("now_us", type_=MICROSECONDS))
    )


SUSPECTS = Statement("work.suspects", _suspects)
TAKE = Statement("work.take", _take)
LOCK_CLAIMER = Statement("work.lock_claimer", _lock_claimer)
SAVE_CLAIMER = Statement("work.save_claimer", _save_claimer)
RENEW = Statement("work.renew", _renew)


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What one process asks for. The token is made before the transaction; all rows of a claim share it.

    `scopes`: exactly what this worker may act for, whose turn it is first; empty claims nothing. `room`: what the rows
    are shared by, between scopes that have some. `owner`: this process, with one claim of a family at a time. `alone`:
    the process runs nothing else, so it may take one item from the shelf of suspects. `engine`: the latest capability
    version that this worker can run; what needs a later one is left where it is. `recalls`: leases of the family that
    are over are looked for first; a worker that claims many times a second need not ask each time. `floors`: where the
    worker's looks begin.
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
    engine: int = ENGINE
    recalls: bool = True
    room: Room = field(default_factory=Room)
    floors: Floors = field(default_factory=Floors)


def claim(request: ClaimRequest) -> Txn[list[Claimed]]:
    """Take due items under a fresh lease; one winner an item. Costs what it takes, whatever waits.

    A crash afterwards leaves them processing until the lease ends, when anyone may reclaim them. Run again after an
    unknown commit it returns what that run took (PROTOCOL T5). Takes nothing while the database's clock cannot be
    trusted (C1).
    """
    owner = (yield from ownership.fence([request.family])).get(request.family)
    if owner is None or not owner.admits(request.deployment) or request.rows_max < 1:
        return []
    before = yield from _lock_claimer_row(request)
    if before["token"] == request.token:
        return (yield from _claimed_before(request, before))
    if request.recalls:
        yield from leases.recall(request.family)
    candidates = yield from looking.find(_sought(request), request.room, request.floors)
    if not candidates:
        return []
    held = yield from lane_store.lock({lane for row in candidates for lane in (row[6], row[7])})
    items, now_us = yield from lock_free_items_then_clock(row[5] for row in candidates)
    if now_us is None:
        return []
    request.floors.know(now_us)
    gone = yield from _gone(row[5] for row in candidates if row[5] not in items)
    plan = _plan(request, candidates, items, held, now_us, gone)
    yield from _take_them(request, plan, owner.epoch, now_us)
    yield from lane_store.save(held.values())
    yield from drop_ready(plan.dropped)
    yield from add_ready(plan.moved)
    until_us = now_us + request.lease_us
    return [Claimed(item, request.token, owner.epoch, until_us, poison) for item, _, poison in plan.taken]


def _sought(request: ClaimRequest) -> Sought:
    shelves = shelves_of(request.engine, alone=request.alone)
    return Sought(request.family, shelves, request.scopes, 1 if request.alone else request.rows_max)


def _take_them(request: ClaimRequest, plan: _ClaimPlan, epoch: int, now_us: int) -> Txn[None]:
    if not plan.taken:
        return
    yield from fetch(
        TAKE,
        taken=[(item.id, expiries) for item, expiries, _ in plan.taken],
        alone=int(request.alone),
        owner=request.owner,
        token=request.token,
        until_us=now_us + request.lease_us,
        epoch=epoch,
        now_us=now_us,
    )
    yield from fetch(
        SAVE_CLAIMER,
        claimer=request.owner,
        claimed_family=request.family,
        new_token=request.token,
        new_items=msgspec.json.encode([(item.id, poison) for item, _, poison in plan.taken]).decode(),
        now_us=now_us,
    )
    yield from leases.keep(
        request.family, request.token, (item.id for item, _, _ in plan.taken), now_us + request.lease_us
    )


def _lock_claimer_row(request: ClaimRequest) -> Txn[Row]:
    """This process's last claim, locked: a rerun waits here for the commit that was not answered."""
    rows = yield from fetch(LOCK_CLAIMER, owner=request.owner, family=request.family)
    if not rows:
        first = (request.owner, request.family, "", "[]", 0)
        yield from insert_many(work_claimer, CLAIMER_COLUMNS, [first], skip_conflicts=True)
        rows = yield from fetch(LOCK_CLAIMER, owner=request.owner, family=request.family)
    return rows[0]


def _claimed_before(request: ClaimRequest, before: Row) -> Txn[list[Claimed]]:
    taken: list[tuple[str, bool]] = msgspec.json.decode(before["items"])
    items = yield from lock_items(item_id for item_id, _ in taken)
    return [
        Claimed(item, request.token, item.ownership_epoch, item.lease_until, poison)
        for item_id, poison in taken
        if (item := items.get(item_id)) is not None
        and item.state is State.PROCESSING
        and item.lease_token == request.token
    ]


@dataclass(slots=True)
class _ClaimPlan:
    """What a claim writes: the items that it takes, and the hints that go or move."""

    taken: list[tuple[Item, int, bool]] = field(default_factory=list)
    dropped: list[ReadyKey] = field(default_factory=list)
    moved: list[ReadyRow] = field(default_factory=list)


def _gone(item_ids: Iterable[str]) -> Txn[set[str]]:
    """Those of these items that are not there any more: they ended, moved to history, and never come back.

    A hint is written with its item or after it, so that a hint without one is seen for what it is without a lock.
    """
    unseen = set(item_ids)
    if not unseen:
        return unseen
    rows = yield from fetch(PLAIN_ITEMS, ids=[(item_id,) for item_id in sorted(unseen)])
    return unseen - {row[0] for row in rows}


def _plan(
    request: ClaimRequest,
    candidates: list[Row],
    items: dict[str, Item],
    held: dict[str, Lane],
    now_us: int,
    gone: set[str],
) -> _ClaimPlan:
    plan = _ClaimPlan()
    seen: set[str] = set()
    for row in candidates:
        item = items.get(row[5])
        key = (row[0], row[1], row[2], row[3], row[4], row[5])
        if item is None:
            if row[5] in gone:
                plan.dropped.append(key)
            continue  # another transaction holds the item; its ready row stays for the next look
        plan.dropped.append(key)
        if item.id in seen or item.scope != Scope(row[2], row[3]):
            continue  # spare, or of another scope than the one that this claim may look into
        seen.add(item.id)
        verdict, due = judge_claim(
            item, now_us, alone=request.alone, expiries_max=request.expiries_max, engine=request.engine
        )
        takes = verdict in (ClaimVerdict.TAKE, ClaimVerdict.TAKE_POISON)
        if takes and _lanes_admit(item, held, now_us, plan):
            expired = item.state is State.PROCESSING
            plan.taken.append((item, item.expiries + int(expired), verdict is ClaimVerdict.TAKE_POISON))
            continue
        if verdict in (ClaimVerdict.LATER, ClaimVerdict.NEWER):
            plan.moved.append(ready_row(item, due))
        elif verdict is ClaimVerdict.SHELVE:
            plan.moved.append(ready_row(item, due, alone=True))
    return plan


def _lanes_admit(item: Item, held: dict[str, Lane], now_us: int, plan: _ClaimPlan) -> bool:
    """Whether it is the item's turn in both its lanes; then it holds its target lane.

    A hint that came too early is dropped: whatever ends the wait promotes the next item of the lane, or of the time.
    """
    if item.source_lane is not None and item.state is not State.PROCESSING:
        source = held.get(item.source_lane)
        if source is None or source.nominee != item.id:
            return False
    if item.target_lane is not None:
        target = held.get(item.target_lane)
        if target is None:
            return False
        if not target.admits(item.id, now_us):
            if target.holder is None:
                plan.moved.append(ready_row(item, target.hold_until))
            return False
        target.hold(item.id)
        target.nominate(None, 0)
    return True


def suspects_wait(family: str) -> Txn[bool]:
    """Whether any item of the family waits to run alone."""
    return bool((yield from fetch(SUSPECTS, family=family)))


@dataclass(frozen=True, slots=True)
class RenewRequest:
    """A claimed item whose lease should last `lease_us` from now."""

    claimed: Claimed
    deployment: str
    lease_us: int


def renew(requests: Sequence[RenewRequest]) -> Txn[list[int | None]]:
    """Extend live leases; each gets its new end, or None when it is stale. Strictly advances (PROTOCOL C3)."""
    owners = yield from ownership.fence(request.claimed.item.family for request in requests)
    items, now_us = yield from lock_claimed_then_clock(request.claimed for request in requests)
    ends: list[int | None] = []
    leases: list[tuple[str, int]] = []
    for request in requests:
        claimed = request.claimed
        item = items.get(claimed.item.id)
        owner = owners.get(claimed.item.family)
        if (
            item is None
            or owner is None
            or not owner.lets_finish(request.deployment, claimed.epoch)
            or not live(item, claimed, now_us)
        ):
            ends.append(None)
            continue
        until_us = max(item.lease_until + 1, now_us + request.lease_us)
        ends.append(until_us)
        leases.append((item.id, until_us))
    if leases:
        yield from fetch(RENEW, leases=leases, now_us=now_us)
    return ends

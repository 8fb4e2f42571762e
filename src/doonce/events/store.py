"""Transactions of derivation: the claim with its receipt, and the events with the end of their work item.

Lock order (PROTOCOL T4): ownership, links, lanes, work items; then the events, in order of their identities.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, fetch, insert_many
from doonce.events.tables import event
from doonce.ingress import store as ingress
from doonce.ingress.receipts import RouteKey, Sealed, StoredReceipt
from doonce.links import store as links
from doonce.links.model import LinkEvent, LinkMove, RemoteKey, RemoteLink
from doonce.ownership import store as ownership
from doonce.ownership.model import Ownership
from doonce.work import lanes as lane_store
from doonce.work import settle
from doonce.work import store as work
from doonce.work.items import lock_claimed_then_clock
from doonce.work.lanes import Lane
from doonce.work.model import Claimed, LanePolicy, NewItem, Settled, Settlement

EVENT_COLUMNS = tuple(column.name for column in event.c)


class Unread(Record, frozen=True):
    """A claimed derivation: the receipt that it is about."""

    claimed: Claimed
    receipt: StoredReceipt | None


class NewEvent(Record, frozen=True):
    """An event to make, its content sealed, and the work of handing it over, None where the binding routes it nowhere.

    Ids are made before the transaction, and the event's is its nonce (PROTOCOL T1, T7). `gone` is the provider's object
    that it says is deleted: its link is suspended with the event.
    """

    id: str
    identity: str
    type: str
    position: int
    sealed: bytes
    key_id: str
    work: NewItem | None = None
    gone: RemoteKey | None = None


class Source(Record, frozen=True):
    """What events are read from: a delivery's receipt, or a page of a catch-up."""

    id: str
    route: RouteKey
    view_digest: str


def source_of(receipt: StoredReceipt) -> Source:
    """A receipt as a source of events."""
    return Source(receipt.id, receipt.route, receipt.view_digest)


class Derivation(Record, frozen=True):
    """The end of one derivation: its events, all or none, and the settlement of its item."""

    settlement: Settlement
    deployment: str
    receipt: StoredReceipt | None
    events: tuple[NewEvent, ...]


def _winners(dialect: Dialect) -> sa.Select[Any]:
    keys = dialect.batch("keys", identity=IDENTITY)
    return (
        sa.select(event.c.id)
        .where(event.c.identity.in_(sa.select(keys.c.identity).select_from(keys.source)))
        .order_by(event.c.identity)
        .with_for_update()
    )


def _load(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(event).where(event.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))


WINNERS = Statement("events.winners", _winners)
LOAD = Statement("events.load", _load)


def claim_unread(request: work.ClaimRequest) -> Txn[list[Unread]]:
    """Claim derivations with their receipts."""
    claimed = yield from work.claim(request)
    receipts = yield from ingress.load_all(one.item.subject_id for one in claimed)
    return [Unread(one, receipts.get(one.item.subject_id)) for one in claimed]


class Made(Record, frozen=True):
    """What became of a derivation, and which of its events are new through it."""

    settled: Settled
    new: frozenset[str]


def finish_derivations(derivations: Sequence[Derivation]) -> Txn[list[Made]]:
    """End derivations of one deployment under their live claims; a stale one makes no event.

    An event whose identity is there already is left as it is, and makes no work: a redelivery in another grouping makes
    nothing new (PROTOCOL I2). A new one gets its work item with it, at the end of its object's lane, and suspends the
    link of an object that it says is deleted. A rerun after an unknown commit answers as before.
    """
    claims = [one.settlement.claimed for one in derivations]
    owners = yield from ownership.fence(claimed.item.family for claimed in claims)
    linked, held = yield from lock_for([made for one in derivations for made in one.events], claims)
    items, now_us = yield from lock_claimed_then_clock(claims)
    allowed = [one for one in derivations if _may_finish(owners, one)]
    outcomes = yield from settle.apply([one.settlement for one in allowed], items, held, now_us)
    settled = dict(zip([one.settlement.claimed.item.id for one in allowed], outcomes, strict=True))
    ours = [
        (one, settled[one.settlement.claimed.item.id])
        for one in sorted(allowed, key=_taken)
        if settled[one.settlement.claimed.item.id] is not Settled.STALE
    ]
    new = yield from make(
        [(source_of(one.receipt), one.events) for one, _ in ours if one.receipt is not None], now_us
    )
    fresh = [made for one, outcome in ours if outcome is Settled.DONE for made in one.events]
    yield from follow([made for made in fresh if made.id in new], held, linked, now_us)
    return [
        Made(
            settled.get(one.settlement.claimed.item.id, Settled.STALE),
            new.intersection(made.id for made in one.events),
        )
        for one in derivations
    ]


def lock_for(
    events: Sequence[NewEvent], claims: Sequence[Claimed]
) -> Txn[tuple[dict[RemoteKey, RemoteLink], dict[str, Lane]]]:
    """Lock the links and lanes that these events, and the end of these claims, touch (PROTOCOL T4)."""
    linked = yield from links.lock_remote(made.gone for made in events if made.gone is not None)
    mine = dict.fromkeys(
        settle.lanes_of(claims), LanePolicy.PASS
    )  # they are there, with a policy of their own
    wanted = [made.work for made in events if made.work is not None]
    held = yield from lane_store.make_and_lock(mine | work.lane_policies(wanted))
    return linked, held


def follow(
    new: Sequence[NewEvent], held: dict[str, Lane], linked: dict[RemoteKey, RemoteLink], now_us: int
) -> Txn[None]:
    """What follows from new events: each one's work, in their order, and the end of links to what is deleted.

    Saves the lanes.
    """
    yield from work.insert([made.work for made in new if made.work is not None], held, now_us)
    yield from lane_store.save(held.values())
    deleted = {made.gone for made in new if made.gone in linked}
    yield from links.move(
        [_suspension(link) for key, link in linked.items() if key in deleted and link.current]
    )


def _suspension(link: RemoteLink) -> LinkMove:
    return LinkMove(link.id, link.org, link.installation, LinkEvent.SUSPEND)


def _may_finish(owners: Mapping[str, Ownership], derivation: Derivation) -> bool:
    owner = owners.get(derivation.settlement.claimed.item.family)
    return owner is not None and owner.lets_finish(derivation.deployment, derivation.settlement.claimed.epoch)


def make(told: Sequence[tuple[Source, Sequence[NewEvent]]], now_us: int) -> Txn[frozenset[str]]:
    """Insert events; which of them won their identity, by a locking read (PROTOCOL T7).

    The caller has checked the claims under which they were read.
    """
    rows = [_row(source, made, now_us) for source, events in told for made in events]
    yield from insert_many(event, EVENT_COLUMNS, sorted(rows, key=_identity), skip_conflicts=True)
    keys = sorted({(_identity(row),) for row in rows})
    stored = (yield from fetch(WINNERS, keys=keys)) if keys else []
    return frozenset(row["id"] for row in stored) & {made.id for _, events in told for made in events}


def _taken(derivation: Derivation) -> tuple[int, str]:
    """The order in which deliveries were taken, which their events keep within one flush."""
    receipt = derivation.receipt
    return (0, "") if receipt is None else (receipt.received_at, receipt.id)


class StoredEvent(Record, frozen=True):
    """An event as its row has it; it never changes. `receipt_id` is its source: a receipt, or a catch-up's page."""

    id: str
    route: RouteKey
    type: str
    receipt_id: str
    view_digest: str
    sealed: Sealed
    derived_at: int


def load(ids: Iterable[str]) -> Txn[dict[str, StoredEvent]]:
    """Events by id; they never change, so a plain read is enough."""
    wanted = sorted(set(ids))
    rows = (yield from fetch(LOAD, ids=[(event_id,) for event_id in wanted])) if wanted else []
    return {row["id"]: _stored(row) for row in rows}


def _stored(row: Row) -> StoredEvent:
    return StoredEvent(
        id=row["id"],
        route=RouteKey(row["org"], row["installation"], row["capability"], row["webhook"]),
        type=row["type"],
        receipt_id=row["receipt_id"],
        view_digest=row["view_digest"],
        sealed=Sealed(bytes(row["sealed"]), row["key_id"]),
        derived_at=row["derived_at"],
    )


def _row(source: Source, made: NewEvent, now_us: int) -> tuple[Any, ...]:
    return (
        made.id, made.identity, *source.route.parts, made.type, source.id, made.position, source.view_digest,
        made.sealed, made.key_id, now_us,
    )  # fmt: skip


def _identity(row: tuple[Any, ...]) -> str:
    return str(row[1])

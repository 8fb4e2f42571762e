"""Transactions of derivation: the claim with its receipt, and the events with the end of their work item."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many
from doonce.events.tables import event
from doonce.ingress import store as ingress
from doonce.ingress.receipts import RouteKey, StoredReceipt
from doonce.work import settle
from doonce.work import store as work
from doonce.work.model import Claimed, Settled, Settlement

EVENT_COLUMNS = tuple(column.name for column in event.c)


class Unread(Record, frozen=True):
    """A claimed derivation: the receipt that it is about."""

    claimed: Claimed
    receipt: StoredReceipt | None


class NewEvent(Record, frozen=True):
    """An event to make, its content sealed. The id is made before the transaction (PROTOCOL T1)."""

    id: str
    identity: str
    type: str
    position: int
    sealed: bytes
    key_id: str


class Derivation(Record, frozen=True):
    """The end of one derivation: its events, all or none, and the settlement of its item."""

    settlement: Settlement
    deployment: str
    receipt: StoredReceipt | None
    events: tuple[NewEvent, ...]


def _of_receipt(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(event)
        .where(event.c.receipt_id == sa.bindparam("the_receipt", type_=IDENTITY))
        .order_by(event.c.position)
    )


OF_RECEIPT = Statement("events.of_receipt", _of_receipt)


def claim_unread(request: work.ClaimRequest) -> Txn[list[Unread]]:
    """Claim derivations with their receipts."""
    claimed = yield from work.claim(request)
    receipts = yield from ingress.load_all(one.item.subject_id for one in claimed)
    return [Unread(one, receipts.get(one.item.subject_id)) for one in claimed]


def finish_derivations(derivations: Sequence[Derivation]) -> Txn[list[Settled]]:
    """End derivations of one deployment under their live claims; a stale one makes no event.

    An event whose identity is there already is left as it is: a redelivery in another grouping makes nothing new
    (PROTOCOL I2). A rerun after an unknown commit answers as before.
    """
    settled = yield from settle.settle([one.settlement for one in derivations], derivations[0].deployment)
    now_us = yield from clock()
    rows = [
        _row(one.receipt, made, now_us)
        for one, outcome in zip(derivations, settled, strict=True)
        if outcome is not Settled.STALE and one.receipt is not None
        for made in one.events
    ]
    yield from insert_many(event, EVENT_COLUMNS, sorted(rows, key=_identity), skip_conflicts=True)
    return settled


def of_receipt(receipt_id: str) -> Txn[list[Row]]:
    """The events that a receipt was the first to tell of, in their order."""
    return (yield from fetch(OF_RECEIPT, the_receipt=receipt_id))


def _row(receipt: StoredReceipt, made: NewEvent, now_us: int) -> tuple[Any, ...]:
    route: RouteKey = receipt.route
    return (
        made.id, made.identity, *route.parts, made.type, receipt.id, made.position, receipt.view_digest, made.sealed,
        made.key_id, now_us,
    )  # fmt: skip


def _identity(row: tuple[Any, ...]) -> str:
    return str(row[1])

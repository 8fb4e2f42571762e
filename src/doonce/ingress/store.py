"""Transactions of ingress. Receipts are made in batches: with their identity and their first work item, all or none.

Lock order: identities (as handoffs), work items (PROTOCOL T4). Who won an identity is read by a locking statement after
the insert, by nonce (T7).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.base.slots import Slots
from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many
from doonce.ingress.receipts import (
    Arrival,
    Fate,
    KnownIdentity,
    Receipt,
    RouteKey,
    Sealed,
    StoredReceipt,
    judge,
)
from doonce.ingress.tables import ingress_identity, ingress_quarantine, ingress_receipt
from doonce.ownership.model import Family
from doonce.work import store as work
from doonce.work.model import NewItem, Scope

IDENTITY_COLUMNS = tuple(column.name for column in ingress_identity.c)
RECEIPT_COLUMNS = tuple(column.name for column in ingress_receipt.c)
QUARANTINE_COLUMNS = tuple(column.name for column in ingress_quarantine.c)
QUARANTINE_SLOTS = 16


def _identities(dialect: Dialect) -> sa.Select[Any]:
    keys = dialect.batch("keys", identity=IDENTITY)
    return (
        sa.select(*ingress_identity.c, ingress_receipt.c.id.label("applied"))
        .select_from(
            ingress_identity.outerjoin(ingress_receipt, ingress_receipt.c.id == ingress_identity.c.receipt_id)
        )
        .where(ingress_identity.c.identity.in_(sa.select(keys.c.identity).select_from(keys.source)))
        .order_by(ingress_identity.c.identity)
        .with_for_update(of=ingress_identity)
    )


def _quarantined(dialect: Dialect) -> sa.Select[Any]:
    keys = dialect.batch("keys", identity=IDENTITY)
    quarantine = ingress_quarantine.c
    return sa.select(
        quarantine.identity, quarantine.slot, quarantine.body_digest, quarantine.receipt_id
    ).where(quarantine.identity.in_(sa.select(keys.c.identity).select_from(keys.source)))


def _load(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(ingress_receipt).where(
        ingress_receipt.c.id.in_(sa.select(ids.c.id).select_from(ids.source))
    )


LOCK_IDENTITIES = Statement("ingress.lock_identities", _identities)
QUARANTINED = Statement("ingress.quarantined", _quarantined)
LOAD = Statement("ingress.load", _load)


def receive(arrivals: Sequence[Arrival]) -> Txn[list[Receipt]]:
    """Make each identity's first arrival a receipt with one work item; tell what became of the others.

    A duplicate gets the first one's receipt. Another body under a known identity is quarantined, in one of a bounded
    number of slots: where they are taken it is `FULL`, and nothing of it is durable. After a lost commit the same call
    finds its own nonce and answers as before.
    """
    now_us = yield from clock()
    yield from insert_many(
        ingress_identity,
        IDENTITY_COLUMNS,
        sorted((a.identity, a.receipt_id, a.body_digest, a.nonce, now_us) for a in arrivals),
        skip_conflicts=True,
    )
    known = yield from _lock(a.identity for a in arrivals)
    fates = [judge(known[a.identity], a) for a in arrivals]
    fresh = [
        a
        for a, fate in zip(arrivals, fates, strict=True)
        if fate is Fate.RECEIVED and not known[a.identity].applied
    ]
    yield from insert_many(ingress_receipt, RECEIPT_COLUMNS, [_receipt_row(a, now_us) for a in fresh])
    yield from work.insert([_work_of(a) for a in fresh], now_us=now_us)
    odd = [a for a, fate in zip(arrivals, fates, strict=True) if fate is Fate.QUARANTINED]
    kept = yield from _quarantine(odd, now_us)
    return [
        _receipt(arrival, fate, known[arrival.identity], kept, now_us)
        for arrival, fate in zip(arrivals, fates, strict=True)
    ]


def _lock(identities: Iterable[str]) -> Txn[dict[str, KnownIdentity]]:
    rows = yield from fetch(LOCK_IDENTITIES, keys=[(identity,) for identity in sorted(set(identities))])
    return {
        row["identity"]: KnownIdentity(
            row["identity"],
            row["receipt_id"],
            row["body_digest"],
            row["nonce"],
            row["received_at"],
            row["applied"] is not None,
        )
        for row in rows
    }


def _quarantine(arrivals: Sequence[Arrival], now_us: int) -> Txn[dict[tuple[str, str], str]]:
    """Keep odd bodies, each once, while there is room; returns what is kept now, by identity and body.

    Only under the identities' locks.
    """
    if not arrivals:
        return {}
    stored = yield from fetch(QUARANTINED, keys=[(key,) for key in sorted({a.identity for a in arrivals})])
    kept = {(row["identity"], row["body_digest"]): row["receipt_id"] for row in stored}
    slots = Slots(QUARANTINE_SLOTS, ((row["identity"], row["slot"]) for row in stored))
    rows = []
    for a in sorted(arrivals, key=lambda a: a.identity):
        if (a.identity, a.body_digest) not in kept and (slot := slots.take(a.identity)) is not None:
            kept[a.identity, a.body_digest] = a.receipt_id
            rows.append(
                (
                    a.identity, slot, *a.route.parts, a.receipt_id, a.secret_id, a.signed_at, a.body_digest,
                    a.body_bytes, a.sealed.raw, a.sealed.key_id, now_us,
                )
            )  # fmt: skip
    yield from insert_many(ingress_quarantine, QUARANTINE_COLUMNS, rows)
    return kept


def _receipt(
    arrival: Arrival, fate: Fate, known: KnownIdentity, kept: dict[tuple[str, str], str], now_us: int
) -> Receipt:
    if fate is not Fate.QUARANTINED:
        return Receipt(known.receipt_id, fate, known.received_at)
    receipt_id = kept.get((arrival.identity, arrival.body_digest))
    return Receipt(receipt_id or "", fate if receipt_id is not None else Fate.FULL, now_us)


def load_all(ids: Iterable[str]) -> Txn[dict[str, StoredReceipt]]:
    """Receipts by id, for work that is live: nothing of them changes meanwhile, so a plain read is enough."""
    wanted = sorted(set(ids))
    rows = (yield from fetch(LOAD, ids=[(receipt_id,) for receipt_id in wanted])) if wanted else []
    return {row["id"]: _stored(row) for row in rows}


def _stored(row: Row) -> StoredReceipt:
    return StoredReceipt(
        id=row["id"],
        route=RouteKey(row["org"], row["installation"], row["capability"], row["webhook"]),
        view_digest=row["view_digest"],
        identity=row["identity"],
        event_type=row["event_type"],
        body_digest=row["body_digest"],
        sealed=Sealed(bytes(row["sealed"]), row["key_id"]) if row["sealed"] is not None else None,
        received_at=row["received_at"],
    )


def _receipt_row(arrival: Arrival, now_us: int) -> tuple[Any, ...]:
    return (
        arrival.receipt_id, *arrival.route.parts, arrival.view_digest, arrival.identity, arrival.secret_id,
        arrival.signed_at, arrival.event_type, arrival.body_digest, arrival.body_bytes, arrival.sealed.raw,
        arrival.sealed.key_id, now_us,
    )  # fmt: skip


def _work_of(arrival: Arrival) -> NewItem:
    return NewItem(
        id=arrival.work_id,
        family=Family.EVENT.value,
        scope=Scope(arrival.route.org, arrival.route.installation),
        subject_kind="receipt",
        subject_id=arrival.receipt_id,
        view_digest=arrival.view_digest,
    )

"""Raw bodies at rest: read on request, erased when their time is over.

What is erased is the sealed body alone. The receipt, its identity and its digests stay: a provider may redeliver for as
long as a secret lives that verifies it, and must be known again then (PROTOCOL I3).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.schema import BODY, COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, certify, fetch, steady_clock
from doonce.ingress.catch_ups import page_place
from doonce.ingress.receipts import Sealed, body_place
from doonce.ingress.rewrapping import Shelf, shelf
from doonce.ingress.secrets import place_of
from doonce.ingress.tables import ingress_page, ingress_quarantine, ingress_receipt, webhook_secret
from doonce.work.model import TERMINAL
from doonce.work.tables import work_item

SECRETS: Final[Shelf] = shelf(webhook_secret, "id", place_of)
RECEIPTS: Final[Shelf] = shelf(ingress_receipt, "id", body_place)
QUARANTINED: Final[Shelf] = shelf(ingress_quarantine, "receipt_id", body_place)
PAGES: Final[Shelf] = shelf(ingress_page, "id", page_place)

ENDED: Final = sorted(state.value for state in TERMINAL)


class Erase(Record, frozen=True):
    """Erase what is older than `kept_us`, at most `rows_max` bodies of each kind: receipts, quarantined ones, pages."""

    kept_us: int
    rows_max: int


def _live() -> sa.ColumnElement[bool]:
    return sa.exists().where(work_item.c.subject_id == ingress_receipt.c.id, work_item.c.state.not_in(ENDED))


def _old_receipts(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(ingress_receipt.c.id)
        .where(
            ingress_receipt.c.sealed.is_not(None),
            ingress_receipt.c.received_at < sa.bindparam("before_us", type_=MICROSECONDS),
            sa.not_(_live()),
        )
        .order_by(ingress_receipt.c.received_at, ingress_receipt.c.id)
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _lock_receipts(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.select(
            ingress_receipt.c.id, sa.case((ingress_receipt.c.sealed.is_(None), 0), else_=1).label("kept")
        )
        .where(ingress_receipt.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .order_by(ingress_receipt.c.id)
        .with_for_update()
    )


def _at_rest(dialect: Dialect) -> sa.Select[Any]:
    ids = dialect.batch("ids", id=IDENTITY)
    return sa.select(ingress_receipt.c.id).where(
        ingress_receipt.c.id.in_(sa.select(ids.c.id).select_from(ids.source)), sa.not_(_live())
    )


def _erase_receipts(dialect: Dialect) -> sa.Update:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.update(ingress_receipt)
        .where(ingress_receipt.c.id.in_(sa.select(ids.c.id).select_from(ids.source)))
        .values(sealed=sa.bindparam("nothing", type_=BODY))
    )


def _old(table: sa.Table, name: str) -> sa.Select[Any]:
    return (
        sa.select(table.c[name])
        .where(
            table.c.sealed.is_not(None),
            table.c.received_at < sa.bindparam("before_us", type_=MICROSECONDS),
        )
        .order_by(table.c.received_at, table.c[name])
        .limit(sa.bindparam("rows", type_=COUNT))
    )


def _erase(dialect: Dialect, table: sa.Table, name: str) -> sa.Update:
    ids = dialect.batch("ids", id=IDENTITY)
    return (
        sa.update(table)
        .where(table.c[name].in_(sa.select(ids.c.id).select_from(ids.source)))
        .values(sealed=sa.bindparam("nothing", type_=BODY))
    )


def _sealed(table: sa.Table, name: str) -> sa.Select[Any]:
    return sa.select(table.c.sealed, table.c.key_id).where(
        table.c[name] == sa.bindparam("the_receipt", type_=IDENTITY), table.c.sealed.is_not(None)
    )


OLD_RECEIPTS = Statement("ingress.old_receipts", _old_receipts)
LOCK_RECEIPTS = Statement("ingress.lock_receipts", _lock_receipts)
AT_REST = Statement("ingress.at_rest", _at_rest)
ERASE_RECEIPTS = Statement("ingress.erase_receipts", _erase_receipts)
OLD_QUARANTINED = Statement("ingress.old_quarantined", lambda dialect: _old(ingress_quarantine, "receipt_id"))
ERASE_QUARANTINED = Statement(
    "ingress.erase_quarantined", lambda dialect: _erase(dialect, ingress_quarantine, "receipt_id")
)
OLD_PAGES = Statement("ingress.old_pages", lambda dialect: _old(ingress_page, "id"))
ERASE_PAGES = Statement("ingress.erase_pages", lambda dialect: _erase(dialect, ingress_page, "id"))
SEALED_PAGE = Statement("ingress.sealed_page", lambda dialect: _sealed(ingress_page, "id"))
SEALED = Statement("ingress.sealed", lambda dialect: _sealed(ingress_receipt, "id"))
SEALED_QUARANTINED = Statement(
    "ingress.sealed_quarantined", lambda dialect: _sealed(ingress_quarantine, "receipt_id")
)


def erase(asked: Erase) -> Txn[int]:
    """Erase bodies whose time is over, the oldest first; how many it was.

    A receipt whose derivation is under way keeps its body: whoever makes such work holds the receipt, so what is seen
    at rest under the lock stays so. After a jump of the clock nothing is erased (PROTOCOL C1).
    """
    now_us = yield from steady_clock()
    if now_us is None:
        return 0
    before_us = now_us - asked.kept_us
    old = yield from fetch(OLD_RECEIPTS, before_us=before_us, rows=asked.rows_max)
    ids = sorted((row[0],) for row in old)
    if ids:
        yield from fetch(LOCK_RECEIPTS, ids=ids)
        yield from certify(_certified_name(one) for (one,) in ids)
        ids = [(row[0],) for row in (yield from fetch(AT_REST, ids=ids))]
        yield from fetch(ERASE_RECEIPTS, ids=ids, nothing=None)
    odd = yield from fetch(OLD_QUARANTINED, before_us=before_us, rows=asked.rows_max)
    if odd:
        yield from fetch(ERASE_QUARANTINED, ids=sorted((row[0],) for row in odd), nothing=None)
    pages = yield from fetch(OLD_PAGES, before_us=before_us, rows=asked.rows_max)
    if pages:
        yield from fetch(ERASE_PAGES, ids=sorted((row[0],) for row in pages), nothing=None)
    return len(ids) + len(odd) + len(pages)


def lock(receipt_ids: Iterable[str]) -> Txn[dict[str, bool]]:
    """Hold receipts, so that no body of theirs is erased meanwhile; whether each still has its body."""
    rows = yield from fetch(LOCK_RECEIPTS, ids=[(one,) for one in sorted(set(receipt_ids))])
    yield from certify(_certified_name(row["id"]) for row in rows)
    return {row["id"]: bool(row["kept"]) for row in rows}


def _certified_name(receipt_id: str) -> str:
    """What whoever erases a body, and whoever makes work that reads it, both certify (PROTOCOL S5)."""
    return f"receipt:{receipt_id}"


def sealed_page(page_id: str) -> Txn[Sealed | None]:
    """The sealed body of a page that a catch-up has read; None when there is none (any more)."""
    rows = yield from fetch(SEALED_PAGE, the_receipt=page_id)
    return Sealed(bytes(rows[0]["sealed"]), rows[0]["key_id"]) if rows else None


def sealed_body(receipt_id: str) -> Txn[Sealed | None]:
    """The sealed body of a receipt, a quarantined one's too; None when there is none (any more)."""
    rows = (yield from fetch(SEALED, the_receipt=receipt_id)) or (
        yield from fetch(SEALED_QUARANTINED, the_receipt=receipt_id)
    )
    return Sealed(bytes(rows[0]["sealed"]), rows[0]["key_id"]) if rows else None

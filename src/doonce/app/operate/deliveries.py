"""How receiving stands, in bounded reads: what came, what differs, what was turned away, and what may be lost."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from doonce.app.operate.model import DeliveryStatus, TurnedAway
from doonce.db.schema import COUNT, IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch
from doonce.events.tables import event
from doonce.ingress.tables import ingress_quarantine, ingress_receipt, ingress_rejection
from doonce.work.model import Scope

COUNT_MAX: Final = 10_000
"""Rows are looked at up to here: the exact number of more is worth no scan."""

NAMED_MAX: Final = 20
"""Quarantined deliveries that are named, the newest first."""

LOOKED_BACK_US: Final = 86_400_000_000
"""A day: what an operator means by "does anything come in"."""


def _count(table: sa.Table, column: str, *, scoped: bool) -> sa.Select[Any]:
    """Rows after an id, of one installation where `scoped`: of so many newest rows as are looked at."""
    looked_at = (
        sa.select(table.c.org, table.c.installation)
        .where(table.c[column] > sa.bindparam("after", type_=IDENTITY))
        .order_by(table.c[column].desc())
        .limit(sa.bindparam("rows", type_=COUNT))
        .subquery("looked_at")
    )
    shown: sa.ColumnElement[int] = _of_scope(looked_at) if scoped else sa.func.count()
    columns: list[Any] = [sa.func.count(), shown]
    return sa.select(*columns).select_from(looked_at)


def _of_scope(rows: sa.FromClause) -> sa.ColumnElement[int]:
    here = sa.and_(
        rows.c.org == sa.bindparam("the_org", type_=IDENTITY),
        rows.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
    )
    return sa.func.count(sa.case((here, 1)))


def _newest_quarantined(*, scoped: bool) -> sa.Select[Any]:
    rows = (
        sa.select(ingress_quarantine.c.receipt_id)
        .order_by(ingress_quarantine.c.receipt_id.desc())
        .limit(NAMED_MAX)
    )
    if scoped:
        rows = rows.where(
            ingress_quarantine.c.org == sa.bindparam("the_org", type_=IDENTITY),
            ingress_quarantine.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
        )
    return rows


def _turned_away(dialect: Dialect, *, scoped: bool) -> sa.Select[Any]:
    total = sa.cast(sa.func.sum(ingress_rejection.c["count"]), COUNT)
    rows = (
        sa.select(ingress_rejection.c.reason, total, sa.func.max(ingress_rejection.c.last_at))
        .group_by(ingress_rejection.c.reason)
        .order_by(ingress_rejection.c.reason)
    )
    if scoped:
        rows = rows.where(
            ingress_rejection.c.org == sa.bindparam("the_org", type_=IDENTITY),
            ingress_rejection.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
        )
    return rows


def _counter(table: sa.Table, column: str) -> tuple[Statement, Statement]:
    return (
        Statement(f"operate.{table.name}_count", lambda dialect: _count(table, column, scoped=False)),
        Statement(f"operate.{table.name}_count_in_scope", lambda dialect: _count(table, column, scoped=True)),
    )


RECEIPTS = _counter(ingress_receipt, "id")
EVENTS = _counter(event, "id")
QUARANTINED = _counter(ingress_quarantine, "receipt_id")
NEWEST_QUARANTINED = Statement(
    "operate.newest_quarantined", lambda dialect: _newest_quarantined(scoped=False)
)
NEWEST_QUARANTINED_IN_SCOPE = Statement(
    "operate.newest_quarantined_in_scope", lambda dialect: _newest_quarantined(scoped=True)
)
TURNED_AWAY = Statement("operate.turned_away", lambda dialect: _turned_away(dialect, scoped=False))
TURNED_AWAY_IN_SCOPE = Statement(
    "operate.turned_away_in_scope", lambda dialect: _turned_away(dialect, scoped=True)
)


def delivery_status(scope: Scope | None) -> Txn[DeliveryStatus]:
    """How receiving stands, in one installation or in all.

    A day back is by the time in the ids, which their makers' clocks gave: near enough for a count, no proof.
    """
    now_us = yield from clock()
    after = f"{max(0, now_us - LOOKED_BACK_US) // 1_000:012x}"
    received, more_received = yield from _counted(RECEIPTS, f"ing_{after}", scope)
    events, more_events = yield from _counted(EVENTS, f"evt_{after}", scope)
    quarantined, more_quarantined = yield from _counted(QUARANTINED, "", scope)
    rows = yield from _within(scope, TURNED_AWAY, TURNED_AWAY_IN_SCOPE)
    newest = yield from _within(scope, NEWEST_QUARANTINED, NEWEST_QUARANTINED_IN_SCOPE)
    return DeliveryStatus(
        received=received,
        events=events,
        quarantined=quarantined,
        newest_quarantined=tuple(row[0] for row in newest),
        bounded=more_received or more_events or more_quarantined,
        turned_away=tuple(TurnedAway(reason=row[0], count=row[1], last_at_us=row[2]) for row in rows),
    )


def _within(scope: Scope | None, everywhere: Statement, inside: Statement) -> Txn[list[Row]]:
    if scope is None:
        return (yield from fetch(everywhere))
    return (yield from fetch(inside, the_org=scope.org, the_installation=scope.installation))


def _counted(counter: tuple[Statement, Statement], after: str, scope: Scope | None) -> Txn[tuple[int, bool]]:
    everywhere, inside = counter
    if scope is None:
        rows = yield from fetch(everywhere, after=after, rows=COUNT_MAX)
    else:
        rows = yield from fetch(
            inside, after=after, rows=COUNT_MAX, the_org=scope.org, the_installation=scope.installation
        )
    return rows[0][1], rows[0][0] >= COUNT_MAX

"""What was turned away, and what may have been lost: counted in memory, durable a moment later, bounded for ever.

One row for each route and reason, and one open gap for each route, whatever strangers send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from doonce.base.records import Record
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Row, Txn, clock, fetch, insert_many, lock_exclusive
from doonce.ingress.gaps import ROUTE, Cause, lock_name, read_gap
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_gap, ingress_rejection

REJECTION_COLUMNS = tuple(column.name for column in ingress_rejection.c)
GAP_COLUMNS = tuple(column.name for column in ingress_gap.c)
STILL_OPEN = (None, None, None, Cause.LOSS.value, None, None, None)
"""When, by whom and why a gap was closed; what caused it, who asked for it and why, its catch-up."""


class Tally(Record, frozen=True):
    """What happened at one route since the last flush: how often for each reason, and how much may be lost for good.

    `lost_us`: how long ago the first of the losses was. Counts wait in memory while the database is away, and the gap
    begins when something was lost, not when that could be written.
    """

    route: RouteKey
    rejections: Mapping[str, int]
    losses: int
    lost_us: int = 0


def _count_rejections(dialect: Dialect) -> sa.Update:
    counted = dialect.batch("counted", **dict.fromkeys((*ROUTE, "reason"), IDENTITY), more=COUNT)
    same = [ingress_rejection.c[name] == counted.c[name] for name in (*ROUTE, "reason")]
    return (
        sa.update(ingress_rejection)
        .where(*same)
        .values(
            count=ingress_rejection.c["count"] + counted.c.more,
            last_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


def _gaps(dialect: Dialect) -> sa.Select[Any]:
    routes = dialect.batch("routes", **dict.fromkeys(ROUTE, IDENTITY))
    same = [ingress_gap.c[name] == routes.c[name] for name in ROUTE]
    return sa.select(ingress_gap).join(routes.source, sa.and_(*same)).order_by(ingress_gap.c.sequence)


def _widen_gaps(dialect: Dialect) -> sa.Update:
    wider = dialect.batch(
        "wider", **dict.fromkeys(ROUTE, IDENTITY), sequence=COUNT, more=COUNT, since_us=MICROSECONDS
    )
    earlier = wider.c.since_us < ingress_gap.c.opened_at
    same = [ingress_gap.c[name] == wider.c[name] for name in (*ROUTE, "sequence")]
    return (
        sa.update(ingress_gap)
        .where(*same)
        .values(
            losses=ingress_gap.c.losses + wider.c.more,
            opened_at=sa.case((earlier, wider.c.since_us), else_=ingress_gap.c.opened_at),
            last_at=sa.bindparam("now_us", type_=MICROSECONDS),
        )
    )


COUNT_REJECTIONS = Statement("ingress.count_rejections", _count_rejections)
GAPS = Statement("ingress.gaps", _gaps)
WIDEN_GAPS = Statement("ingress.widen_gaps", _widen_gaps)
REJECTIONS = Statement(
    "ingress.rejections",
    lambda dialect: sa.select(ingress_rejection).order_by(ingress_rejection.c.last_at.desc()),
)


def note(tallies: list[Tally]) -> Txn[None]:
    """Add to the counts of these routes; a loss widens the route's open gap, or opens one (PROTOCOL I4).

    A rerun after a commit whose result is not known counts twice: a count too high alarms, one too low hides.
    """
    yield from lock_exclusive(lock_name(tally.route) for tally in tallies)
    now_us = yield from clock()
    counted = [
        (*tally.route.parts, reason, count)
        for tally in tallies
        for reason, count in sorted(tally.rejections.items())
    ]
    new = [(*row[:-1], 0, now_us, now_us) for row in counted]
    yield from insert_many(ingress_rejection, REJECTION_COLUMNS, new, skip_conflicts=True)
    if counted:
        yield from fetch(COUNT_REJECTIONS, counted=counted, now_us=now_us)
    lossy = {tally.route.parts: tally for tally in tallies if tally.losses}
    if not lossy:
        return
    found = [read_gap(row) for row in (yield from fetch(GAPS, routes=sorted(lossy)))]
    newest = {gap.route.parts: gap.sequence for gap in found}
    opened = {
        gap.route.parts: gap.sequence for gap in found if gap.closed_at is None and gap.cause is Cause.LOSS
    }
    wider = [
        (*parts, sequence, lossy[parts].losses, now_us - lossy[parts].lost_us)
        for parts, sequence in opened.items()
    ]
    fresh = [
        (*parts, newest.get(parts, 0) + 1, tally.losses, now_us - tally.lost_us, now_us, *STILL_OPEN)
        for parts, tally in sorted(lossy.items())
        if parts not in opened
    ]
    if wider:
        yield from fetch(WIDEN_GAPS, wider=wider, now_us=now_us)
    yield from insert_many(ingress_gap, GAP_COLUMNS, fresh)


def rejections() -> Txn[list[Row]]:
    """What was turned away, the newest first."""
    return (yield from fetch(REJECTIONS))

"""Gaps: time in which a provider that sends once may have sent what nobody took; open until somebody looked (I4)."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import sqlalchemy as sa
from msgspec.structs import replace

from doonce.base.errors import Conflict, MissingOrDenied, Stale
from doonce.base.keys import frame
from doonce.base.records import Record
from doonce.db.schema import COUNT, IDENTITY, MICROSECONDS, TEXT
from doonce.db.statement import Statement
from doonce.db.transaction import Row, Txn, clock, fetch, lock_exclusive
from doonce.ingress.receipts import RouteKey
from doonce.ingress.tables import ingress_gap
from doonce.work.model import Scope

GAPS_MAX: Final = 500
"""Open gaps that are listed, the oldest first; there is at most one for each route."""

OPEN_GAPS: Final = "`doonce gap list` has the open ones, with their numbers"

ROUTE: Final = ("org", "installation", "capability", "webhook")


class Cause(str, Enum):
    """Why a gap is there: deliveries were turned away, or an operator says that some may be missing."""

    LOSS = "loss"
    OPERATOR = "operator"


class Gap(Record, frozen=True):
    """A gap as its row has it. `losses` counts what was turned away in it; some of that may never have been true.

    `catch_up_id` is the newest catch-up over it. `asked_by` and `asked_why` are of an operator's gap, whose losses
    nobody counted.
    """

    route: RouteKey
    sequence: int
    losses: int
    opened_at: int
    last_at: int
    closed_at: int | None
    closed_by: str | None
    reason: str | None
    cause: Cause
    asked_by: str | None
    asked_why: str | None
    catch_up_id: str | None


class CloseGap(Record, frozen=True):
    """An operator's word that the `losses` of a gap were looked into."""

    route: RouteKey
    sequence: int
    losses: int
    who: str
    reason: str


def lock_name(route: RouteKey) -> str:
    """What excludes everybody who counts at this route, or closes a gap of it."""
    return frame("ingress_tally", *route.parts)


def _open(*, scoped: bool) -> sa.Select[Any]:
    rows = (
        sa.select(ingress_gap)
        .where(ingress_gap.c.closed_at.is_(None))
        .order_by(ingress_gap.c.opened_at, *[ingress_gap.c[name] for name in ROUTE])
        .limit(GAPS_MAX)
    )
    if scoped:
        rows = rows.where(
            ingress_gap.c.org == sa.bindparam("the_org", type_=IDENTITY),
            ingress_gap.c.installation == sa.bindparam("the_installation", type_=IDENTITY),
        )
    return rows


def _of_one() -> list[sa.ColumnElement[bool]]:
    route = [ingress_gap.c[name] == sa.bindparam(f"the_{name}", type_=IDENTITY) for name in ROUTE]
    return [*route, ingress_gap.c.sequence == sa.bindparam("the_sequence", type_=COUNT)]


OPEN = Statement("ingress.open_gaps", lambda dialect: _open(scoped=False))
OPEN_IN_SCOPE = Statement("ingress.open_gaps_in_scope", lambda dialect: _open(scoped=True))
GET = Statement("ingress.gap", lambda dialect: sa.select(ingress_gap).where(*_of_one()))
CLOSE = Statement(
    "ingress.close_gap",
    lambda dialect: (
        sa.update(ingress_gap)
        .where(*_of_one(), ingress_gap.c.closed_at.is_(None))
        .values(
            closed_at=sa.bindparam("now_us", type_=MICROSECONDS),
            closed_by=sa.bindparam("who", type_=IDENTITY),
            reason=sa.bindparam("why", type_=TEXT),
        )
    ),
)


def open_gaps(scope: Scope | None) -> Txn[list[Gap]]:
    """Open gaps of one installation, or of all, the oldest first; bounded."""
    if scope is None:
        rows = yield from fetch(OPEN)
    else:
        rows = yield from fetch(OPEN_IN_SCOPE, the_org=scope.org, the_installation=scope.installation)
    return [read_gap(row) for row in rows]


def close(asked: CloseGap) -> Txn[Gap | MissingOrDenied | Stale | Conflict]:
    """Close a gap for ever; what is lost later opens the next one. Refusals are values.

    `Stale` when more was lost than was looked into, `Conflict` when somebody else has closed it. A rerun after an
    unknown commit finds its own word there.
    """
    yield from lock_exclusive([lock_name(asked.route)])
    now_us = yield from clock()
    gap = yield from find(asked.route, asked.sequence)
    if gap is None:
        return MissingOrDenied("there is no such gap", hint=OPEN_GAPS)
    if gap.losses != asked.losses:
        return Stale(
            f"the gap has {gap.losses} losses by now, not {asked.losses}",
            hint="look into those too, then close it with that number",
            axis="losses",
        )
    if gap.closed_at is not None:
        if (gap.closed_by, gap.reason) == (asked.who, asked.reason):
            return gap
        return Conflict(f"the gap has been closed by {gap.closed_by}: {gap.reason}")
    yield from end(gap, asked.who, asked.reason, now_us)
    return replace(gap, closed_at=now_us, closed_by=asked.who, reason=asked.reason)


def find(route: RouteKey, sequence: int) -> Txn[Gap | None]:
    """A gap, for a transaction that holds its route's lock."""
    rows = yield from fetch(GET, **_named(route), the_sequence=sequence)
    return read_gap(rows[0]) if rows else None


def end(gap: Gap, who: str, reason: str, now_us: int) -> Txn[None]:
    """Close a gap under its route's lock; one that is closed stays as it is."""
    yield from fetch(
        CLOSE, **_named(gap.route), the_sequence=gap.sequence, now_us=now_us, who=who, why=reason
    )


def _named(route: RouteKey) -> dict[str, str]:
    return {f"the_{name}": part for name, part in zip(ROUTE, route.parts, strict=True)}


def read_gap(row: Row) -> Gap:
    """The gap of a row."""
    return Gap(
        RouteKey(row["org"], row["installation"], row["capability"], row["webhook"]),
        row["sequence"],
        row["losses"],
        row["opened_at"],
        row["last_at"],
        row["closed_at"],
        row["closed_by"],
        row["reason"],
        Cause(row["cause"]),
        row["asked_by"],
        row["asked_why"],
        row["catch_up_id"],
    )

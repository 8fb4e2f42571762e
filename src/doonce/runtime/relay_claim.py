"""Claiming due rows of the outbox: a lease on each, at most one row of a lane, and no lock while the service is asked.

On SQLite and PostgreSQL one statement searches and leases. On the MySQL wire one would lock what it only looks at, and
MySQL cannot update a table that it selects from: there a search without locks, a lock by primary key that skips what
others hold, and the lease follow one another in one transaction.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Executable,
    FromClause,
    Select,
    bindparam,
    exists,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy import text as sql_text

from doonce.base.json import dumps
from doonce.runtime.model import (
    OPEN,
    OutboxState,
    Wish,
)
from doonce.runtime.outbox_store import INTENT_COLUMNS, Intent
from doonce.runtime.statements import (
    Engine,
    Rows,
    Statement,
    Transaction,
    constant,
    engine_name,
    fetch,
    given,
    now_us,
    now_us_once,
    one_of,
    statement,
)
from doonce.runtime.tables import outbox

_c = outbox.c


@dataclass(frozen=True, slots=True)
class Claimed:
    """One row that this relay may ask about until its lease ends."""

    intent: Intent
    wish: Wish
    tries: int


class HeadPolicy(str, Enum):
    """What a refused row does to the later rows of its source lane (PROTOCOL L3)."""

    BLOCK = "block"
    PASS = "pass"  # noqa: S105  # a policy, not a password


_HOLDING: Final[dict[HeadPolicy, tuple[OutboxState, ...]]] = {
    HeadPolicy.BLOCK: OPEN,
    HeadPolicy.PASS: (OutboxState.PENDING,),
}


_candidate: Final = outbox.alias("candidate")


def _read_by(search: Select[Any], rows: FromClause, index: str) -> Select[Any]:
    """The search by this index on the MySQL wire, whatever its optimizer thinks of a small table."""
    for dialect in ("mysql", "mariadb"):
        search = search.with_hint(rows, f"FORCE INDEX ({index})", dialect)
    return search


def _due(policy: HeadPolicy, now: ColumnElement[int]) -> Select[Any]:
    """The rows to hand over now, the longest due first."""
    row = _candidate
    earlier = outbox.alias("earlier")
    # Lane positions are drawn under the lane's lock until commit, so no earlier row can appear later.
    ahead = select(literal(1)).where(
        earlier.c.org == row.c.org,
        earlier.c.installation == row.c.installation,
        earlier.c.source_lane == row.c.source_lane,
        one_of(earlier.c.state, _HOLDING[policy]),
        earlier.c.lane_position < row.c.lane_position,
    )
    held_up = exists(_read_by(ahead, earlier, "doonce_outbox_lane_open"))
    return (
        select(row.c.outbox_id)
        .where(
            row.c.state == constant(OutboxState.PENDING),
            row.c.due_at_us <= now,
            row.c.lease_until_us < now,
            # A withdrawal need not wait for its turn: it asks for nothing to be done.
            or_(row.c.source_lane.is_(None), row.c.wish == constant(Wish.WITHDRAW), ~held_up),
        )
        .order_by(row.c.due_at_us, row.c.outbox_id)
        .limit(given("rows_max"))
    )


def _claim(policy: HeadPolicy) -> Statement:
    def build(engine: Engine) -> Executable:
        due = _due(policy, now_us_once()).with_for_update(skip_locked=True, of=_candidate)
        if engine == "postgresql":
            # In a CTE it runs once; a subquery may be planned as the inner side of a loop, and claim too much.
            due = select(due.cte("due").c.outbox_id)
        return (
            update(outbox)
            .where(_c.outbox_id.in_(due))
            .values(lease_token=given("token"), lease_until_us=now_us() + given("lease_us"))
        )

    return Statement("claim_" + policy.value, build)


_CLAIMS: Final[dict[HeadPolicy, Statement]] = {policy: _claim(policy) for policy in HeadPolicy}


def _find(policy: HeadPolicy) -> Statement:
    def build(_engine: Engine) -> Executable:
        return _read_by(_due(policy, now_us()), _candidate, "doonce_outbox_due")

    return Statement("find_" + policy.value, build)


_FINDS: Final[dict[HeadPolicy, Statement]] = {policy: _find(policy) for policy in HeadPolicy}

CROWD: Final = 4
"""How many relays may find the same rows first, and still each take others."""


@statement
def lock_found(_engine: Engine) -> Executable:
    """Those of the found rows that nobody else holds and that are still free. Ids are given in hexadecimal.

    MySQL refuses to lock what is found, so that the outbox is named; to MariaDB that is a comment.
    """
    return (
        sql_text(
            "SELECT o.outbox_id FROM JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(512) PATH '$')) AS found"
            " STRAIGHT_JOIN doonce_outbox AS o FORCE INDEX (PRIMARY) ON o.outbox_id = UNHEX(found.id)"
            " WHERE o.state = :pending"
            " AND o.due_at_us <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
            " AND o.lease_until_us < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
            " LIMIT :rows_max FOR UPDATE /*!80001 OF o */ SKIP LOCKED"
        )
        .bindparams(bindparam("pending", OutboxState.PENDING.value))
        .columns(_c.outbox_id)
    )


@statement
def lease_locked(_engine: Engine) -> Executable:
    """Lease rows that this transaction has locked."""
    return sql_text(
        "UPDATE JSON_TABLE(:ids, '$[*]' COLUMNS (id VARCHAR(512) PATH '$')) AS found"
        " STRAIGHT_JOIN doonce_outbox AS o FORCE INDEX (PRIMARY) ON o.outbox_id = UNHEX(found.id)"
        " SET o.lease_token = :token,"
        " o.lease_until_us = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + :lease_us"
    ).bindparams(bindparam("token", type_=_c.lease_token.type))


def _claim_apart(token: str, *, rows_max: int, lease_us: int, policy: HeadPolicy) -> Transaction[None]:
    """Find, lock and lease one after the other, where one statement cannot do it, or locks what it only looks at.

    The search locks nothing and may be of an old snapshot. What it says of a lane stays true for ever, since no
    earlier row of it can appear; whether a row is still free is looked at again under its lock.
    """
    found = yield from fetch(_FINDS[policy], rows_max=CROWD * rows_max)
    if not found:
        return
    locked = yield from fetch(lock_found, ids=_hexadecimal(found), rows_max=rows_max)
    if locked:
        yield from fetch(lease_locked, ids=_hexadecimal(locked), token=token, lease_us=lease_us)


def _hexadecimal(rows: Rows) -> str:
    return dumps([row["outbox_id"].encode().hex() for row in rows]).decode()


@statement
def claimed_rows(_engine: Engine) -> Executable:
    return (
        select(*INTENT_COLUMNS, _c.wish, _c.tries)
        .where(_c.lease_token == given("token"), _c.state == constant(OutboxState.PENDING))
        .order_by(_c.due_at_us, _c.outbox_id)
    )


def claim(token: str, *, rows_max: int, lease_us: int, policy: HeadPolicy) -> Transaction[list[Claimed]]:
    """Lease up to `rows_max` due rows under `token`, at most one of each source lane (PROTOCOL L2)."""
    if (yield from engine_name()) == "mysql":
        yield from _claim_apart(token, rows_max=rows_max, lease_us=lease_us, policy=policy)
    else:
        yield from fetch(_CLAIMS[policy], token=token, rows_max=rows_max, lease_us=lease_us)
    rows = yield from fetch(claimed_rows, token=token)
    claimed = []
    for row in rows:
        pinned = {column.name: row[column.name] for column in INTENT_COLUMNS}
        pinned["payload"] = bytes(pinned["payload"])
        claimed.append(Claimed(Intent(**pinned), Wish(row["wish"]), row["tries"]))
    return claimed

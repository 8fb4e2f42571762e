"""Leases: one row for each claim, that says where to look when it is over.

A claim that ends well never looks at its row again. When its time is over, the next claim of the family *recalls* it:
what still runs under its token gets a hint of its own, at the end of its own lease, and the row goes. Like every hint,
a row may be missing or spare: the decision is always taken on the locked item (PROTOCOL W7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from doonce.db.schema import IDENTITY
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, fetch, insert_many
from doonce.work.items import add_ready, now_expression
from doonce.work.model import State, shelf_of
from doonce.work.tables import work_item, work_lease

LEASE_COLUMNS = tuple(column.name for column in work_lease.c)
LEASES_MAX: Final = 64
"""Leases that are recalled at once: some thousands of items, nearly all of which have ended."""


def _over(dialect: Dialect) -> sa.Select[Any]:
    return dialect.free(
        sa.select(work_lease.c.token, work_lease.c["items"])
        .where(
            work_lease.c.family == sa.bindparam("family", type_=IDENTITY),
            work_lease.c.due <= now_expression(dialect),
        )
        .order_by(work_lease.c.due)
        .limit(sa.literal_column(str(LEASES_MAX)))
    )


def _still_running(dialect: Dialect) -> sa.Select[Any]:
    claimed = dialect.batch("claimed", id=IDENTITY, token=IDENTITY)
    item = work_item
    return sa.select(
        item.c.family, item.c.capability_version, item.c.org, item.c.installation, item.c.lease_until, item.c.id,
        item.c.source_lane, item.c.target_lane,
    ).select_from(
        claimed.source.join(
            item,
            sa.and_(
                item.c.id == claimed.c.id,
                item.c.lease_token == claimed.c.token,
                item.c.state == State.PROCESSING.value,
            ),
        )
    )  # fmt: skip


def _forget(dialect: Dialect) -> sa.Delete:
    tokens = dialect.batch("tokens", token=IDENTITY)
    return sa.delete(work_lease).where(
        work_lease.c.token.in_(sa.select(tokens.c.token).select_from(tokens.source))
    )


OVER = Statement("work.leases_over", _over)
STILL_RUNNING = Statement("work.still_running", _still_running)
FORGET = Statement("work.forget_leases", _forget)


def keep(family: str, token: str, items: Iterable[str], lease_ends: int) -> Txn[None]:
    """Remember which items a claim has taken, until their lease is over."""
    listed = msgspec.json.encode(list(items)).decode()
    yield from insert_many(work_lease, LEASE_COLUMNS, [(token, family, lease_ends + 1, listed)])


def recall(family: str) -> Txn[None]:
    """Give what still runs under leases that are over hints of its own; bounded.

    An item that was renewed meanwhile gets its hint at the end of its lease as it is now.
    """
    over = yield from fetch(OVER, family=family)
    if not over:
        return
    claimed = [(item_id, row["token"]) for row in over for item_id in msgspec.json.decode(row["items"])]
    running = yield from fetch(STILL_RUNNING, claimed=claimed)
    yield from add_ready(
        (row[0], shelf_of(row[1]), row[2], row[3], row[4] + 1, row[5], row[6], row[7]) for row in running
    )
    yield from fetch(FORGET, tokens=[(row["token"],) for row in over])

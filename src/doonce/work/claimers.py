"""Which processes of older releases worked lately: what the word of `doonce migrate --after` is checked against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from doonce.db.schema import MICROSECONDS
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch
from doonce.work.tables import work_claimer

SEEN_US: Final = 5 * 60 * 1_000_000
"""Many times the default lease. A process that claimed so lately is taken to be alive."""
KNOWS: Final = "@"


def claimer_name(process_id: str, revision: str) -> str:
    """A process as the owner of leases: with the newest schema that its release knows."""
    return f"{process_id}{KNOWS}{revision}"


def _recent(dialect: Dialect) -> sa.Select[Any]:
    return (
        sa.select(work_claimer.c.owner, sa.func.max(work_claimer.c.claimed_at).label("claimed_at"))
        .where(work_claimer.c.claimed_at > sa.bindparam("after_us", type_=MICROSECONDS))
        .group_by(work_claimer.c.owner)
        .order_by(work_claimer.c.owner)
    )


RECENT: Final = Statement("work.recent_claimers", _recent)


def older_claimers(revision: str) -> Txn[Sequence[str]]:
    """The processes that claimed within five minutes and do not know this revision, each with how long ago that was.

    None of them is no proof: a process that found nothing to do, or that only serves HTTP, is not among them.
    """
    now_us = yield from clock()
    rows = yield from fetch(RECENT, after_us=now_us - SEEN_US)
    return [
        f"{row['owner']} {max(0, now_us - row['claimed_at']) // 1_000_000} seconds ago"
        for row in rows
        if row["owner"].rpartition(KNOWS)[2] < revision or KNOWS not in row["owner"]
    ]

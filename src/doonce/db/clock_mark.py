"""The newest time that the database was seen to have, kept in it: a clock that was set back while nobody ran is noticed
at the next start. (One that jumps under a running process is `ClockWatch`'s.)

On SQLite it is the clock itself, which no commit sets back (PROTOCOL C2). Elsewhere whoever works raises it at each of
its looks. It decides nothing but whether a process may start: a crash leaves it behind by a look, and no harm done.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import sqlalchemy as sa

from doonce.base.errors import Unavailable
from doonce.db import mysql, postgresql
from doonce.db.database import Database
from doonce.db.schema import clock
from doonce.db.statement import Dialect, DialectName, Statement
from doonce.db.transaction import Txn, fetch

CLOCKS: Final = {
    DialectName.SQLITE: "SELECT doonce_host_us()",
    DialectName.POSTGRESQL: postgresql.CLOCK,
    DialectName.MYSQL: mysql.CLOCK,
}


def _now(dialect: Dialect) -> sa.ColumnElement[int]:
    return sa.literal_column(f"({CLOCKS[dialect.name]})", sa.BigInteger())


def _raised(dialect: Dialect) -> sa.Update:
    greater = sa.func.max if dialect.name is DialectName.SQLITE else sa.func.greatest
    return sa.update(clock).where(clock.c.id == 1).values(now_us=greater(clock.c.now_us, _now(dialect)))


READ = Statement(
    "clock_mark.read",
    lambda dialect: sa.select(clock.c.now_us, _now(dialect).label("clock_us")).where(clock.c.id == 1),
)
RAISE = Statement("clock_mark.raise", _raised)
SET = Statement(
    "clock_mark.set",
    lambda dialect: sa.update(clock).where(clock.c.id == 1).values(now_us=_now(dialect)),
)


def raise_mark() -> Txn[None]:
    """Note what time it is, unless a newer time was seen.

    Writes in any case, so a user who may only read is refused here, at start, and not at his first work.
    """
    yield from fetch(RAISE)


def set_mark() -> Txn[None]:
    """Believe the clock as it is, also where it is behind what was seen."""
    yield from fetch(SET)


def refusal(is_sqlite: bool, hold_us: int) -> Txn[str]:
    """Why nothing may start, or "": the clock is behind what was seen by more than the longest lease.

    Less than that is what a process holds for after a jump, and cures itself in that time (PROTOCOL C1).
    """
    seen_us, clock_us = (yield from fetch(READ))[0]
    if seen_us - clock_us <= hold_us:
        return ""
    whose = "this host's clock" if is_sqlite else "the database's clock"
    return (
        f"{whose} says {_shown(clock_us)}, {(seen_us - clock_us) // 1_000_000} s before the newest time that was seen "
        f"here, {_shown(seen_us)}"
    )


def _shown(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="seconds")


class ClockMark:
    """Keeps one database's mark, for one process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._jumps = database.clock_watch.jumps

    async def prove(self) -> None:
        """Raise `Unavailable`, with what to do, when the clock was set back while nobody ran; else raise the mark."""
        why = await self.doubt()
        if why:
            raise Unavailable(
                why,
                hint="set it right (NTP) and start again; if it is right now and was ahead before, say so: "
                "`doonce declare clock --reason …`",
            )
        await self._database.transact(raise_mark)

    async def doubt(self) -> str:
        """Why nothing may start now, or ""."""
        is_sqlite = self._database.dialect is DialectName.SQLITE
        return await self._database.read(refusal, is_sqlite, self._database.settings.clock_hold_us)

    async def keep(self) -> None:
        """Raise the mark. After a jump that this process has seen and waited for, follow the clock wherever it went.

        On SQLite nothing is to be done: each commit moves its clock on, and none sets it back.
        """
        if self._database.dialect is DialectName.SQLITE or not self._database.steady():
            return
        jumps = self._database.clock_watch.jumps
        if jumps == self._jumps:
            await self._database.transact(raise_mark)
        else:
            await self._database.transact(set_mark)
            self._jumps = jumps

"""The newest time that was seen: a clock that was set back while nobody ran is refused at the next start (C1)."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.store.db.elsewhere import pinned_elsewhere
from tests.store.db.owners import import_tables

from doonce.base.errors import Conflict, Unavailable
from doonce.db import incarnation, migrate
from doonce.db.clock import boottime_ns
from doonce.db.clock_mark import ClockMark
from doonce.db.database import Database, RetrySettings, open_database
from doonce.db.durability import Durability
from doonce.db.incarnation import Declaration
from doonce.db.schema import MICROSECONDS
from doonce.db.schema import clock as clock_table
from doonce.db.sqlite import SqliteDriver, SqliteSettings
from doonce.db.statement import DialectName, Statement
from doonce.db.transaction import Txn, clock, fetch
from doonce.ownership import store as ownership

import_tables()
INSTALL = partial(ownership.install, "test", "sha256:0", "op_1")
HOLD_US = 60_000_000
HOUR_US = 3_600_000_000

SHIFT = Statement(
    "test.shift_mark",
    lambda dialect: sa.update(clock_table).where(clock_table.c.id == 1).values(
        now_us=sa.bindparam("now_us", type_=MICROSECONDS)
    ),
)  # fmt: skip
MARK = Statement("test.mark", lambda dialect: sa.select(clock_table.c.now_us).where(clock_table.c.id == 1))


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    await migrate.migrate(database_url, install=INSTALL)
    opened = open_database(database_url, settings=RetrySettings(clock_hold_us=HOLD_US))
    yield opened
    await opened.close()


def read_mark() -> Txn[int]:
    return int((yield from fetch(MARK))[0][0])


def tick() -> Txn[int]:
    return (yield from clock())


def seen_ahead(by_us: int) -> Txn[int]:
    """As if somebody had seen a time so far from now; that time."""
    now_us = yield from clock()
    yield from fetch(SHIFT, now_us=now_us + by_us)
    return now_us + by_us


async def test_c1_a_clock_that_was_set_back_while_nobody_ran_is_refused(database: Database) -> None:
    seen_us = await database.transact(seen_ahead, HOUR_US)
    with pytest.raises(Unavailable, match=r"clock says .*, 3\d\d\d s before the newest time") as refused:
        await ClockMark(database).prove()
    assert "NTP" in refused.value.hint
    assert "doonce declare clock" in refused.value.hint
    assert await database.read(read_mark) == seen_us, "a refused start changes nothing"


@pytest.mark.parametrize("by_us", [-HOUR_US, HOLD_US // 2])
async def test_c1_what_cures_itself_within_a_lease_is_let_in(database: Database, by_us: int) -> None:
    seen_us = await database.transact(seen_ahead, by_us)
    await ClockMark(database).prove()
    now_us = await database.transact(tick)
    mark_us = await database.read(read_mark)
    assert max(seen_us, now_us - HOLD_US) <= mark_us <= max(seen_us, now_us)


async def test_c1_a_clock_is_believed_on_an_operators_word(database: Database) -> None:
    watched = Durability(database)
    await watched.check()
    before = await database.read(incarnation.newest)
    assert before is not None
    await database.transact(seen_ahead, HOUR_US)
    declared = await watched.declare(Declaration.CLOCK, "ann", "the host was an hour ahead")
    assert (declared.declaration, declared.reason) == (Declaration.CLOCK, "the host was an hour ahead")
    assert await database.read(incarnation.newest) == declared
    assert await database.read(incarnation.last_lossy) is None
    if database.dialect is not DialectName.SQLITE:
        assert declared.place == before.place
    assert watched.gate.open
    await ClockMark(database).prove()
    opened = open_database(database.url)
    fresh = Durability(opened)
    await fresh.check()
    await opened.close()
    assert fresh.gate.open, "nothing else is in doubt now"


async def test_s2_a_clock_is_not_believed_while_the_database_is_in_doubt(database: Database) -> None:
    await database.transact(pinned_elsewhere)
    watched = Durability(database)
    await watched.check()
    assert not watched.gate.open
    with pytest.raises(Conflict, match="not all that is in doubt"):
        await watched.declare(Declaration.CLOCK, "ann", "whatever")
    assert not watched.gate.open


async def test_c1_a_process_that_works_keeps_the_mark(database: Database) -> None:
    mark = ClockMark(database)
    await mark.prove()
    await database.transact(seen_ahead, -HOUR_US)
    await mark.keep()
    if database.dialect is DialectName.SQLITE:
        return  # each commit is its mark
    now_us = await database.transact(tick)
    assert now_us - HOLD_US < await database.read(read_mark) <= now_us


async def test_c1_who_has_seen_the_jump_and_waited_follows_the_clock(database: Database) -> None:
    mark, watch = ClockMark(database), database.clock_watch
    await mark.prove()
    seen_us = await database.transact(seen_ahead, HOUR_US)
    await mark.keep()
    assert await database.read(read_mark) == seen_us, "a newer time that somebody saw is kept"
    if database.dialect is DialectName.SQLITE:
        return  # its time never goes back by itself (C2)
    host_us = boottime_ns() // 1000
    watch.observe(2 * HOUR_US, host_us, host_us)
    watch.observe(HOUR_US, host_us, host_us)
    assert watch.jumps
    await mark.keep()
    assert await database.read(read_mark) == seen_us, "not while it holds"
    watch._hold_until_us = 0
    await mark.keep()
    assert await database.read(read_mark) < seen_us - HOUR_US // 2


async def test_s2_a_copy_from_before_the_clock_was_set_back_is_still_noticed_on_sqlite(
    sqlite_path: Path,
) -> None:
    path = sqlite_path
    url = f"sqlite:///{sqlite_path}"
    await migrate.migrate(url, install=INSTALL)
    ahead_us, now_us = 1_900_000_000_000_000, 1_800_000_000_000_000
    ahead = Database(url, SqliteDriver(path, SqliteSettings(), lambda: ahead_us))
    await ahead.transact(tick)
    await ahead.close()
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    right = Database(url, SqliteDriver(path, SqliteSettings(), lambda: now_us))
    with pytest.raises(Unavailable, match="this host's clock"):
        await ClockMark(right).prove()
    await Durability(right).declare(Declaration.CLOCK, "ann", "it was ahead")
    await ClockMark(right).prove()
    assert await right.transact(tick) < ahead_us
    await right.close()
    path.write_bytes(copy.read_bytes())
    again = Database(url, SqliteDriver(path, SqliteSettings(), lambda: now_us))
    watched = Durability(again)
    await watched.check()
    assert "another database" in watched.gate.reason
    await again.close()

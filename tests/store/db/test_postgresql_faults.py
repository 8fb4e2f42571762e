"""T6 and the sorting of PostgreSQL's faults: which prove a rollback, which prove nothing, which are the data's."""

import asyncio
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from tests.store.db.notes import ABORT, READ, NoteDatabase, note, put, read, statement, tell
from tests.store.db.test_transact import Observed

from doonce.base.errors import Exhausted, Unavailable
from doonce.db.database import RetrySettings, open_database
from doonce.db.faults import CommitUnknown, Contended, Disconnected, RefusedData, RolledBack
from doonce.db.postgresql import PostgresqlDriver, PostgresqlSettings
from doonce.db.transaction import Txn, fetch, insert_many, lock_exclusive, lock_shared

pytestmark = pytest.mark.postgresql

PID = statement("note.pid", lambda dialect: sa.text("SELECT pg_backend_pid()"))


async def kill(notes: NoteDatabase, process: int) -> None:
    other = await notes.connect()
    await other.fetchval("SELECT pg_terminate_backend($1)", process)
    while await other.fetchval("SELECT count(*) FROM pg_stat_activity WHERE pid = $1", process):
        pass
    await other.close()


async def test_a_connection_killed_before_the_commit_is_a_proven_rollback_and_run_again(
    postgresql: NoteDatabase,
) -> None:
    observed = postgresql.database.observer = Observed()
    kills: list[asyncio.Task[None]] = []

    def killed_once() -> Txn[str]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        rows = yield from fetch(PID)
        if not kills:
            kills.append(asyncio.ensure_future(kill(postgresql, rows[0][0])))
            for _ in range(100_000):
                yield from fetch(READ)
        return "committed"

    assert await postgresql.database.transact(killed_once) == "committed"
    assert await postgresql.rows() == [("a", 1)]
    assert observed.seen == [("killed_once", "Disconnected")]
    await kills[0]


async def test_an_idle_connection_that_died_costs_a_retry_and_no_error(postgresql: NoteDatabase) -> None:
    def process() -> Txn[int]:
        return (yield from fetch(PID))[0][0]

    first = await postgresql.database.transact(process)
    await kill(postgresql, first)
    assert await postgresql.database.transact(process) != first


async def test_t6_a_connection_killed_while_it_commits_leaves_the_commit_unknown(
    postgresql: NoteDatabase,
) -> None:
    """A deferred trigger holds the COMMIT until the backend is killed inside it: the transaction did not happen."""
    other = await postgresql.connect()
    await other.execute(
        """
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION hold();
        """
    )
    observed = postgresql.database.observer = Observed()
    await other.execute("SELECT pg_advisory_lock(4711)")
    call = asyncio.create_task(postgresql.database.transact(put, [("a", 1)]))
    while not (
        waiting := await other.fetchval(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        )
    ):
        assert not call.done()
    await other.fetchval("SELECT pg_terminate_backend($1)", waiting)
    await other.execute("SELECT pg_advisory_unlock(4711)")
    assert await call == "written"
    assert observed.seen[0] == ("put", "unknown")
    assert await postgresql.rows() == [("a", 1)]
    await other.close()


async def test_t6_a_commit_that_rolls_back_is_a_proven_rollback(postgresql: NoteDatabase) -> None:
    """After an error inside it PostgreSQL answers COMMIT with ROLLBACK, and with success."""
    driver = postgresql.database.driver
    assert isinstance(driver, PostgresqlDriver)
    connection = await driver._acquire()
    await connection.raw.execute("BEGIN")
    with pytest.raises(asyncpg.PostgresError):
        await connection.raw.execute("SELECT 1 / 0")
    with pytest.raises(RolledBack) as raised:
        await driver._commit(connection)
    assert type(raised.value) is RolledBack
    driver._release(connection)


async def test_t6_a_warning_on_commit_is_unknown(postgresql: NoteDatabase) -> None:
    postgresql.database.settings = RetrySettings(tries_max=2, base_ms=0.1)

    def ended_already() -> Txn[str]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        yield from fetch(ABORT)  # now COMMIT warns that there is no transaction, and succeeds
        return "committed"

    with pytest.raises(CommitUnknown):
        await postgresql.database.transact(ended_already)
    assert await postgresql.rows() == []


async def test_a_notice_before_the_commit_is_not_a_warning_on_it(postgresql: NoteDatabase) -> None:
    warn = statement(
        "note.warn", lambda dialect: sa.text("SELECT set_config('client_min_messages', 'debug1', true)")
    )

    def chatty() -> Txn[str]:
        yield from fetch(warn)
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        return "committed"

    assert await postgresql.database.transact(chatty) == "committed"


async def test_a_full_disk_is_exhausted_and_leaves_nothing(postgresql: NoteDatabase) -> None:
    """As the server says it (53100), at any statement."""
    full = statement(
        "note.full",
        lambda dialect: sa.text("DO $$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = 'disk_full'; END $$"),
    )

    def fill() -> Txn[None]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        yield from fetch(full)

    with pytest.raises(Exhausted, match="disk is full; nothing was written"):
        await postgresql.database.transact(fill)
    assert await postgresql.rows() == []
    assert await postgresql.database.transact(put, [("a", 1)]) == "written"


async def test_g2_a_nul_in_text_is_refused_data(postgresql: NoteDatabase) -> None:
    for key in ("a\0b", "\ud800"):
        with pytest.raises(RefusedData):
            await postgresql.database.transact(put, [(key, 1)])
    assert await postgresql.database.transact(put, [("a", 1)]) == "written"


async def test_t3_a_lock_that_is_not_had_in_time_is_contention_and_soon_said(
    postgresql: NoteDatabase,
) -> None:
    quick = open_database(postgresql.url, postgresql=PostgresqlSettings(lock_timeout_ms=50))
    observed = quick.observer = Observed()
    other = await postgresql.connect()
    await postgresql.database.transact(put, [("a", 1)])
    async with other.transaction():
        await other.execute("SELECT * FROM note FOR UPDATE")
        with pytest.raises(Contended):
            await quick.transact(put, [("a", 2)])
    assert observed.seen == [("put", "Contended")] * 2
    assert await quick.transact(put, [("a", 3)]) == "written"
    await other.close()
    await quick.close()


async def test_a_deadlock_is_retried_until_both_are_through(postgresql: NoteDatabase) -> None:
    await postgresql.database.transact(put, [("a", 0), ("b", 0)])
    observed = postgresql.database.observer = Observed()
    holding: set[str] = set()

    def crosswise(order: str) -> Txn[str]:
        yield from fetch(LOCK, key=order[0])
        holding.add(order)
        while len(holding) < 2:
            yield from fetch(READ)
        yield from fetch(LOCK, key=order[1])
        return order

    done = await asyncio.gather(*[postgresql.database.transact(crosswise, order) for order in ("ab", "ba")])
    assert done == ["ab", "ba"]
    assert observed.seen == [("crosswise", "RolledBack")]


LOCK = statement(
    "note.lock",
    lambda dialect: (
        sa.select(note).where(note.c.id == sa.bindparam("key", type_=sa.Text())).with_for_update()
    ),
)


async def test_s3_sharers_share_and_an_exclusive_lock_waits_for_them_without_starving(
    postgresql: NoteDatabase,
) -> None:
    order: list[str] = []
    first_in, let_go = asyncio.Event(), asyncio.Event()

    def share(name: str, rounds: int = 1) -> Txn[None]:
        yield from lock_shared(["ownership:effect"])
        order.append(name)
        first_in.set()
        while not let_go.is_set() and rounds > 1:
            rounds -= 1
            yield from fetch(READ)

    def transfer() -> Txn[None]:
        yield from lock_exclusive(["ownership:effect"])
        order.append("transfer")

    other = await postgresql.connect()
    holder = asyncio.create_task(postgresql.database.transact(share, "first", 10**9))
    await first_in.wait()
    await postgresql.database.transact(share, "beside it")
    moving = asyncio.create_task(postgresql.database.transact(transfer))
    while not await other.fetchval(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    ):
        assert not moving.done()
    late = asyncio.create_task(postgresql.database.transact(share, "late"))
    while (
        await other.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") < 2
    ):
        assert not late.done()
    let_go.set()
    await asyncio.gather(holder, moving, late)
    assert order == ["first", "beside it", "transfer", "late"]
    await other.close()


async def test_notifications_reach_other_processes_listeners_after_the_commit(
    postgresql: NoteDatabase,
) -> None:
    listening = open_database(postgresql.url)
    await listening.listen()
    await postgresql.database.transact(tell, "work:effect")
    assert await listening.wakeups.wait("work:effect", 10)
    assert await postgresql.database.wakeups.wait("work:effect", 0), "and this process's own at once"
    await listening.close()


async def test_a_process_hears_its_own_hints_once_at_their_commit(postgresql: NoteDatabase) -> None:
    other = open_database(postgresql.url)
    await postgresql.database.listen()
    await postgresql.database.transact(tell, "work:effect")
    assert await postgresql.database.wakeups.wait("work:effect", 0)
    await other.transact(tell, "work:event")
    assert await postgresql.database.wakeups.wait("work:event", 10)
    again = await postgresql.database.wakeups.wait("work:effect", 0)
    assert not again, "the server told its listeners in the order of the commits"
    await other.close()


async def test_a_statement_whose_table_changed_under_it_is_prepared_again(postgresql: NoteDatabase) -> None:
    await postgresql.database.transact(put, [("a", 1)])
    star = statement("note.star", lambda dialect: sa.text("SELECT * FROM note"))

    def look() -> Txn[int]:
        return len((yield from fetch(star))[0])

    assert await postgresql.database.transact(look) == 2
    other = await postgresql.connect()
    await other.execute("ALTER TABLE note ADD COLUMN more bigint")
    await other.close()
    assert await postgresql.database.transact(look) == 3


async def test_c1_the_clocks_quick_arithmetic_is_exact_to_the_microsecond(postgresql: NoteDatabase) -> None:
    """`date_part` counts in binary floating point, which is much cheaper than `extract` and must come to the same."""
    other = await postgresql.connect()
    wrong = await other.fetchval(
        """
        SELECT count(*) FROM (
            SELECT timestamptz '2001-01-01' + number * interval '86399.987654 seconds' AS t
            FROM generate_series(1, 36000) AS number
        ) AS times
        WHERE (date_part('epoch', t) * 1000000)::bigint <> (extract(epoch FROM t) * 1000000)::bigint
        """
    )
    assert wrong == 0
    await other.close()


async def test_a_pool_hands_out_no_more_connections_than_it_may(postgresql: NoteDatabase) -> None:
    small = open_database(
        postgresql.url, postgresql=PostgresqlSettings(connections_max=2, application_name="doonce-small")
    )
    other = await postgresql.connect()
    await asyncio.gather(*[small.transact(put, [(f"{n}", n)]) for n in range(20)])
    used = await other.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'doonce-small'"
    )
    assert used <= 2
    await other.close()
    await small.close()


@pytest.mark.parametrize(
    "url", ["postgresql://nobody@127.0.0.1:1/none", "postgresql://x@no.such.host.invalid/none"]
)
async def test_an_unreachable_database_is_said_to_be_without_its_password(url: str) -> None:
    lost = open_database(url.replace("@", ":hidden@"), settings=RetrySettings(tries_max=2, base_ms=0.1))
    with pytest.raises(Unavailable) as raised:
        await lost.transact(put, [("a", 1)])
    assert "hidden" not in raised.value.message + raised.value.hint
    with pytest.raises(Unavailable):
        await lost.read(read)
    await lost.close()


async def test_a_connection_that_is_lost_before_it_listens_is_an_outage_and_not_the_end(
    postgresql: NoteDatabase,
) -> None:
    driver = postgresql.database.driver
    assert isinstance(driver, PostgresqlDriver)

    async def lose(connection: Any) -> None:
        other = await asyncpg.connect(postgresql.url)
        await other.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
        await other.close()

    driver.admit = lose
    with pytest.raises(Disconnected):
        await postgresql.database.listen()
    driver.admit = None
    await postgresql.database.listen()

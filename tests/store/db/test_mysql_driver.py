"""What is unlike other engines on the MySQL wire: exact identities, fences that are written, commits that are lost."""

import asyncio
import time
from functools import partial
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from asyncmy.errors import MySQLError, OperationalError
from tests.store.db.notes import READ, NoteDatabase, locked, note, put, statement, write
from tests.store.db.snapshot_sql import import_everything

from doonce.db import migrate
from doonce.db.database import Database, open_database
from doonce.db.faults import (
    CommitUnknown,
    Contended,
    Disconnected,
    OutOfSpace,
    RefusedData,
    RolledBack,
    SchemaFault,
)
from doonce.db.mysql import MysqlDriver, MysqlSettings, PooledConnection, text_positions
from doonce.db.mysql_faults import classify
from doonce.db.mysql_fences import FENCE_SLOTS
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many, lock_exclusive, lock_shared
from doonce.ownership import store as ownership

SQL_MODE = "STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"


def driver_of(database: Database) -> MysqlDriver:
    assert isinstance(database.driver, MysqlDriver)
    return database.driver


async def scalar(notes: NoteDatabase, text: str) -> Any:
    """One value, asked on a connection of the driver's own kind."""
    connection = await driver_of(notes.database)._connect()
    try:
        return (await connection.fetch(text))[0][0]
    finally:
        connection.terminate()


async def test_identities_are_byte_exact(mariadb: NoteDatabase) -> None:
    names = ["a", "a ", "A", "ä", "a\u0308", "\U0001f600", " a"]
    await mariadb.database.transact(write, [(name, number) for number, name in enumerate(names)])
    await mariadb.database.transact(put, [("a ", 70)])
    found = dict(await mariadb.rows())
    assert found == {name: number for number, name in enumerate(names)} | {"a ": 70}
    assert list(found) == sorted(names, key=str.encode)


@pytest.mark.parametrize(
    "asked, wanted",
    [
        ("SELECT @@session.time_zone", "+00:00"),
        ("SELECT @@session.sql_mode", SQL_MODE),
        ("SELECT @@session.innodb_lock_wait_timeout", 2),
        ("SELECT @@session.autocommit", 0),
    ],
)
async def test_every_connection_says_what_the_protocol_needs(
    mariadb: NoteDatabase, asked: str, wanted: object
) -> None:
    assert await scalar(mariadb, asked) == wanted


async def test_every_transaction_reads_what_is_committed(mariadb: NoteDatabase) -> None:
    """By either of the names that servers have for it."""
    connection = await driver_of(mariadb.database)._connect()
    asked = "SHOW SESSION VARIABLES WHERE variable_name IN ('tx_isolation', 'transaction_isolation')"
    assert {row[1] for row in await connection.fetch(asked)} == {"READ-COMMITTED"}
    connection.terminate()


async def test_t2_strict_mode_refuses_what_would_be_cut(mariadb: NoteDatabase) -> None:
    with pytest.raises(RefusedData):
        await mariadb.database.transact(write, [("x" * 300, 1)])
    assert await mariadb.rows() == []


async def test_s5_sharers_write_slots_of_their_own_and_do_not_wait_for_each_other(
    mariadb: NoteDatabase,
) -> None:
    inside: list[int] = []
    both = asyncio.Event()

    def share(number: int) -> Txn[None]:
        yield from lock_shared(["family"])
        inside.append(number)
        if len(inside) == 2:
            both.set()
        while len(inside) < 2:
            yield from fetch(READ)

    await asyncio.gather(*(mariadb.database.transact(share, number) for number in range(2)))
    assert both.is_set()


async def test_s5_whoever_wants_it_alone_waits_for_the_sharer(mariadb: NoteDatabase) -> None:
    shared, alone = asyncio.Event(), asyncio.Event()

    def share() -> Txn[None]:
        yield from lock_shared(["family"])
        shared.set()
        for _ in range(50):
            yield from fetch(READ)
        assert not alone.is_set(), "it went ahead of a sharer"

    def own() -> Txn[None]:
        yield from lock_exclusive(["family"])
        alone.set()

    await mariadb.database.transact(locked, "family", True)
    sharing = asyncio.create_task(mariadb.database.transact(share))
    await shared.wait()
    await asyncio.gather(sharing, mariadb.database.transact(own))
    assert await scalar(mariadb, "SELECT count(*) FROM doonce_fence") == FENCE_SLOTS


async def test_t1_a_deadlock_is_a_proven_rollback_and_both_get_done(mariadb: NoteDatabase) -> None:
    await mariadb.database.transact(write, [("a", 0), ("b", 0)])

    async def both_ways(first: str, second: str) -> None:
        def change() -> Txn[None]:
            yield from insert_many(note, ("id", "number"), [(first, 0)], skip_conflicts=True)
            yield from insert_many(note, ("id", "number"), [(second, 0)], skip_conflicts=True)

        for _ in range(20):
            await mariadb.database.transact(change)

    await asyncio.gather(both_ways("a", "b"), both_ways("b", "a"))
    assert len(await mariadb.rows()) == 2


async def test_t5_a_connection_that_is_lost_at_commit_leaves_it_unknown(mariadb: NoteDatabase) -> None:
    driver = driver_of(mariadb.database)

    connection = await driver._connect()
    original = connection.execute

    async def execute(text: str, arguments: Any = ()) -> None:
        if text == "COMMIT":
            await asyncio.to_thread(kill, mariadb.url, connection.raw.thread_id())
        await original(text, arguments)

    connection.execute = execute  # type: ignore[method-assign]  # the one seam between the last row and the commit
    driver._idle.append(connection)
    with pytest.raises(CommitUnknown):
        await driver.run(lambda: put([("a", 1)]), readonly=False)


async def test_a_commit_that_would_do_nothing_is_a_rollback(mariadb: NoteDatabase) -> None:
    driver = driver_of(mariadb.database)
    connection = await driver._connect()
    with pytest.raises(RolledBack, match="would do nothing"):
        await driver._commit(connection)
    connection.terminate()


WHICH = statement("note.which_connection", lambda dialect: sa.select(sa.func.connection_id()))


async def test_what_stands_still_in_a_transaction_is_ended_by_the_server_and_done_again(
    mariadb: NoteDatabase,
) -> None:
    """As a process that is frozen: its loop does nothing until the server has lost patience."""
    used: list[int] = []

    def stand_still() -> Txn[None]:
        yield from put([("a", len(used))])
        used.append((yield from fetch(WHICH))[0][0])
        if len(used) == 1:
            wait_ended(mariadb.url, used[0])
        yield from put([("b", len(used))])

    database = open_database(mariadb.url, mysql=MysqlSettings(idle_in_transaction_timeout_seconds=1))
    await database.transact(stand_still)
    await database.close()
    assert len(set(used)) == 2
    assert await mariadb.rows() == [("a", 1), ("b", 2)]


def wait_ended(url: str, thread_id: int) -> None:
    """Until the server has closed a connection."""
    where = sa.make_url(url)
    give_up = time.monotonic() + 30
    with (
        pymysql.connect(
            host=where.host, port=where.port or 3306, user=where.username, password=str(where.password)
        ) as server,
        server.cursor() as cursor,
    ):
        while cursor.execute("SELECT 1 FROM information_schema.processlist WHERE id = %s", (thread_id,)):
            assert time.monotonic() < give_up, "the server ends nothing"
            time.sleep(0.05)


async def test_what_has_rested_too_long_is_not_used_again(mariadb: NoteDatabase) -> None:
    """Where the server closes whatever idles, it may be about to."""
    driver = driver_of(mariadb.database)
    rested = await driver._connect()
    rested.rests_seconds_max = -1
    (old,) = (await rested.fetch("SELECT connection_id()"))[0]
    driver._idle.append(rested)
    used: list[int] = []

    def which() -> Txn[None]:
        used.append((yield from fetch(WHICH))[0][0])

    for _ in range(2):
        await mariadb.database.transact(which)
    assert used == [used[0]] * 2
    assert used[0] != old


OF_OTHERS = {
    "durability.end_frozen", "incarnation.database_oid", "incarnation.files_made_at", "incarnation.identifier",
    "incarnation.may_read", "incarnation.timeline", "galera.members", "tidb.cluster", "tidb.made",
}  # fmt: skip
"""Statements for other engines."""
OF_TESTS = ("job.", "note.", "page.", "posting.", "test.")


async def test_the_server_understands_every_statement(fresh_mariadb: str) -> None:
    """MySQL refuses some that MariaDB takes, and the other way round."""
    import_everything()
    await migrate.migrate(fresh_mariadb, install=partial(ownership.install, "test", "sha256:0", "op_1"))
    database = open_database(fresh_mariadb)
    connection = await driver_of(database)._connect()
    refused = {}
    for name, made in Statement.registry.items():
        if name in OF_OTHERS or name.startswith(OF_TESTS):
            continue
        try:
            await connection.raw.prepare(made.mysql.text)
        except MySQLError as error:
            refused[name] = str(error)
    connection.terminate()
    await database.close()
    assert refused == {}


async def test_what_a_statement_calls_text_is_text_although_the_server_calls_it_bytes(
    mariadb: NoteDatabase,
) -> None:
    """As MySQL does with what was cast, of any length, and went through a table of its own."""
    connection = await driver_of(mariadb.database)._connect()
    asked = "SELECT made.name FROM (SELECT CAST(? AS BINARY) AS name LIMIT 9) AS made"
    assert [tuple(row) for row in await connection.fetch(asked, ["ä"], texts={"name"})] == [("ä",)]
    assert text_positions([("name", 252), ("body", 252), ("id", 253)], {"name"}) == [0, 2]
    connection.terminate()


def kill(url: str, thread_id: int) -> None:
    """End a session as an operator would."""
    where = sa.make_url(url)
    with pymysql.connect(
        host=where.host, port=where.port or 3306, user=where.username, password=str(where.password)
    ) as server:
        server.kill(thread_id)


async def test_a_row_that_keeps_its_values_counts_as_found(mariadb: NoteDatabase) -> None:
    await mariadb.database.transact(write, [("a", 1)])
    connection = await driver_of(mariadb.database)._connect()
    async with connection.raw.cursor() as cursor:
        assert await cursor.execute("UPDATE note SET number = 1 WHERE id = 'a'") == 1
    connection.terminate()


@pytest.mark.parametrize(
    "code, fault",
    [
        (1213, RolledBack), (1205, Contended), (1047, Disconnected), (2013, Disconnected), (1062, RefusedData),
        (1021, OutOfSpace), (1114, OutOfSpace), (1146, SchemaFault), (1290, Disconnected), (4031, Disconnected),
        (9007, RolledBack),
        (99_999, RolledBack),
    ],
)  # fmt: skip
def test_an_error_before_the_commit_is_a_proven_rollback(code: int, fault: type[Exception]) -> None:
    assert type(classify(OperationalError(code, "said the server"))) is fault


@pytest.mark.parametrize("code", [1044, 1142, 1143, 1370])
def test_what_a_user_may_not_do_says_what_to_grant(code: int) -> None:
    fault = classify(OperationalError(code, "denied"))
    assert isinstance(fault, SchemaFault)
    assert fault.hint.startswith("GRANT")


@pytest.mark.parametrize(
    "code, fault", [(1213, RolledBack), (1180, CommitUnknown), (1047, CommitUnknown), (2013, CommitUnknown)]
)
async def test_t5_an_error_of_the_commit_proves_a_rollback_only_where_it_says_so(
    code: int, fault: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise OperationalError(code, "said the server")

    monkeypatch.setattr(PooledConnection, "execute", refuse)
    monkeypatch.setattr(PooledConnection, "in_transaction", lambda _: True)
    driver = MysqlDriver.__new__(MysqlDriver)
    with pytest.raises(fault) as raised:
        await driver._commit(PooledConnection(None, 0))
    assert type(raised.value) is fault


async def test_a_server_that_hangs_up_as_soon_as_it_has_accepted_is_not_reached(
    mariadb: NoteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an address behind which a failover is under way: on uvloop the driver's library falls over its lost socket."""

    async def hung_up(**_: Any) -> Any:
        raise RuntimeError("Transport does not expose socket instance")

    monkeypatch.setattr("asyncmy.connect", hung_up)
    driver = MysqlDriver(mariadb.url, MysqlSettings())
    with pytest.raises(Disconnected, match="no connection to the database"):
        await driver.run(clock, readonly=True)
    await driver.close()

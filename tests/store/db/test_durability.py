"""S1 and S2 against real databases: settings that lose commits, and databases that are not the one relied on."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from tests.store.db.owners import import_tables

from doonce.base.errors import Invalid, Unavailable
from doonce.base.ids import new_token
from doonce.db import durability, incarnation, maintenance, migrate, mysql_server, mysql_session, postgresql
from doonce.db.clock_mark import raise_mark
from doonce.db.database import Database, open_database
from doonce.db.durability import Durability, DurabilitySettings
from doonce.db.faults import SchemaFault
from doonce.db.incarnation import Declaration, Place
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.sidefile import side_file
from doonce.db.statement import Compiled, DialectName, Statement
from doonce.db.transaction import Txn, clock, fetch
from doonce.db.verify import verify
from doonce.ownership import store as ownership

import_tables()
INSTALL = partial(ownership.install, "test", "sha256:0", "op_1")


@pytest.fixture
async def migrated(database_url: str) -> str:
    await migrate.migrate(database_url, install=INSTALL)
    return database_url


@pytest.fixture
async def database(migrated: str) -> AsyncIterator[Database]:
    opened = open_database(migrated)
    yield opened
    await opened.close()


def tick() -> Txn[int]:
    return (yield from clock())


async def session(path: Path, *, check: bool = True) -> Durability:
    """One run of a process on a SQLite file: it looks, writes and ends."""
    opened = open_database(f"sqlite:///{path}")
    watched = Durability(opened)
    if check:
        await watched.check()
    await opened.transact(tick)
    await opened.close()
    return watched


def copy_of(path: Path, to: Path) -> Path:
    shutil.copy(path, to)
    return to


async def test_a_fresh_database_opens_the_gate(database: Database) -> None:
    watched = Durability(database)
    assert not watched.gate.open
    await watched.check()
    assert watched.gate.open
    assert watched.gate.reason == ""


async def test_what_a_frozen_process_holds_on_postgresql_is_ended_and_nothing_else(
    fresh_postgres: str,
) -> None:
    database = open_database(
        fresh_postgres, postgresql=PostgresqlSettings(idle_in_transaction_timeout_ms=300)
    )
    watched = Durability(database)

    async def frozen(application_name: str) -> Any:
        """As a process leaves it that stands still between preparing a statement and executing it."""
        raw = await asyncpg.connect(
            fresh_postgres,
            statement_cache_size=0,
            server_settings={
                "application_name": application_name,
                "idle_in_transaction_session_timeout": "300",
                "statement_timeout": "300",
            },
        )
        await raw.execute("BEGIN; SELECT pg_advisory_xact_lock(4711)")
        await raw.prepare("SELECT 1")
        return raw

    async with asyncio.timeout(30):
        ours = await frozen("doonce")
        assert await watched.end_frozen() == 0, "it has only just come there"
        await asyncio.sleep(0.4)  # a time-out of the server's is what this is about
        assert not ours.is_closed(), "no time-out of the server's own ends it"
        fresh = await asyncpg.connect(fresh_postgres)
        assert not await fresh.fetchval("SELECT pg_try_advisory_lock(4711)")
        assert await watched.end_frozen() == 1
        while not await fresh.fetchval(
            "SELECT pg_try_advisory_lock(4711)"
        ):  # until the server's process has ended
            await asyncio.sleep(0.01)
        await fresh.execute("SELECT pg_advisory_unlock(4711)")
        another = await frozen("somebody's")
        await asyncio.sleep(0.4)
        assert await watched.end_frozen() == 0
        assert not await fresh.fetchval("SELECT pg_try_advisory_lock(4711)")
        for raw in (ours, another, fresh):
            raw.terminate()
        await database.close()


async def test_s2_a_declaration_is_appended_and_pins_what_the_database_is(database: Database) -> None:
    watched = Durability(database)
    assert await database.read(incarnation.last_lossy) is None
    lossless = await watched.declare(Declaration.LOSSLESS, "ann", "planned failover")
    lossy = await watched.declare(Declaration.LOSSY, "ann", "restored last night's backup")
    assert (lossless.sequence, lossy.sequence) == (2, 3)
    assert await database.read(incarnation.newest) == lossy
    assert await database.read(incarnation.last_lossy) == lossy.declared_at > lossless.declared_at
    assert watched.gate.open
    for operator, reason in (("", "why"), ("ann", "")):
        with pytest.raises(Invalid):
            await watched.declare(Declaration.LOSSLESS, operator, reason)


async def test_t5_a_declaration_run_again_is_one(database: Database) -> None:
    new = incarnation.NewIncarnation("a" * 32, Declaration.LOSSY, "ann", "test")
    first = await database.transact(incarnation.append, database.dialect, new)
    assert await database.transact(incarnation.append, database.dialect, new) == first


async def test_a_database_without_a_pin_is_told_to_migrate(database: Database) -> None:
    await database.transact(forget_pins)
    watched = Durability(database)
    with pytest.raises(Unavailable) as refused:
        await watched.check()
    assert "doonce migrate" in refused.value.hint
    assert not watched.gate.open


FORGET = Statement("test.forget_pins", lambda dialect: sa.delete(incarnation.database_incarnation))


def forget_pins() -> Txn[None]:
    yield from fetch(FORGET)


# SQLite: copies


async def test_s2_a_restart_is_no_change(sqlite_path: Path) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    for _ in range(3):
        assert (await session(sqlite_path)).gate.open


async def test_s2_an_older_copy_put_back_closes_dispatch_until_it_is_declared(
    sqlite_path: Path, tmp_path: Path
) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    await session(sqlite_path)
    backup = copy_of(sqlite_path, tmp_path / "backup")
    await session(sqlite_path)
    copy_of(backup, sqlite_path)
    for _ in range(2):  # a restart forgets nothing
        watched = await session(sqlite_path)
        assert not watched.gate.open
        assert "older" in watched.gate.reason
    opened = open_database(f"sqlite:///{sqlite_path}")
    watched = Durability(opened)
    declared = await watched.declare(Declaration.LOSSY, "ann", "the disk failed")
    assert watched.gate.open
    assert await opened.read(incarnation.last_lossy) == declared.declared_at
    await opened.close()
    assert (await session(sqlite_path)).gate.open


async def test_s2_an_older_copy_is_noticed_although_something_wrote_before_the_check(
    sqlite_path: Path, tmp_path: Path
) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    await session(sqlite_path)
    backup = copy_of(sqlite_path, tmp_path / "backup")
    await session(sqlite_path)
    copy_of(backup, sqlite_path)
    await session(sqlite_path, check=False)
    assert not (await session(sqlite_path)).gate.open


async def test_s2_a_migration_of_an_older_copy_does_not_hide_it(sqlite_path: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{sqlite_path}"
    await migrate.migrate(url, install=INSTALL)
    await session(sqlite_path)
    backup = copy_of(sqlite_path, tmp_path / "backup")
    await session(sqlite_path)
    copy_of(backup, sqlite_path)
    await migrate.migrate(url, install=INSTALL)
    assert not (await session(sqlite_path)).gate.open


async def test_s2_a_database_made_anew_where_one_was_is_not_taken_for_it(sqlite_path: Path) -> None:
    url = f"sqlite:///{sqlite_path}"
    await migrate.migrate(url, install=INSTALL)
    await session(sqlite_path)
    for file in sqlite_path.parent.glob("test.db*"):
        if file != side_file(sqlite_path):
            file.unlink()
    await migrate.migrate(url, install=INSTALL)
    watched = await session(sqlite_path)
    assert not watched.gate.open
    assert "made anew" in watched.gate.reason


async def test_s2_a_copy_at_another_place_closes_dispatch(sqlite_path: Path, tmp_path: Path) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    await session(sqlite_path)
    other = copy_of(sqlite_path, tmp_path / "other.db")
    watched = await session(other)
    assert not watched.gate.open
    assert "may be a copy" in watched.gate.reason


async def test_s2_another_database_in_its_place_closes_dispatch(sqlite_path: Path, tmp_path: Path) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    await session(sqlite_path)
    other = tmp_path / "other.db"
    await migrate.migrate(f"sqlite:///{other}", install=INSTALL)
    await session(other)
    copy_of(other, sqlite_path)
    watched = await session(sqlite_path)
    assert not watched.gate.open
    assert "another database" in watched.gate.reason


async def test_s2_after_a_declaration_the_two_copies_are_two_databases(
    sqlite_path: Path, tmp_path: Path
) -> None:
    await migrate.migrate(f"sqlite:///{sqlite_path}", install=INSTALL)
    await session(sqlite_path)
    other = copy_of(sqlite_path, tmp_path / "other.db")
    opened = open_database(f"sqlite:///{other}")
    await Durability(opened).declare(Declaration.LOSSLESS, "ann", "moved to a new host")
    await opened.close()
    assert (await session(other)).gate.open
    copy_of(other, sqlite_path)
    assert not (await session(sqlite_path)).gate.open


# PostgreSQL: settings and incarnations


@pytest.fixture
async def on_postgresql(fresh_postgres: str) -> AsyncIterator[Database]:
    await migrate.migrate(fresh_postgres, install=INSTALL)
    opened = open_database(fresh_postgres)
    yield opened
    await opened.close()


async def run_sql(url: str, text: str) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    await connection.execute(text)
    await connection.close()


async def test_s1_a_role_that_does_not_wait_for_the_disk_is_refused_at_start(on_postgresql: Database) -> None:
    watched = Durability(on_postgresql)
    name = on_postgresql.url.rsplit("/", 1)[1]
    await run_sql(on_postgresql.url, f"ALTER DATABASE {name} SET synchronous_commit = off")
    with pytest.raises(Unavailable, match="synchronous_commit is off") as refused:
        await watched.check()
    assert "server's settings" in refused.value.hint
    assert not watched.gate.open
    assert "synchronous_commit is off" in watched.gate.reason
    await run_sql(on_postgresql.url, f"ALTER DATABASE {name} RESET synchronous_commit")
    await watched.check()
    assert watched.gate.open


async def test_a_user_of_postgresql_who_may_only_read_is_told_what_is_missing(
    on_postgresql: Database,
) -> None:
    name = f"reader_{new_token()[:16]}"
    reader = sa.make_url(on_postgresql.url).set(username=name, password="x")
    await run_sql(
        on_postgresql.url,
        f"CREATE ROLE {name} LOGIN PASSWORD 'x'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {name}",
    )
    opened = open_database(reader.render_as_string(hide_password=False))
    try:
        await opened.read(incarnation.newest)
        with pytest.raises(Unavailable, match="permission denied") as refused:
            await opened.transact(raise_mark)
        assert "GRANT" in refused.value.hint
        await run_sql(on_postgresql.url, f"ALTER ROLE {name} SET default_transaction_read_only = on")
        again = Durability(open_database(opened.url))
        with pytest.raises(Unavailable, match="default_transaction_read_only is on"):
            await again.check()
    finally:
        await opened.close()
        await run_sql(on_postgresql.url, f"DROP OWNED BY {name}; DROP ROLE {name}")


async def test_a_server_that_is_too_old_is_refused_with_the_mend(
    on_postgresql: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "SERVER_MIN", 99)
    for refused in (
        on_postgresql.transact(tick),
        migrate.migrate(on_postgresql.url, install=INSTALL),
    ):
        with pytest.raises(Unavailable, match="too old") as caught:
            await refused
        assert "PostgreSQL 15" in caught.value.hint


def test_the_oldest_server_that_is_taken_is_the_oldest_that_is_tested() -> None:
    postgresql.refuse_old(SimpleNamespace(major=15, minor=0))
    with pytest.raises(SchemaFault, match=r"14\.22, which is too old"):
        postgresql.refuse_old(SimpleNamespace(major=14, minor=22))


async def test_s1_settings_are_checked_for_each_new_connection(on_postgresql: Database) -> None:
    watched = Durability(on_postgresql)
    await watched.check()
    assert watched.gate.open
    name = on_postgresql.url.rsplit("/", 1)[1]
    await run_sql(on_postgresql.url, f"ALTER DATABASE {name} SET synchronous_commit = local")
    await watched.check()  # the connection that is open keeps its settings
    assert watched.gate.open
    on_postgresql.driver._idle[0].raw.terminate()  # type: ignore[attr-defined]  # as a restart of the server does
    with pytest.raises(Unavailable):
        await on_postgresql.transact(tick)
    assert not watched.gate.open
    assert "synchronous_commit is local" in watched.gate.reason


async def test_s1_a_change_under_an_open_connection_is_found_by_the_next_look(
    on_postgresql: Database,
) -> None:
    watched = Durability(on_postgresql)
    await watched.check()
    await on_postgresql.driver._idle[0].raw.execute("SET synchronous_commit = off")  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match="synchronous_commit is off"):
        await watched.check()
    assert "synchronous_commit is off" in watched.gate.reason


async def test_s1_a_promised_replica_must_be_waited_for(on_postgresql: Database) -> None:
    with pytest.raises(Unavailable):
        await Durability(on_postgresql, DurabilitySettings(replicated=True)).check()


async def test_s2_postgresql_is_known_by_its_system_identifier_and_timeline(on_postgresql: Database) -> None:
    pinned = await on_postgresql.read(incarnation.newest)
    assert pinned is not None
    connection: asyncpg.Connection[Any] = await asyncpg.connect(on_postgresql.url)
    identifier = await connection.fetchval("SELECT system_identifier::text FROM pg_control_system()")
    timeline = await connection.fetchval("SELECT timeline_id FROM pg_control_checkpoint()")
    table = await connection.fetchval("SELECT 'database_incarnation'::regclass::oid")
    made_at = await connection.fetchval("SELECT extract(epoch FROM change) FROM pg_stat_file('PG_VERSION')")
    await connection.close()
    assert pinned.place == Place(f"system:{identifier}", f"{timeline:08X}/table:{table}/files:{made_at:.6f}")


async def test_s2_a_pin_of_less_is_completed_and_what_may_not_be_read_is_no_doubt(
    on_postgresql: Database,
) -> None:
    pinned = await on_postgresql.read(incarnation.newest)
    assert pinned is not None
    wal, table, files = pinned.place.timeline.split("/")
    for fewer in (wal, f"{wal}/{table}"):  # as of a user who may not ask for more
        await run_sql(on_postgresql.url, f"UPDATE database_incarnation SET timeline = '{fewer}'")
        watched = Durability(on_postgresql)
        await watched.check()
        assert watched.gate.open, watched.gate.reason
        newest = await on_postgresql.read(incarnation.newest)
        assert newest is not None
        assert newest.place == pinned.place
        assert newest.declaration is Declaration.FOLLOWED
        await run_sql(on_postgresql.url, "DELETE FROM database_incarnation WHERE sequence > 1")
    whole = Place("system:1", f"{wal}/{table}/{files}")
    assert incarnation.is_same(whole, Place("system:1", f"{wal}/{table}"))
    assert not incarnation.carried_on(whole, Place("system:1", f"{wal}/{table}"))


@pytest.mark.parametrize(
    "identity,timeline",
    [
        ("system:1", None),
        (None, "00000FFF"),
        (None, "00000001/table:1"),
        (None, "00000001/table:1/files:1.000000"),
    ],
)
async def test_s2_another_incarnation_closes_dispatch_until_it_is_declared(
    on_postgresql: Database, identity: str | None, timeline: str | None
) -> None:
    pinned = await on_postgresql.read(incarnation.newest)
    assert pinned is not None
    await run_sql(
        on_postgresql.url,
        f"UPDATE database_incarnation SET identity = '{identity or pinned.place.identity}', "
        f"timeline = '{timeline or pinned.place.timeline}'",
    )
    watched = Durability(on_postgresql)
    await watched.check()
    assert not watched.gate.open
    assert "doonce declare" in watched.gate.reason
    await watched.declare(Declaration.LOSSLESS, "ann", "the standby had everything")
    assert watched.gate.open
    elsewhere = Durability(on_postgresql)
    await elsewhere.check()
    assert elsewhere.gate.open


async def test_s2_a_new_connection_to_another_incarnation_closes_dispatch_before_it_can_commit(
    on_postgresql: Database,
) -> None:
    watched = Durability(on_postgresql)
    await watched.check()
    assert watched.gate.open
    watched._pinned = incarnation.Incarnation(
        1, "x", Place("system:1", "00000001"), Declaration.FIRST, "", "", 0
    )
    on_postgresql.driver._idle[0].raw.terminate()  # type: ignore[attr-defined]  # as a failover does
    seen: list[bool] = []

    def operation() -> Txn[int]:
        seen.append(watched.gate.open)
        return (yield from clock())

    await on_postgresql.transact(operation)
    assert seen == [False]


async def test_s2_a_user_who_may_not_read_the_identifier_still_has_an_incarnation(
    fresh_postgres: str,
) -> None:
    connection: asyncpg.Connection[Any] = await asyncpg.connect(fresh_postgres)
    compiled = incarnation.DATABASE_OID.postgresql
    identity = await connection.fetchval(compiled.text, *compiled.arguments({}))
    oid = await connection.fetchval("SELECT oid FROM pg_database WHERE datname = current_database()")
    await connection.close()
    assert identity == f"database:{oid}"
    calls = incarnation.place(DialectName.POSTGRESQL, None)
    assert next(calls).statement is incarnation.MAY_READ  # type: ignore[union-attr]
    assert calls.send([(False, False)]).statement is incarnation.DATABASE_OID  # type: ignore[union-attr]


# MariaDB: settings, refusals and incarnations


@pytest.fixture
async def on_mariadb(fresh_mariadb: str) -> AsyncIterator[Database]:
    await migrate.migrate(fresh_mariadb, install=INSTALL)
    opened = open_database(fresh_mariadb)
    yield opened
    await opened.close()


async def run_on_mariadb(url: str, *texts: str) -> None:
    def work(connection: sa.Connection) -> None:
        for text in texts:
            connection.exec_driver_sql(text)

    await maintenance.run(url, work, write=True)


async def test_s2_mariadb_is_known_by_its_number_and_when_the_pins_were_made(on_mariadb: Database) -> None:
    pinned = await on_mariadb.read(incarnation.newest)
    assert pinned is not None
    assert re.fullmatch(r"server:[0-9a-f-]*:\d+", pinned.place.identity)
    assert pinned.place.timeline.startswith("made:20")


async def made_anew(url: str) -> None:
    """What restoring a backup comes to: the same rows in a table that was made later (the server counts seconds)."""
    await run_on_mariadb(
        url,
        "CREATE TABLE restored LIKE database_incarnation",
        "INSERT INTO restored SELECT * FROM database_incarnation",
        "DROP TABLE database_incarnation",
        "RENAME TABLE restored TO database_incarnation",
    )


async def test_s2_a_restored_copy_closes_dispatch_until_it_is_declared(on_mariadb: Database) -> None:
    watched = Durability(on_mariadb)
    async with asyncio.timeout(20):
        while True:
            await made_anew(on_mariadb.url)
            await watched.check()
            if not watched.gate.open:
                break
    assert "a copy was put in their place" in watched.gate.reason
    assert "doonce declare" in watched.gate.reason
    await watched.declare(Declaration.LOSSY, "ann", "restored last night's backup")
    assert watched.gate.open


async def test_s2_another_server_with_the_same_rows_closes_dispatch(on_mariadb: Database) -> None:
    await run_on_mariadb(on_mariadb.url, "UPDATE database_incarnation SET identity = 'server::7'")
    watched = Durability(on_mariadb)
    await watched.check()
    assert not watched.gate.open
    assert "another database" in watched.gate.reason
    on_mariadb.driver._idle[0].terminate()  # type: ignore[attr-defined]  # as a failover does
    on_mariadb.driver._idle.clear()  # type: ignore[attr-defined]
    watched.gate.set("")
    await on_mariadb.transact(tick)
    assert not watched.gate.open


async def test_s1_mariadb_that_does_not_wait_for_the_disk_is_refused(
    on_mariadb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = "SELECT 'innodb_flush_log_at_trx_commit', '2' UNION SELECT 'version', '10.11.18-MariaDB'"
    monkeypatch.setitem(durability.SETTINGS.__dict__, "mysql", Compiled(weak, ()))
    watched = Durability(on_mariadb)
    with pytest.raises(Unavailable):
        await watched.check()
    assert "innodb_flush_log_at_trx_commit is 2, not 1" in watched.gate.reason
    on_mariadb.driver._idle.clear()  # type: ignore[attr-defined]
    with pytest.raises(Unavailable):
        await on_mariadb.transact(tick)
    assert not watched.gate.open


async def test_s1_a_promised_replica_of_mariadb_must_be_waited_for(on_mariadb: Database) -> None:
    watched = Durability(on_mariadb, DurabilitySettings(replicated=True))
    with pytest.raises(Unavailable):
        await watched.check()
    assert "semi-synchronous" in watched.gate.reason


async def test_a_user_who_may_only_read_is_told_what_is_missing(on_mariadb: Database) -> None:
    name = f"reader_{new_token()[:16]}"
    place = sa.make_url(on_mariadb.url)
    await run_on_mariadb(
        on_mariadb.url,
        f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'x'",
        f"GRANT SELECT ON {place.database}.* TO {name}@'127.0.0.1'",
    )
    reader = place.set(username=name, password="x").render_as_string(hide_password=False)
    opened = open_database(reader)
    try:
        for refused in (
            opened.transact(raise_mark),
            opened.transact(ownership.install, "other", "sha256:1", "op_2"),
            migrate.migrate(reader, install=INSTALL),
        ):
            with pytest.raises(Unavailable, match="denied") as caught:
                await refused
            assert "GRANT" in caught.value.hint
    finally:
        await opened.close()
        await run_on_mariadb(on_mariadb.url, f"DROP USER {name}@'127.0.0.1'")


async def test_a_user_without_any_right_to_the_database_is_told_what_to_grant(fresh_mariadb: str) -> None:
    name = f"stranger_{new_token()[:16]}"
    await run_on_mariadb(fresh_mariadb, f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'x'")
    stranger = sa.make_url(fresh_mariadb).set(username=name, password="x")
    try:
        with pytest.raises(Unavailable, match="denied") as refused:
            await verify(stranger.render_as_string(hide_password=False))
    finally:
        await run_on_mariadb(fresh_mariadb, f"DROP USER {name}@'127.0.0.1'")
    assert "GRANT" in refused.value.hint


async def test_a_mariadb_that_is_too_old_is_refused_with_the_mend(
    fresh_mariadb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_server, "MARIADB_MIN", (99, 0))
    database = open_database(fresh_mariadb)
    for refused in (
        database.transact(tick),
        migrate.migrate(fresh_mariadb, install=INSTALL),
        verify(fresh_mariadb),
    ):
        with pytest.raises(Unavailable, match="too old") as caught:
            await refused
        assert "MariaDB 10.6" in caught.value.hint
    monkeypatch.undo()
    assert (await migrate.migrate(fresh_mariadb, install=INSTALL)).before is None, "nothing was migrated"


async def test_a_session_that_commits_by_itself_is_refused(
    on_mariadb: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_its_own = "SET SESSION autocommit = ON, innodb_lock_wait_timeout = %s"
    monkeypatch.setattr(mysql_session, "SESSION", on_its_own)
    isolation = mysql_session.ISOLATION
    monkeypatch.setattr(mysql_session, "ISOLATION", "SET SESSION autocommit = ON")
    with pytest.raises(Unavailable, match="isolation stays REPEATABLE-READ") as caught:
        await on_mariadb.transact(tick)
    assert "READ COMMITTED" in caught.value.hint
    monkeypatch.setattr(mysql_session, "ISOLATION", isolation)
    with pytest.raises(Unavailable, match="commits each statement by itself"):
        await on_mariadb.transact(tick)

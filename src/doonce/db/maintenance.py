"""One connection through SQLAlchemy for what is rare: migrating a schema and comparing it.

What runs here is a plain function of a connection inside one transaction, on SQLite in a thread of its own. Hot
statements never come this way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import mysql as mysql_dialect
from sqlalchemy.dialects import postgresql as postgresql_dialect
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.pool import NullPool
from sqlalchemy.util import await_only, greenlet_spawn

from doonce.base.errors import DoonceError, Exhausted, Unavailable
from doonce.db import (
    galera,
    mysql,
    mysql_faults,
    mysql_fences,
    mysql_plain,
    mysql_server,
    postgresql,
    postgresql_faults,
    sidefile,
    sqlite,
    tidb,
)
from doonce.db.database import Database, open_database, safe_url
from doonce.db.faults import Contended, DatabaseFault, Disconnected, OutOfSpace, SchemaFault
from doonce.db.statement import DialectName
from doonce.db.transaction import (
    Certify,
    Fetch,
    FetchThenClock,
    InsertMany,
    LockNames,
    Notify,
    ReadClock,
    Txn,
    lock_number,
)

T = TypeVar("T")
PLAIN: Final = "plain"
"""In a connection's `info`: that its statements are those of the plain form (`db/mysql_plain.py`)."""
FOR_DEFINITIONS: Final = "SET SESSION lock_wait_timeout = %s, default_storage_engine = InnoDB"
LOCK_TIMEOUT_MS: Final = 60_000
"""How long a migration waits for another one, or for running transactions to leave a table."""
DEFINITION_TIMEOUT_MS: Final = 600_000
"""How long a definition waits for its table on the MySQL wire, where giving up leaves the ones before it."""
TABLE_LOCK_MS: Final = 1_000
"""How long it waits for a table at a time. Everybody who comes later waits behind it, and a process gives up after two
seconds: so it steps back, lets them pass, and comes again."""
STEP_BACK_SECONDS: Final = 1.0
IN_THE_WAY: Final = ("55P03", "40P01")
"""PostgreSQL's codes for a lock that was not had in time, and for a deadlock."""
DEFINITION: Final = re.compile(r"\s*(CREATE|ALTER|DROP)\b", re.IGNORECASE)


async def run(url: str, work: Callable[[sa.Connection], T], *, write: bool) -> T:
    """Run `work` in one transaction of the database at `url`, commit it if `write`, and return its result.

    It waits for a table in short turns, so that nobody is kept behind it: on PostgreSQL the whole transaction is rolled
    back and run again, on the MySQL wire the definition is. On SQLite a writer holds the side file as every writer
    does, and a reader makes no file. Raises `Unavailable` when the database cannot be had or a lock is not had in time,
    `Exhausted` when its disk is full; nothing happened then.
    """
    database = open_database(url)  # checks the URL; opens nothing
    try:
        if isinstance(database.driver, sqlite.SqliteDriver):
            return await asyncio.to_thread(_run_on_sqlite, database.driver, work, write)
        if isinstance(database.driver, mysql.MysqlDriver):
            return await _run_on_mysql(database.driver, work, write)
        return await _run_on_postgresql(database, work, write)
    except sa.exc.DBAPIError as error:
        raise _translate(database, _fault(database, error.orig or error)) from error
    except (
        OSError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        mysql_faults.wire_error(),
        sqlite3.Error,
    ) as error:
        raise _translate(database, _fault(database, error)) from error
    except DatabaseFault as fault:
        raise _translate(database, fault) from fault


async def _run_on_postgresql(database: Database, work: Callable[[sa.Connection], T], write: bool) -> T:
    async def connect() -> Any:
        raw = await asyncpg.connect(
            sa.make_url(database.url).set(drivername="postgresql").render_as_string(hide_password=False),
            timeout=10,
            server_settings={
                "timezone": "UTC",
                "lock_timeout": str(TABLE_LOCK_MS),
                "synchronous_commit": "on",
            },
        )
        try:
            postgresql.refuse_old(raw.get_server_version())
        except SchemaFault:
            raw.terminate()
            raise
        return raw

    def create() -> Any:
        return engine.dialect.loaded_dbapi.connect(async_creator_fn=connect)

    engine = sa.create_engine("postgresql+asyncpg://", creator=create, poolclass=NullPool)
    give_up = time.monotonic() + LOCK_TIMEOUT_MS / 1000
    while True:
        try:
            return await greenlet_spawn(_run_within, engine, work, write)
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlstate", "") not in IN_THE_WAY or time.monotonic() > give_up:
                raise
        await asyncio.sleep(STEP_BACK_SECONDS)


def _run_within(engine: sa.Engine, work: Callable[[sa.Connection], T], write: bool) -> T:
    """Over an asynchronous driver, within a greenlet.

    SQLAlchemy's asynchronous engine is this and its whole object mapper, which no worker needs in its memory.
    """
    with engine.connect() as connection:
        result = work(connection)
        if write:
            connection.commit()
        return result


def _no_names_of_keys(record: logging.LogRecord) -> bool:
    """The server keeps no names of primary keys, and says so of each that is made."""
    return "ignored for PRIMARY key" not in record.getMessage()


async def _run_on_mysql(driver: mysql.MysqlDriver, work: Callable[[sa.Connection], T], write: bool) -> T:
    logging.getLogger("asyncmy").addFilter(_no_names_of_keys)
    engine = sa.create_engine(
        driver.url.set(drivername="mysql+asyncmy").update_query_dict({"charset": "utf8mb4"}),
        poolclass=NullPool,
        isolation_level="READ COMMITTED",
        connect_args={"connect_timeout": driver.settings.connect_timeout_seconds},
    )

    def configured(connection: sa.Connection) -> T:
        connection.exec_driver_sql(mysql.SESSION, (LOCK_TIMEOUT_MS // 1000,))
        said = _told(connection, mysql_server.VARIABLES)
        connection.info[PLAIN] = tidb.speaks_plainly(said["version"])
        if tidb.is_tidb(said["version"]):
            _prepare_tidb(connection, said["version"])
            said = _told(connection, mysql_server.VARIABLES_OF_TIDB)
        else:
            table_seconds = (TABLE_LOCK_MS if write else LOCK_TIMEOUT_MS) // 1000
            connection.exec_driver_sql(FOR_DEFINITIONS, (table_seconds,))
        why, mend = mysql_server.refusal(said)
        if why:
            raise SchemaFault(why, mend)
        if galera.is_node(said):
            connection.exec_driver_sql(galera.ALL_CAUSAL)
        return work(connection)

    sa.event.listen(engine, "do_execute", _in_turns)
    return await greenlet_spawn(_run_within, engine, configured, write)


def _told(connection: sa.Connection, question: str) -> dict[str, str]:
    """What a server on the MySQL wire says of itself."""
    return {name.lower(): str(value) for name, value in connection.exec_driver_sql(question).all()}


def _prepare_tidb(connection: sa.Connection, version: str) -> None:
    """As `mysql_session.configure` does; before the first definition, since each of them commits by itself."""
    why, mend = tidb.too_old(version)
    if why:
        raise SchemaFault(why, mend)
    connection.exec_driver_sql(tidb.SESSION)
    try:
        known = connection.exec_driver_sql(tidb.CLUSTER.mysql_plain.text).all()
    except sa.exc.DBAPIError as error:
        denied = tidb.unreadable(error.orig or error)
        if denied is not None:
            raise denied from error
        raise
    if not known:
        raise SchemaFault(*tidb.UNNAMED)


def _in_turns(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Execute a definition, again while it does not get its table: there it is a transaction of its own."""
    if DEFINITION.match(statement) is None:
        return False  # SQLAlchemy executes it
    give_up = time.monotonic() + DEFINITION_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute(statement, parameters)
        except mysql_faults.wire_error() as error:
            if not isinstance(mysql_faults.classify(error), Contended) or time.monotonic() > give_up:
                raise
        else:
            return True
        await_only(asyncio.sleep(STEP_BACK_SECONDS))


def _run_on_sqlite(driver: sqlite.SqliteDriver, work: Callable[[sa.Connection], T], write: bool) -> T:
    sqlite.refuse_unfit(driver.path)
    engine = sa.create_engine("sqlite://", creator=lambda: _open(driver.path, write), poolclass=NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    try:
        queued = sidefile.locked(driver.path) if write else contextlib.nullcontext()
        with queued, engine.connect() as connection:
            result = work(connection)
            if write:
                connection.commit()
            return result
    finally:
        engine.dispose()


def _open(path: Path, write: bool) -> sqlite3.Connection:
    mode = "rwc" if write else "rw"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, isolation_level=None, timeout=LOCK_TIMEOUT_MS / 1000
    )
    if write:
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.create_function("doonce_host_us", 0, sqlite.host_microseconds)
    return connection


class _Row:
    """A row as both drivers give it: read by position or by name, and iterable."""

    def __init__(self, row: Iterable[Any], names: tuple[str, ...]) -> None:
        self._values = tuple(row)
        self._names = names

    def __getitem__(self, key: int | str) -> Any:
        return self._values[key if isinstance(key, int) else self._names.index(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)


def drive(connection: sa.Connection, transaction: Txn[T]) -> T:
    """Carry out an owner's transaction within the one that is open here; it commits or vanishes with it."""
    dialect = DialectName(connection.dialect.name)
    value: Any = None
    while True:
        try:
            call = transaction.send(value)
        except StopIteration as stop:
            result: T = stop.value
            return result
        value = _carry_out(connection, dialect, call)


def _carry_out(connection: sa.Connection, dialect: DialectName, call: Any) -> Any:
    if isinstance(call, Fetch):
        if dialect is DialectName.MYSQL:
            return _fetch_on_mysql(connection, call)
        compiled = call.statement.on(dialect)
        result = connection.exec_driver_sql(compiled.text, tuple(compiled.arguments(call.params)))
        return [_Row(row, tuple(result.keys())) for row in result] if result.returns_rows else []
    if isinstance(call, InsertMany):
        rows = [dict(zip(call.columns, row, strict=True)) for row in call.rows]
        connection.execute(_insert(dialect, call), rows)
        return None
    if isinstance(call, ReadClock):
        return connection.exec_driver_sql(CLOCKS[dialect]).scalar_one()
    if isinstance(call, FetchThenClock):
        rows = _carry_out(connection, dialect, Fetch(call.statement, call.params))
        return rows, _carry_out(connection, dialect, ReadClock())
    if isinstance(call, LockNames):
        if dialect is DialectName.POSTGRESQL:
            for number in dict.fromkeys(map(lock_number, call.names)):
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))
        if dialect is DialectName.MYSQL:
            text, arguments = mysql_fences.fencing(call.names, range(mysql_fences.FENCE_SLOTS))
            connection.exec_driver_sql(text.replace("?", "%s"), tuple(arguments))
        return None
    if isinstance(call, Certify | Notify):
        return None  # a migration is alone, and nobody waits for it
    raise TypeError(f"not a statement: {call!r}")


CLOCKS: Final = {
    DialectName.SQLITE: sqlite.ADVANCE_CLOCK,
    DialectName.POSTGRESQL: postgresql.CLOCK,
    DialectName.MYSQL: mysql.CLOCK,
}


def _insert(dialect: DialectName, call: InsertMany) -> Any:
    if dialect is DialectName.MYSQL:
        return mysql.insert_statement(mysql_dialect.insert(call.table), call)
    on_sqlite = dialect is DialectName.SQLITE
    insert: Any = sqlite_dialect.insert(call.table) if on_sqlite else postgresql_dialect.insert(call.table)
    return insert.on_conflict_do_nothing() if call.skip_conflicts else insert


def _fetch_on_mysql(connection: sa.Connection, call: Fetch) -> list[_Row]:
    """The driver of SQLAlchemy takes its parameters in the text, and gives identities as the bytes that they are."""
    compiled = call.statement.mysql
    text, arguments = compiled.text, compiled.arguments(call.params)
    if connection.info.get(PLAIN):
        text, arguments = mysql_plain.spelled(call.statement, call.params)
    if arguments:
        text = text.replace("%", "%%").replace("?", "%s")
    result = connection.exec_driver_sql(text, tuple(arguments))
    if not result.returns_rows:
        return []
    texts = mysql.text_positions(result.cursor.description, compiled.texts)
    return [_Row(mysql.decoded(tuple(row), texts), tuple(result.keys())) for row in result]


def _fault(database: Database, error: BaseException) -> DatabaseFault:
    if database.dialect is DialectName.SQLITE:
        return sqlite.classify(error if isinstance(error, Exception) else RuntimeError(str(error)))
    if database.dialect is DialectName.MYSQL:
        return mysql_faults.classify(error if isinstance(error, Exception) else RuntimeError(str(error)))
    cause = error.__cause__ if isinstance(error.__cause__, asyncpg.PostgresError) else error
    return postgresql_faults.classify(cause if isinstance(cause, Exception) else RuntimeError(str(cause)))


def _translate(database: Database, fault: DatabaseFault) -> DoonceError:
    where = safe_url(database.url)
    if isinstance(fault, OutOfSpace):
        return Exhausted(
            "the database's disk is full; nothing was changed", hint="free space, then try again"
        )
    if isinstance(fault, Contended):
        return Unavailable(
            f"another process holds {where}; nothing was changed",
            hint="wait until the other migration or the running transactions have ended, then try again",
        )
    if isinstance(fault, Disconnected):
        return _unreached(database, where)
    if isinstance(fault, SchemaFault) and fault.hint:
        return Unavailable(f"{where}: {fault}", hint=fault.hint)
    return Unavailable(
        f"{where} refused; everything was rolled back",
        hint="the log has the database's own words; then try again",
    )


def _unreached(database: Database, where: str) -> Unavailable:
    """What a person can do about it; a file that was never made is no server that is down."""
    if isinstance(database.driver, sqlite.SqliteDriver):
        path = database.driver.path
        if not path.parent.is_dir():
            return Unavailable(
                f"the database cannot be reached: there is no folder {path.parent}",
                hint="make the folder, or name another file",
            )
        if not path.exists():
            return Unavailable(
                f"there is no database at {path}",
                hint="run `doonce migrate` with this URL; `doonce up` makes one by itself",
            )
        return Unavailable(
            "the database cannot be reached", hint=f"check that this user may read and write {path}"
        )
    return Unavailable(
        "the database cannot be reached", hint=f"check that {where} is up and accepts this user"
    )

"""The MySQL wire through asyncmy: MariaDB, MySQL and what speaks like them.

Three things are unlike the other engines. A row that a statement found counts as matched although it kept its values
(FOUND_ROWS). A deadlock or a failed certification may be told at any later statement, and after it a bare COMMIT would
succeed having done nothing: any error therefore ends the transaction here. And there is no transactional named lock:
fences are rows that everybody *writes*, since a lock that is only read is not certified on Galera (PROTOCOL S5). On a
node of such a cluster a transaction begins with all that was committed before, and `Certify` writes rows as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import mysql as mysql_dialect

from doonce.db import galera
from doonce.db.faults import CommitUnknown, Disconnected, RefusedData, RolledBack, SchemaFault, silence
from doonce.db.mysql_faults import classify, driver_errors, is_rollback_at_commit, wire_error
from doonce.db.mysql_fences import FENCE_SLOTS, certifying, fencing
from doonce.db.mysql_server import VARIABLES, refusal
from doonce.db.mysql_sql import MysqlText, batch_source
from doonce.db.schema import HINTS
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
)

T = TypeVar("T")
CLOCK: Final = "SELECT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)"
BEGIN: Final = "START TRANSACTION READ WRITE"
BEGIN_READ: Final = "START TRANSACTION READ ONLY"
SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION',"
    " innodb_lock_wait_timeout = %s"
)
ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
IDLE: Final = "SET SESSION idle_transaction_timeout = %s"
STATEMENT_TIME: Final = {
    True: "SET SESSION max_statement_time = %s / 1000",
    False: "SET SESSION max_execution_time = %s",
}
"""How long a statement may run, on MariaDB and elsewhere."""

FOUND_ROWS: Final = 2
IN_TRANSACTION: Final = 1
TEXT_TYPES: Final = frozenset({15, 253, 254})
"""Numbers of the protocol: a capability of the client, a bit of the server's status, the types of short texts."""


@dataclass(frozen=True, slots=True)
class MysqlSettings:
    """How connections are made. Each is a line in docs/settings.md."""

    connections_max: int = 12
    connect_timeout_seconds: float = 10.0
    lock_timeout_seconds: int = 2
    statement_timeout_ms: int = 15_000
    idle_in_transaction_timeout_seconds: int = 20
    answer_timeout_seconds: float = 30.0


class MysqlRow:
    """A row, read by position or by column name."""

    __slots__ = ("_names", "_values")

    def __init__(self, values: tuple[Any, ...], names: dict[str, int]) -> None:
        self._values = values
        self._names = names

    def __getitem__(self, key: int | str) -> Any:
        return self._values[key if isinstance(key, int) else self._names[key]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class PooledConnection:
    """One connection with its prepared statements, and the fence slot that it writes where it shares one.

    `certifies`: it leads to a node of a cluster, where no lock is seen by the other nodes.
    """

    def __init__(self, raw: Any, slot: int) -> None:
        self.raw = raw
        self.slot = slot
        self.certifies = False
        self._prepared: dict[str, Any] = {}
        self.committing = False

    async def fetch(self, text: str, arguments: Sequence[Any] = ()) -> list[MysqlRow]:
        """Rows of one statement, prepared once per connection."""
        statement = self._prepared.get(text)
        if statement is None:
            statement = self._prepared[text] = await self.raw.prepare(text)
        result = await statement.execute(arguments)
        if not result.description:
            return []
        names = {column[0]: position for position, column in enumerate(result.description)}
        texts = text_positions(result.description)
        return [MysqlRow(decoded(row, texts), names) for row in result.rows or ()]

    async def execute(self, text: str, arguments: Sequence[Any] = ()) -> None:
        """Run one statement without rows, as text."""
        async with self.raw.cursor() as cursor:
            await cursor.execute(text, arguments or None)

    async def insert(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows as one set."""
        async with self.raw.cursor() as cursor:
            await cursor.executemany(text, rows)

    def in_transaction(self) -> bool:
        """Whether the server's last word says that a transaction is open."""
        return bool(self.raw.server_status & IN_TRANSACTION)

    def forget(self) -> None:
        """Prepare every statement anew: a table may have changed under one."""
        self._prepared.clear()

    def terminate(self) -> None:
        """Drop the connection without a word."""
        self.raw.close()


def text_positions(description: Iterable[Sequence[Any]]) -> list[int]:
    """Which columns of a result hold texts, although the server may call them bytes."""
    return [position for position, column in enumerate(description) if column[1] in TEXT_TYPES]


def decoded(row: tuple[Any, ...], texts: Sequence[int]) -> tuple[Any, ...]:
    """Identities are bytes to the server, so that nothing folds or pads them; here they are text again."""
    if not any(isinstance(row[position], bytes) for position in texts):
        return row
    values = list(row)
    for position in texts:
        if isinstance(values[position], bytes):
            values[position] = values[position].decode()
    return tuple(values)


class MysqlDriver:
    """Runs transactions on MariaDB 10.11, MySQL 8, or newer."""

    dialect = DialectName.MYSQL

    def __init__(self, url: str, settings: MysqlSettings) -> None:
        self.url = sa.make_url(url)
        self.settings = settings
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(settings.connections_max)
        self._numbers = itertools.count(os.getpid())  # processes spread over the slots
        self._inserts: dict[tuple[str, tuple[str, ...], bool], str] = {}
        self._closed = False
        self.admit: Callable[[PooledConnection], Awaitable[None]] | None = None
        """Looks at each new connection before its first transaction, and may refuse it (PROTOCOL S1, S2)."""

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        """Drive one transaction and commit it; raises a `DatabaseFault` that says what is proven."""
        async with self._slots:
            connection = self._idle.pop() if self._idle else await self._connect()
            connection.committing = False
            try:
                async with asyncio.timeout(self.settings.answer_timeout_seconds):
                    result = await self._drive(connection, factory(), readonly)
            except TimeoutError as error:  # of this time-out: the driver's own are faults by now
                connection.terminate()
                raise silence(committing=connection.committing) from error
            except (Disconnected, CommitUnknown):
                connection.terminate()
                raise
            except Exception:
                await self._roll_back(connection)
                raise
            except BaseException:  # the loop is ending: whatever this connection was doing is over
                connection.terminate()
                raise
            self._release(connection)
            return result

    async def _drive(self, connection: PooledConnection, transaction: Txn[T], readonly: bool) -> T:
        result: T
        try:
            await _ask(connection.execute(BEGIN_READ if readonly else BEGIN))
            value: Any = None
            while True:
                try:
                    call = transaction.send(value)
                except StopIteration as stop:
                    result = stop.value
                    break
                value = await _ask(self._carry_out(connection, call))
        finally:
            transaction.close()
        await self._commit(connection)
        return result

    async def _carry_out(self, connection: PooledConnection, call: Any) -> Any:
        if isinstance(call, Fetch):
            compiled = call.statement.mysql
            return await connection.fetch(compiled.text, compiled.arguments(call.params))
        if isinstance(call, InsertMany):
            if call.skip_conflicts and call.table.info.get(HINTS):
                await connection.fetch(self._insert_text(call), (msgspec.json.encode(call.rows).decode(),))
            else:
                await connection.insert(self._insert_text(call), call.rows)
            return None
        if isinstance(call, FetchThenClock):
            compiled = call.statement.mysql
            rows = await connection.fetch(compiled.text, compiled.arguments(call.params))
            return rows, (await connection.fetch(CLOCK))[0][0]
        if isinstance(call, ReadClock):
            return (await connection.fetch(CLOCK))[0][0]
        if isinstance(call, LockNames):
            slots = range(FENCE_SLOTS) if call.exclusive else (connection.slot,)
            await connection.fetch(*fencing(call.names, slots))
            return None
        if isinstance(call, Certify) and connection.certifies:
            await connection.fetch(*certifying(call.names))
            return None
        if isinstance(call, Certify | Notify):
            return None  # row locks exclude everybody here; the server carries no hints, so others poll
        raise TypeError(f"not a statement: {call!r}")

    async def _commit(self, connection: PooledConnection) -> None:
        if not connection.in_transaction():
            raise RolledBack("the server has ended the transaction by itself: a COMMIT would do nothing")
        connection.committing = True
        try:
            await connection.execute("COMMIT")
        except wire_error() as error:
            if is_rollback_at_commit(error, of_cluster=connection.certifies):
                raise classify(error) from error
            raise CommitUnknown(f"the commit failed: {error}") from error
        except driver_errors() as error:
            raise CommitUnknown("the connection was lost while committing") from error

    def _insert_text(self, call: InsertMany) -> str:
        key = (call.table.name, call.columns, call.skip_conflicts)
        if key not in self._inserts:
            self._inserts[key] = insert_text(call.table, call.columns, call.skip_conflicts)
        return self._inserts[key]

    def _release(self, connection: PooledConnection) -> None:
        if self._closed:
            connection.terminate()
        else:
            self._idle.append(connection)

    async def _roll_back(self, connection: PooledConnection) -> None:
        try:
            async with asyncio.timeout(self.settings.connect_timeout_seconds):
                await connection.execute("ROLLBACK")
        except driver_errors():
            connection.terminate()
        else:
            connection.forget()
            self._release(connection)

    async def _connect(self) -> PooledConnection:
        import asyncmy  # noqa: PLC0415 (workers on other engines have no use for it)

        settings, url = self.settings, self.url
        try:
            raw = await asyncmy.connect(
                host=url.host or "127.0.0.1",
                port=url.port or 3306,
                user=url.username,
                password=url.password or "",
                database=url.database,
                charset="utf8mb4",
                autocommit=False,
                client_flag=FOUND_ROWS,
                connect_timeout=settings.connect_timeout_seconds,
            )
        except driver_errors() as error:
            raise Disconnected(f"no connection to the database: {error}") from error
        connection = PooledConnection(raw, next(self._numbers) % FENCE_SLOTS)
        try:
            await configure(connection, settings, is_mariadb="MariaDB" in raw.get_server_info())
            if self.admit is not None:
                await self.admit(connection)
        except driver_errors() as error:
            connection.terminate()
            raise Disconnected(f"no connection to the database: {error}") from error
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def listen(self, wake: Callable[[str], None]) -> None:
        """Other processes cannot be heard here: their waiters poll."""

    async def close(self) -> None:
        """Close idle connections; those in use close when their transaction ends."""
        self._closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            with contextlib.suppress(*driver_errors()):
                await connection.raw.ensure_closed()


async def configure(connection: PooledConnection, settings: MysqlSettings, *, is_mariadb: bool) -> None:
    """Set what every session needs, and raise `SchemaFault` unless the server took it and can serve."""
    await connection.execute(SESSION, (settings.lock_timeout_seconds,))
    await connection.execute(ISOLATION)
    if is_mariadb:
        await connection.execute(IDLE, (settings.idle_in_transaction_timeout_seconds,))
    await connection.execute(STATEMENT_TIME[is_mariadb], (settings.statement_timeout_ms,))
    said = {row[0].lower(): str(row[1]) for row in await connection.fetch(VARIABLES)}
    why, mend = refusal(said)
    if why:
        raise SchemaFault(why, mend)
    if galera.is_node(said):
        await _join_cluster(connection)


async def _join_cluster(connection: PooledConnection) -> None:
    """Set what a session on a node of a cluster needs; raises `Disconnected` while that node may not be worked with."""
    status = {row[0].lower(): str(row[1]) for row in await connection.fetch(galera.STATUS)}
    doubts = galera.doubts(status)
    if doubts:
        raise Disconnected("; ".join(doubts))
    await connection.execute(galera.CAUSAL_READS)
    connection.certifies = True


async def _ask(question: Awaitable[T]) -> T:
    try:
        return await question
    except driver_errors() as error:
        raise classify(error) from error
    except (UnicodeError, OverflowError, ValueError) as error:
        raise RefusedData(str(error)) from error


def insert_text(table: sa.Table, columns: tuple[str, ...], skip_conflicts: bool) -> str:
    """INSERT … VALUES of one row, which the driver repeats for the others.

    A key that is there is left as it is by an assignment of a column to itself: `INSERT IGNORE` would also swallow
    and truncate what the server refuses (PROTOCOL T7).
    """
    plain = mysql_dialect.insert(table).values({name: sa.bindparam(name) for name in columns})
    statement = insert_statement(plain, InsertMany(table, columns, (), skip_conflicts))
    if skip_conflicts and table.info.get(HINTS):
        return hint_text(table, columns)
    compiled: Any = statement.compile(
        dialect=mysql_dialect.dialect(paramstyle="format"), column_keys=list(columns)
    )
    if tuple(compiled.positiontup) != columns:
        raise TypeError(f"give the columns of {table.name} in table order: {compiled.positiontup}")
    return str(compiled.string)


def hint_text(table: sa.Table, columns: tuple[str, ...]) -> str:
    """One statement for any number of hints: those that are not to be seen yet are inserted.

    Whoever looks at a hint has it locked, and may be waiting for a lane that this transaction holds: to wait for him
    would be a deadlock. The look here locks nothing, as READ COMMITTED has it for an INSERT … SELECT.
    """
    rows = batch_source("batch", {name: table.c[name].type for name in columns})
    there = table.alias("there")
    same = sa.and_(*[there.c[key.name] == rows.c[key.name] for key in table.primary_key])
    (first, *_) = table.primary_key.columns
    absent = (
        sa.select(*[rows.c[name] for name in columns])
        .select_from(rows.outerjoin(there, same))
        .where(there.c[first.name].is_(None))
    )
    insert = mysql_dialect.insert(table).from_select(list(columns), absent)
    return str(insert.on_duplicate_key_update({first.name: first}).compile(dialect=MysqlText()))


def insert_statement(insert: mysql_dialect.Insert, call: InsertMany) -> mysql_dialect.Insert:
    """The insert, which leaves a key that is there as it is where the call says so."""
    if not call.skip_conflicts:
        return insert
    (first, *_) = call.table.primary_key.columns
    return insert.on_duplicate_key_update({first.name: first})


__all__ = ["MysqlDriver", "MysqlSettings", "classify", "insert_text"]

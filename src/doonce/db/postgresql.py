"""PostgreSQL through asyncpg: a small pool of connections that drive generators."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as postgresql_dialect

from doonce.db.closing import close_all
from doonce.db.faults import CommitUnknown, Disconnected, RolledBack, SchemaFault, silence
from doonce.db.postgresql_faults import classify
from doonce.db.posting import Posted, Write
from doonce.db.statement import DialectName, array_encoder, array_parameter, sqlalchemy_dialect
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
CLOCK = "SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint"
LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared({:d})"
LOCK_EXCLUSIVE = "SELECT pg_advisory_xact_lock({:d})"
CHANNEL = "doonce_wake"
SERVER_MIN = 15
NOTIFY = "SELECT pg_notify('doonce_wake', topic) FROM unnest($1::text[]) AS topic"
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
UNKNOWN_AT_COMMIT = ("57P", "08", "XX", "58")
OUTDATED_STATEMENT = ("0A000", "26000")
"""A prepared statement's tables have changed under it, or the server has forgotten it: prepare it anew."""
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # TimeoutError is one
)


@dataclass(frozen=True, slots=True)
class PostgresqlSettings:
    """How connections are made. Times in seconds; each is a line in docs/settings.md."""

    connections_max: int = 12
    connect_timeout_seconds: float = 10.0
    lock_timeout_ms: int = 2_000
    statement_timeout_ms: int = 15_000
    idle_in_transaction_timeout_ms: int = 20_000
    answer_timeout_seconds: float = 30.0
    application_name: str = "doonce"


class PooledConnection:
    """One connection with its prepared statements."""

    def __init__(self, raw: asyncpg.Connection[Any]) -> None:
        self.raw = raw
        self.prepared: dict[str, Any] = {}
        self._names = itertools.count()
        self.warnings: list[str] = []
        self.committing = False
        raw.add_log_listener(self._note)

    def _note(self, _: object, message: Any) -> None:
        if getattr(message, "severity_en", "") in ("WARNING", "ERROR", "FATAL"):
            self.warnings.append(str(message))

    async def fetch(self, text: str, *arguments: Any) -> list[Any]:
        """Rows of one statement, prepared once per connection."""
        statement = self.prepared.get(text)
        if statement is None:
            statement = self.prepared[text] = await self.raw.prepare(text, name=f"doonce_{next(self._names)}")
        rows: list[Any] = await statement.fetch(*arguments)
        return rows


class PostgresqlDriver:
    """Runs transactions on PostgreSQL 15 or newer."""

    dialect = DialectName.POSTGRESQL

    def __init__(self, url: str, settings: PostgresqlSettings) -> None:
        self.url = url.replace("postgresql+asyncpg://", "postgresql://", 1)
        self.settings = settings
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(settings.connections_max)
        self._inserts: dict[tuple[str, tuple[str, ...], bool], str] = {}
        self._array_encoders: dict[tuple[str, tuple[str, ...]], list[Callable[[Sequence[Any]], Any]]] = {}
        self._listener: asyncpg.Connection[Any] | None = None
        self._servers: set[int] = set()
        """The server processes of this driver's connections: what they notify was heard here at its commit."""
        self._closed = False
        self.admit: Callable[[asyncpg.Connection[Any]], Awaitable[None]] | None = None
        """Looks at each new connection before its first transaction, and may refuse it (PROTOCOL S1, S2)."""

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        """Drive one transaction and commit it; raises a `DatabaseFault` that says what is proven."""
        async with self._slots:
            connection = await self._acquire()
            connection.committing = False
            drive = self._read if readonly else self._drive
            try:
                async with asyncio.timeout(self.settings.answer_timeout_seconds):
                    result = await drive(connection, factory())
            except TimeoutError as error:  # of this time-out: the driver's own are faults by now
                connection.raw.terminate()
                raise silence(committing=connection.committing) from error
            except (Disconnected, CommitUnknown):
                connection.raw.terminate()
                raise
            except Exception as error:
                if getattr(error.__cause__, "sqlstate", None) in OUTDATED_STATEMENT:
                    connection.prepared.clear()
                await self._roll_back(connection)
                raise
            except BaseException:  # the loop is ending: whatever this connection was doing is over
                connection.raw.terminate()
                raise
            self._release(connection)
            return result

    async def _read(self, connection: PooledConnection, transaction: Txn[T]) -> T:
        """Carry out a read: each of its statements has a snapshot of its own anyway, so no transaction is opened."""
        value: Any = None
        try:
            while True:
                call = transaction.send(value)
                refuse_write(call)
                value = await self._ask(self._carry_out(connection, call))
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            transaction.close()

    async def _drive(self, connection: PooledConnection, transaction: Txn[T]) -> T:
        result: T
        posted = Posted()
        call: Any = None
        value: Any = None
        try:
            call = next(transaction)
            await self._ask(connection.raw.execute(opening(call)))
            if isinstance(call, LockNames):
                call = transaction.send(None)
            while True:
                value = await self._ask(self._step(connection, call, posted))
                call = transaction.send(value)
        except StopIteration as stop:
            result = stop.value
            if call is None:
                return result  # it asked for nothing
            if posted.topics:
                posted.writes.append(Write(NOTIFY, [posted.topics], "", frozenset()))
            if posted.writes:
                await self._ask(self._send(connection, posted))
        finally:
            transaction.close()
        await self._commit(connection)
        return result

    async def _step(self, connection: PooledConnection, call: Any, posted: Posted) -> Any:
        """Carry out one call; a write without rows is only posted, and sent with the others before the next answer."""
        if isinstance(call, Notify):
            posted.topics.extend(call.topics)
            return None
        if isinstance(call, Certify):
            return None  # a row's lock excludes everybody
        write = self._write(call)
        if posted.writes and not (_overtakes(call, posted) if write is None else posted.admits(write)):
            await self._send(connection, posted)
        if write is None:
            return await self._carry_out(connection, call)
        posted.writes.append(write)
        return [] if isinstance(call, Fetch) else None

    @staticmethod
    async def _send(connection: PooledConnection, posted: Posted) -> None:
        text, arguments = posted.take()
        await connection.fetch(text, *arguments)

    def _write(self, call: Any) -> Write | None:
        if isinstance(call, InsertMany):
            columns = zip(*call.rows, strict=True)
            arrays = [encode(column) for encode, column in zip(self._encoders(call), columns, strict=True)]
            return Write(self._insert_text(call), arrays, call.table.name, frozenset({call.table.name}))
        if isinstance(call, Fetch) and (table := call.statement.postgresql.writes) is not None:
            compiled = call.statement.postgresql
            return Write(compiled.text, compiled.arguments(call.params), table, compiled.touches)
        return None

    @staticmethod
    async def _ask(question: Awaitable[T]) -> T:
        try:
            return await question
        except DRIVER_ERRORS as error:
            raise classify(error) from error

    async def _carry_out(self, connection: PooledConnection, call: Any) -> Any:
        write = self._write(call)
        if write is not None:
            await connection.fetch(write.text, *write.arguments)
            return [] if isinstance(call, Fetch) else None
        if isinstance(call, Fetch):
            compiled = call.statement.postgresql
            return await connection.fetch(compiled.text, *compiled.arguments(call.params))
        if isinstance(call, FetchThenClock):
            compiled = call.statement.postgresql_then_clock
            rows = await connection.fetch(compiled.text, *compiled.arguments(call.params))
            return rows, rows[-1]["now_us"] if rows else (await connection.fetch(CLOCK))[0][0]
        if isinstance(call, ReadClock):
            return (await connection.fetch(CLOCK))[0][0]
        if isinstance(call, LockNames):
            await connection.raw.execute("; ".join(lock_texts(call)))
            return None
        raise TypeError(f"not a statement: {call!r}")

    async def _commit(self, connection: PooledConnection) -> None:
        connection.warnings.clear()
        connection.committing = True
        try:
            status = await connection.raw.execute("COMMIT")
        except asyncpg.PostgresError as error:
            if (error.sqlstate or "").startswith(UNKNOWN_AT_COMMIT):
                raise CommitUnknown("the server stopped while committing") from error
            raise classify(error) from error
        except DRIVER_ERRORS as error:
            raise CommitUnknown("the connection was lost while committing") from error
        if status != "COMMIT":
            raise RolledBack("the server rolled back instead of committing")
        if connection.warnings:
            raise CommitUnknown(f"the server warned while committing: {connection.warnings[0]}")

    def _encoders(self, call: InsertMany) -> list[Callable[[Sequence[Any]], Any]]:
        key = (call.table.name, call.columns)
        if key not in self._array_encoders:
            self._array_encoders[key] = [array_encoder(call.table.c[name].type) for name in call.columns]
        return self._array_encoders[key]

    def _insert_text(self, call: InsertMany) -> str:
        key = (call.table.name, call.columns, call.skip_conflicts)
        if key not in self._inserts:
            self._inserts[key] = insert_text(call.table, call.columns, call.skip_conflicts)
        return self._inserts[key]

    async def _acquire(self) -> PooledConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.raw.is_closed():
                return connection
        raw = await self._connect()
        server = raw.get_server_pid()
        self._servers.add(server)
        raw.add_termination_listener(lambda _: self._servers.discard(server))
        return PooledConnection(raw)

    def _release(self, connection: PooledConnection) -> None:
        if self._closed:
            connection.raw.terminate()
        elif not connection.raw.is_closed():
            self._idle.append(connection)

    async def _roll_back(self, connection: PooledConnection) -> None:
        try:
            async with asyncio.timeout(self.settings.connect_timeout_seconds):
                await connection.raw.execute("ROLLBACK")
        except BaseException as error:
            connection.raw.terminate()
            if not isinstance(error, DRIVER_ERRORS):
                raise
        else:
            self._release(connection)

    async def _connect(self) -> asyncpg.Connection[Any]:
        settings = self.settings
        try:
            raw: asyncpg.Connection[Any] = await asyncpg.connect(
                self.url,
                timeout=settings.connect_timeout_seconds,
                statement_cache_size=0,
                server_settings={
                    "application_name": settings.application_name,
                    "timezone": "UTC",
                    "lock_timeout": str(settings.lock_timeout_ms),
                    "statement_timeout": str(settings.statement_timeout_ms),
                    "idle_in_transaction_session_timeout": str(settings.idle_in_transaction_timeout_ms),
                    "jit": "off",
                    # Every hot statement joins a batch to an index. A generic plan spares planning it anew each time (a
                    # third of the server's work), and no statistic may ever turn it into a scan or a hash of a table.
                    "plan_cache_mode": "force_generic_plan",
                    "enable_seqscan": "off",
                    "enable_hashjoin": "off",
                    "enable_mergejoin": "off",
                    "default_transaction_isolation": "read committed",
                },
            )
        except DRIVER_ERRORS as error:
            raise Disconnected(f"no connection to the database: {error}") from error
        try:
            refuse_old(raw.get_server_version())
            if self.admit is not None:
                await self.admit(raw)
        except DRIVER_ERRORS as error:
            raw.terminate()
            raise Disconnected(f"no connection to the database: {error}") from error
        except BaseException:
            raw.terminate()
            raise
        return raw

    async def listen(self, wake: Callable[[str], None]) -> None:
        """Call `wake(topic)` for each hint from another process; a lost listener only costs polling."""

        def heard(_: object, server: int, __: object, topic: object) -> None:
            if server not in self._servers:
                wake(str(topic))

        if self._listener is None or self._listener.is_closed():
            listener = await self._connect()
            try:
                await self._ask(listener.add_listener(CHANNEL, heard))
            except BaseException:
                listener.terminate()
                raise
            self._listener = listener

    async def close(self) -> None:
        """Close idle connections; those in use close when their transaction ends."""
        self._closed = True
        connections = [connection.raw for connection in self._idle]
        self._idle.clear()
        if self._listener is not None:
            connections.append(self._listener)
        await close_all(connections)


def refuse_old(version: Any) -> None:
    """Raise `SchemaFault` for a server that is older than what is tested."""
    if version.major < SERVER_MIN:
        raise SchemaFault(
            f"the server is {version.major}.{version.minor}, which is too old", "use PostgreSQL 15 or newer"
        )


def refuse_write(call: Any) -> None:
    """A read asks and locks nothing; raises `TypeError` for anything else, which is a fault of ours."""
    if not (isinstance(call, ReadClock) or (isinstance(call, Fetch) and call.statement.postgresql.plain)):
        raise TypeError(f"a read may not write or lock: {call!r}")


def _overtakes(call: Any, posted: Posted) -> bool:
    """Whether a question may be asked before what has gathered is sent."""
    return isinstance(call, Fetch) and posted.lets_pass(call.statement.postgresql)


def opening(first: Any) -> str:
    """What begins a transaction, with its first locks in the same trip where it begins with locks."""
    return "; ".join([BEGIN, *lock_texts(first)]) if isinstance(first, LockNames) else BEGIN


def lock_texts(call: LockNames) -> list[str]:
    """One statement for each lock, in the order of the names; nothing but integers of ours goes into the text."""
    text = LOCK_EXCLUSIVE if call.exclusive else LOCK_SHARED
    return [text.format(number) for number in dict.fromkeys(map(lock_number, call.names))]


def insert_text(table: sa.Table, columns: tuple[str, ...], skip_conflicts: bool) -> str:
    """INSERT … SELECT FROM unnest(…): one statement for any number of rows."""
    arrays = [array_parameter(name, table.c[name].type) for name in columns]
    source = (
        sa.func.unnest(*arrays)
        .table_valued(*[sa.column(name) for name in columns])
        .render_derived(name="batch")
    )
    statement = postgresql_dialect.insert(table).from_select(
        list(columns), sa.select(*[source.c[name] for name in columns])
    )
    if skip_conflicts:
        statement = statement.on_conflict_do_nothing()
    compiled: Any = statement.compile(dialect=sqlalchemy_dialect(DialectName.POSTGRESQL))
    if tuple(compiled.positiontup) != columns:
        raise TypeError(f"the columns of {table.name} compiled in another order")
    return str(compiled.string)

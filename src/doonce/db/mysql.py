"""The MySQL wire through asyncmy: MariaDB, MySQL and what speaks like them.

Three things are unlike the other engines. A row that a statement found counts as matched although it kept its values
(FOUND_ROWS). A deadlock or a failed certification may be told at any later statement, and after it a bare COMMIT would
succeed having done nothing: any error therefore ends the transaction here. And there is no transactional named lock:
fences are rows that everybody *writes*, since a lock that is only read is not certified on Galera (PROTOCOL S5). On a
node of such a cluster a transaction begins with all that was committed before, `Certify` writes rows as well, and a
savepoint shows before COMMIT that it is still the one that was begun.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import sqlalchemy as sa

from doonce.db import galera, mysql_plain
from doonce.db.closing import close_all
from doonce.db.faults import CommitUnknown, Disconnected, RefusedData, RolledBack, silence
from doonce.db.mysql_connection import BEGIN, PooledConnection, decoded, text_positions
from doonce.db.mysql_faults import classify, driver_errors, is_rollback_at_commit, wire_error
from doonce.db.mysql_fences import FENCE_SLOTS, certifying, fencing
from doonce.db.mysql_inserts import are_hints, hint_insert, insert_statement, insert_text
from doonce.db.mysql_session import SESSION, MysqlSettings, configure
from doonce.db.statement import Compiled, DialectName
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
FOUND_ROWS: Final = 2
"""A number of the protocol: a capability of the client."""


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
        self._hints: dict[tuple[str, tuple[str, ...], bool], Compiled] = {}
        self._closed = False
        self.admit: Callable[[PooledConnection], Awaitable[None]] | None = None
        """Looks at each new connection before its first transaction, and may refuse it (PROTOCOL S1, S2)."""

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        """Drive one transaction and commit it; raises a `DatabaseFault` that says what is proven."""
        async with self._slots:
            connection = self._rested() or await self._connect()
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
            await _ask(connection.begin(readonly=readonly))
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
        await self._commit(connection, readonly=readonly)
        return result

    async def _carry_out(self, connection: PooledConnection, call: Any) -> Any:
        if isinstance(call, Fetch):
            return await connection.ask(call.statement, call.params)
        if isinstance(call, InsertMany):
            if are_hints(call):
                await self._insert_hints(connection, call)
            else:
                await connection.insert(self._insert_text(call), call.rows)
            return None
        if isinstance(call, FetchThenClock):
            rows = await connection.ask(call.statement, call.params)
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

    async def _commit(self, connection: PooledConnection, *, readonly: bool = False) -> None:
        if connection.of_galera and not readonly:
            await _ask(connection.execute(galera.STILL_THERE))
        if not connection.in_transaction():
            raise RolledBack("the server has ended the transaction by itself: a COMMIT would do nothing")
        connection.committing = True
        try:
            await connection.execute("COMMIT")
        except wire_error() as error:
            if is_rollback_at_commit(error, of_cluster=connection.certifies, of_tidb=connection.of_tidb):
                raise classify(error) from error
            raise CommitUnknown(f"the commit failed: {error}") from error
        except driver_errors() as error:
            raise CommitUnknown("the connection was lost while committing") from error

    def _insert_text(self, call: InsertMany) -> str:
        key = (call.table.name, call.columns, call.skip_conflicts)
        if key not in self._inserts:
            self._inserts[key] = insert_text(call.table, call.columns, call.skip_conflicts)
        return self._inserts[key]

    async def _insert_hints(self, connection: PooledConnection, call: InsertMany) -> None:
        key = (call.table.name, call.columns, connection.plain)
        if key not in self._hints:
            self._hints[key] = hint_insert(call.table, call.columns, plain=connection.plain)
        insert, params = self._hints[key], {"batch": call.rows}
        if connection.plain:
            await connection.fetch(*mysql_plain.spell(insert, params))
        else:
            await connection.fetch(insert.text, insert.arguments(params))

    def _release(self, connection: PooledConnection) -> None:
        if self._closed:
            connection.terminate()
        else:
            connection.rest()
            self._idle.append(connection)

    def _rested(self) -> PooledConnection | None:
        """The one that was used last; the ones that have rested too long are dropped."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.terminate()
        return None

    async def _roll_back(self, connection: PooledConnection) -> None:
        try:
            async with asyncio.timeout(self.settings.connect_timeout_seconds):
                await connection.execute("ROLLBACK")
        except BaseException as error:
            connection.terminate()
            if not isinstance(error, driver_errors()):
                raise
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
            await configure(connection, settings, raw.get_server_info())
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
        await close_all(idle)


async def _ask(question: Awaitable[T]) -> T:
    try:
        return await question
    except driver_errors() as error:
        raise classify(error) from error
    except (UnicodeError, OverflowError, ValueError) as error:
        raise RefusedData(str(error)) from error


__all__ = [
    "BEGIN",
    "SESSION",
    "MysqlDriver",
    "MysqlSettings",
    "PooledConnection",
    "classify",
    "decoded",
    "insert_statement",
    "insert_text",
    "text_positions",
]

"""Runs transactions side by side on a server, one statement at a time, in an order that a test chooses."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import sqlalchemy as sa

from doonce.db import mysql, postgresql
from doonce.db.mysql import MysqlDriver
from doonce.db.postgresql import PostgresqlDriver
from doonce.db.transaction import Certify, Notify, Txn

Waits = Callable[[Any], Awaitable[bool]]


class Stepped:
    """One transaction on a connection of its own, moved on by `step`. A step may wait for another's lock."""

    def __init__(self, driver: Any, connection: Any, transaction: Txn[Any]) -> None:
        self._driver = driver
        self._connection = connection
        self._transaction = transaction
        self._value: Any = None
        self._begun = False
        self._step: asyncio.Task[None] | None = None
        self.finished = False
        self.result: Any = None

    @property
    def stuck(self) -> bool:
        """Whether its last step still waits for a lock."""
        return self._step is not None and not self._step.done()

    async def step(self, waits: Waits) -> None:
        """Carry out one statement, or the commit; returns when it is done, or waits for somebody's lock."""
        if self._step is not None and self._step.done():
            self._step.result()
            self._step = None
        if self._step is None:
            if self.finished:
                return
            self._step = asyncio.create_task(self._advance())
        while not self._step.done():
            await asyncio.wait([self._step], timeout=0.01)
            if not self._step.done() and await waits(self._connection):
                return
        self._step.result()

    async def _advance(self) -> None:
        if not self._begun:
            self._begun = True
            await begin(self._connection)
        try:
            call = self._transaction.send(self._value)
        except StopIteration as stop:
            await self._driver._commit(self._connection)
            self.result, self.finished = stop.value, True
        else:
            hint = isinstance(call, Notify)  # nobody waits for it here
            locks = isinstance(call, Certify) and not isinstance(
                self._driver, MysqlDriver
            )  # as the database does
            self._value = None if hint or locks else await self._driver._carry_out(self._connection, call)


async def begin(connection: Any) -> None:
    """As the connection's driver begins."""
    if isinstance(connection, mysql.PooledConnection):
        await connection.begin()
    else:
        await connection.raw.execute(postgresql.BEGIN)


class Interleaver:
    """Two or more connections and one that watches them, kept for many runs."""

    def __init__(self, driver: Any, connections: list[Any], waits: Waits) -> None:
        self._driver = driver
        self._connections = connections
        self._waits = waits

    async def run(self, transactions: Sequence[Txn[Any]], order: Sequence[int]) -> list[Any]:
        """Run the transactions in this order of steps, then each to its end; their results.

        A step that waits for a lock is left waiting while the others go on. A deadlock fails the test.
        """
        pairs = zip(self._connections, transactions, strict=True)
        stepped = [Stepped(self._driver, connection, transaction) for connection, transaction in pairs]
        for which in order:
            if not stepped[which].stuck:
                await stepped[which].step(self._waits)
        for _ in range(1_000):
            if all(one.finished for one in stepped):
                return [one.result for one in stepped]
            for one in stepped:
                if not one.finished:
                    await one.step(self._waits)
        raise AssertionError("these transactions never end")


@contextlib.asynccontextmanager
async def interleaver(driver: Any, width: int = 2) -> AsyncIterator[Interleaver]:
    """An interleaver of so many transactions at a time."""
    if isinstance(driver, MysqlDriver):
        async with _on_mysql(driver, width) as made:
            yield made
        return
    assert isinstance(driver, PostgresqlDriver)
    connections = [postgresql.PooledConnection(await driver._connect()) for _ in range(width)]
    watcher = await driver._connect()

    async def waits(connection: postgresql.PooledConnection) -> bool:
        process = connection.raw.get_server_pid()
        return bool(await watcher.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", process))

    try:
        yield Interleaver(driver, connections, waits)
    finally:
        for connection in connections:
            connection.raw.terminate()
        await watcher.close()


def lock_waits(engine: sa.Engine) -> list[str]:
    """What MariaDB says of each transaction that waits for a lock. Its tables of them are stale when asked often."""
    with engine.connect() as connection:
        status = str(connection.exec_driver_sql("SHOW ENGINE INNODB STATUS").one()[2])
    return [block for block in status.split("---TRANSACTION") if "LOCK WAIT" in block]


@contextlib.asynccontextmanager
async def _on_mysql(driver: MysqlDriver, width: int) -> AsyncIterator[Interleaver]:
    connections = [await driver._connect() for _ in range(width)]
    engine = sa.create_engine(driver.url.set(drivername="mysql+pymysql"), isolation_level="AUTOCOMMIT")

    async def waits(connection: mysql.PooledConnection) -> bool:
        thread = f"thread id {connection.raw.thread_id()},"
        return any(thread in block for block in await asyncio.to_thread(lock_waits, engine))

    try:
        yield Interleaver(driver, connections, waits)
    finally:
        for connection in connections:
            connection.terminate()
        engine.dispose()


def orders(first: int, second: int) -> list[list[int]]:
    """Each transaction stopped after each of its steps while the other runs through; and the two in turns."""
    stopped = [[0] * steps + [1] * second for steps in range(first)]
    stopped += [[1] * steps + [0] * first for steps in range(second)]
    return [*stopped, [0, 1] * max(first, second), [1, 0] * max(first, second)]

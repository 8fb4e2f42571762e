"""A node that lags behind, and transactions of it that end there after what they have not seen (PROTOCOL S5).

What the node has to apply stands behind a table that is locked there: with one applier everything that the cluster
commits meanwhile waits, while the node's own clients go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import sqlalchemy as sa

from doonce.db.database import Database
from doonce.db.mysql import MysqlDriver, PooledConnection
from doonce.db.transaction import Txn

PLUG = sa.Table(
    "plug", sa.MetaData(), sa.Column("id", sa.Integer(), primary_key=True), sa.Column("moves", sa.Integer())
)


def engine_of(url: str) -> sa.Engine:
    """Plain connections to one node."""
    return sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"), poolclass=sa.pool.NullPool)


def plugged(url: str) -> sa.Connection:
    """Keep this node from applying anything until the connection is closed."""
    connection = engine_of(url).connect()
    connection.exec_driver_sql("SET GLOBAL wsrep_slave_threads = 1")
    connection.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
    connection.exec_driver_sql("LOCK TABLES plug READ")
    return connection


def move_plug(url: str) -> None:
    """Commit, at another node, what the plugged one cannot apply."""
    with engine_of(url).begin() as connection:
        connection.execute(sa.update(PLUG).values(moves=PLUG.c.moves + 1))


def make_plug(url: str) -> None:
    """The table that stands in the way."""
    with engine_of(url).begin() as connection:
        PLUG.create(connection)
        connection.execute(sa.insert(PLUG).values(id=1, moves=0))


class Begun:
    """A transaction at one node that has done all but its commit."""

    def __init__(self, driver: MysqlDriver, connection: PooledConnection, result: Any) -> None:
        self._driver = driver
        self._connection = connection
        self.result = result

    async def commit(self) -> Any:
        """Commit it; its result."""
        try:
            await self._driver._commit(self._connection)
        finally:
            self._connection.terminate()
        return self.result


async def begun(database: Database, transaction: Txn[Any], *, certifies: bool = True) -> Begun:
    """Carry a transaction out, up to its commit. Without `certifies` as if the server were no node of a cluster."""
    driver = database.driver
    assert isinstance(driver, MysqlDriver)
    connection = await driver._connect()
    assert connection.certifies, "this is no node of a cluster"
    connection.certifies = certifies
    await connection.begin()
    value: Any = None
    while True:
        try:
            call = transaction.send(value)
        except StopIteration as stop:
            return Begun(driver, connection, stop.value)
        value = await driver._carry_out(connection, call)


@contextlib.asynccontextmanager
async def lag(plugged_url: str, other_url: str) -> AsyncIterator[None]:
    """Let the first node lag behind the second one; at the end it catches up."""
    plug = await asyncio.to_thread(plugged, plugged_url)
    try:
        await asyncio.to_thread(move_plug, other_url)
        yield
    finally:
        await asyncio.to_thread(plug.close)

"""PROTOCOL T1 on a cluster: a node may end a transaction for one of another node and not say so.

What its client goes on to do would be a transaction of its own, without the locks and writes that came before: it is
never committed.

MariaDB 10.11.18 does so when it is preparing a statement at that moment."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import sqlalchemy as sa
from tests.galera.lagging import engine_of
from tests.store.conftest import create_on_mariadb

from doonce.db.database import Database, open_database
from doonce.db.mysql_connection import PooledConnection
from doonce.db.mysql_fences import CERTIFIED_SLOTS
from doonce.db.schema import fence
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, certify, fetch, lock_number

END_BEHIND = Statement("test.end_behind", lambda _: sa.text("ROLLBACK"))
"""What the node does by itself; the session then is as it is after that."""
PREPARED = [
    Statement(f"test.prepared_{number}", lambda _, number=number: sa.text(f"SELECT {number}"))  # type: ignore[misc]
    for number in range(60)
]
TIMES = 60


@pytest.fixture
async def database(galera_nodes: list[str]) -> AsyncIterator[Database]:
    await asyncio.to_thread(create_on_mariadb, galera_nodes[0])
    opened = open_database(galera_nodes[0])
    yield opened
    await opened.close()


def moves(url: str) -> dict[int, int]:
    """How often each slot was written by transactions that were committed."""
    with engine_of(url).connect() as connection:
        return {row.slot: row.moves for row in connection.execute(sa.select(fence))}


def slot(name: str) -> int:
    return lock_number(name) % CERTIFIED_SLOTS


async def test_t1_what_follows_the_untold_end_of_a_transaction_is_run_again_as_a_whole(
    database: Database,
) -> None:
    runs: list[int] = []

    def two_writes() -> Txn[str]:
        runs.append(len(runs))
        yield from certify(["before"])
        if len(runs) == 1:
            yield from fetch(END_BEHIND)
        yield from certify(["after"])
        return "both"

    assert await database.transact(two_writes) == "both"
    assert runs == [0, 1]
    assert await asyncio.to_thread(moves, database.url) == {slot("before"): 1, slot("after"): 1}


async def test_t1_what_was_ended_last_of_all_is_not_taken_for_committed(database: Database) -> None:
    runs: list[int] = []

    def one_write() -> Txn[None]:
        runs.append(len(runs))
        yield from certify(["only"])
        if len(runs) == 1:
            yield from fetch(END_BEHIND)

    await database.transact(one_write)
    assert runs == [0, 1]
    assert await asyncio.to_thread(moves, database.url) == {slot("only"): 1}


def long_one(over: asyncio.Event) -> Txn[None]:
    """Prepares statements between two writes, for as long as the other node has not won."""
    yield from certify(["first"])
    for statement in PREPARED:
        if over.is_set():
            break
        yield from fetch(statement)
    yield from certify(["last"])


def short_one() -> Txn[None]:
    yield from certify(["first"])


async def test_t1_no_half_is_committed_when_another_node_wins_while_statements_are_prepared(
    database: Database, galera_nodes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = PooledConnection.begin

    async def begin_unprepared(connection: PooledConnection, *, readonly: bool = False) -> None:
        connection.forget()
        await begin(connection, readonly=readonly)

    monkeypatch.setattr(PooledConnection, "begin", begin_unprepared)
    other = open_database(galera_nodes[1])
    try:
        for _ in range(TIMES):
            over = asyncio.Event()
            writing = asyncio.create_task(database.transact(long_one, over))
            await other.transact(short_one)
            over.set()
            await writing
    finally:
        await other.close()
    assert await asyncio.to_thread(moves, database.url) == {slot("first"): 2 * TIMES, slot("last"): TIMES}

"""What a process asks of a server is bounded: how long a statement runs, and how many connections it has."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.store.db.notes import NoteDatabase, put, statement

from doonce.db.database import Database, RetrySettings, open_database
from doonce.db.faults import Contended
from doonce.db.mysql import MysqlSettings
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.statement import Dialect, DialectName
from doonce.db.transaction import Txn, fetch

LONG_SECONDS = 20


def _long(dialect: Dialect) -> sa.Select[tuple[object]]:
    if dialect.name is DialectName.POSTGRESQL:
        return sa.select(sa.literal_column(f"pg_sleep({LONG_SECONDS})"))
    # MySQL fails a statement that it has stopped, unless a sleep is all that it selects
    return sa.select(sa.literal(1)).where(sa.literal_column(f"sleep({LONG_SECONDS})") == 0)


LONG = statement("note.long", _long)


def too_long() -> Txn[None]:
    yield from put([("1", 1)])
    yield from fetch(LONG)


def opened(remote: NoteDatabase) -> Database:
    """With a statement time-out of a fifth of a second, and two connections."""
    return open_database(
        remote.url,
        settings=RetrySettings(contended_tries_max=1),
        postgresql=PostgresqlSettings(statement_timeout_ms=200, connections_max=2),
        mysql=MysqlSettings(statement_timeout_ms=200, connections_max=2),
    )


async def test_a_statement_that_runs_too_long_is_a_proven_rollback(remote: NoteDatabase) -> None:
    database = opened(remote)
    try:
        async with asyncio.timeout(LONG_SECONDS / 2):
            with pytest.raises(Contended):
                await database.transact(too_long)
        assert await remote.rows() == []
        await database.transact(put, [("1", 2)])  # the connection is as good as before
        assert await remote.rows() == [("1", 2)]
    finally:
        await database.close()


async def test_a_pool_on_the_mysql_wire_has_no_more_connections_than_it_may(mariadb: NoteDatabase) -> None:
    database = opened(mariadb)
    numbers: set[int] = set()

    def which() -> Txn[None]:
        (row,) = yield from fetch(statement("note.which", lambda dialect: sa.select(sa.func.connection_id())))
        numbers.add(int(row[0]))

    await asyncio.gather(*[database.transact(which) for _ in range(20)])
    await database.close()
    assert len(numbers) <= 2

"""T2: the isolation level is ours, whatever the server's, the database's or the role's default is."""

import asyncpg
import pytest
import sqlalchemy as sa

from doonce.db.database import open_database
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch

ISOLATION = Statement(
    "test.isolation",
    lambda dialect: sa.select(sa.func.current_setting(sa.literal_column("'transaction_isolation'"))),
)


def isolation() -> Txn[str]:
    """The level of the transaction that asks."""
    rows = yield from fetch(ISOLATION)
    return str(rows[0][0])


@pytest.mark.postgresql
@pytest.mark.parametrize("default", ["serializable", "repeatable read"])
async def test_t2_transactions_are_read_committed_whatever_the_databases_default_is(
    fresh_postgres: str, default: str
) -> None:
    connection = await asyncpg.connect(fresh_postgres)
    name = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{default}'")
    await connection.close()
    plain = await asyncpg.connect(fresh_postgres)
    assert await plain.fetchval("SELECT current_setting('transaction_isolation')") == default
    await plain.close()
    database = open_database(fresh_postgres)
    try:
        assert await database.transact(isolation) == "read committed"
        assert await database.read(isolation) == "read committed"
    finally:
        await database.close()

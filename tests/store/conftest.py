"""Databases for store tests: every test runs on each engine, in a database of its own."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Iterable
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa

from doonce.db.database import Database, open_database
from doonce.db.schema import clock, is_made_on, metadata
from doonce.db.statement import DialectName, sqlalchemy_dialect


def create_statements(dialect: DialectName) -> Iterable[str]:
    """The DDL of every table that the test imported, and the clock's row."""
    compiler = sqlalchemy_dialect(dialect)
    for table in metadata.sorted_tables:
        yield str(sa.schema.CreateTable(table).compile(dialect=compiler))
        for index in table.indexes:
            if not is_made_on(index, dialect.value):
                continue
            yield str(sa.schema.CreateIndex(index).compile(dialect=compiler))
    yield "INSERT INTO doonce_clock (id, now_us) VALUES (1, 0)"


def create_on_sqlite(url: str) -> None:
    """Make the tables in a new file."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for text in create_statements(DialectName.SQLITE):
            connection.exec_driver_sql(text)
    engine.dispose()


async def create_on_postgresql(url: str) -> None:
    """Make the tables in a new database."""
    connection: asyncpg.Connection[Any] = await asyncpg.connect(url)
    await connection.execute(";\n".join(create_statements(DialectName.POSTGRESQL)))
    await connection.close()


def create_on_mariadb(url: str) -> None:
    """Make the tables in a new database."""
    engine = sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"))
    with warnings.catch_warnings(), engine.begin() as connection:
        warnings.simplefilter("ignore")  # it keeps no names of primary keys, and says so
        metadata.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(clock).values(id=1, now_us=0))
    engine.dispose()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the tables of what the test imported."""
    if database_url.startswith("sqlite"):
        await asyncio.to_thread(create_on_sqlite, database_url)
    elif database_url.startswith("mysql"):
        await asyncio.to_thread(create_on_mariadb, database_url)
    else:
        await create_on_postgresql(database_url)
    opened = open_database(database_url)
    yield opened
    await opened.close()

"""Databases for store tests: every test runs on each engine, in a database of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa

from doonce.db.database import Database, open_database
from doonce.db.schema import metadata
from doonce.db.statement import DialectName, sqlalchemy_dialect


def create_statements(dialect: DialectName) -> Iterable[str]:
    """The DDL of every table that the test imported, and the clock's row."""
    compiler = sqlalchemy_dialect(dialect)
    for table in metadata.sorted_tables:
        yield str(sa.schema.CreateTable(table).compile(dialect=compiler))
        for index in table.indexes:
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


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A database with the tables of what the test imported."""
    if database_url.startswith("sqlite"):
        await asyncio.to_thread(create_on_sqlite, database_url)
    else:
        await create_on_postgresql(database_url)
    opened = open_database(database_url)
    yield opened
    await opened.close()

"""A table of notes, its statements, and a database that has nothing else."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import sqlalchemy as sa

from doonce.db.database import Database, open_database
from doonce.db.schema import clock as clock_table
from doonce.db.schema import fence as fence_table
from doonce.db.sqlite import SqliteDriver, SqliteSettings
from doonce.db.statement import Dialect, Statement
from doonce.db.transaction import Txn, clock, fetch, insert_many, lock_exclusive, lock_shared, notify

note = sa.Table(
    "note",
    sa.MetaData(),
    sa.Column("id", sa.Text(), primary_key=True),
    sa.Column("number", sa.BigInteger(), nullable=False),
)
OLDEST = 1_600_000_000_000_000


def _set(dialect: Dialect) -> sa.Update:
    rows = dialect.batch("rows", id=sa.Text(), number=sa.BigInteger())
    return sa.update(note).where(note.c.id == rows.c.id).values(number=rows.c.number)


def statement(name: str, build: Any) -> Statement:
    """A statement that is not in the registry: the registry is the product's."""
    made = Statement.__new__(Statement)
    made.name, made.build = name, build
    return made


READ = statement("note.read", lambda dialect: sa.select(note).order_by(note.c.id))
SET = statement("note.set", _set)
MISSING = statement("note.missing", lambda dialect: sa.select(sa.table("nowhere", sa.column("id"))))
ABORT = statement("note.abort", lambda dialect: sa.text("ROLLBACK"))


def write(rows: Sequence[tuple[str, int]]) -> Txn[int]:
    now_us = yield from clock()
    yield from insert_many(note, ("id", "number"), rows)
    return now_us


def put(rows: Sequence[tuple[str, int]]) -> Txn[str]:
    """The same, but it may be run again."""
    yield from insert_many(note, ("id", "number"), rows, skip_conflicts=True)
    yield from fetch(SET, rows=list(rows))
    return "written"


def read() -> Txn[list[tuple[str, int]]]:
    rows = yield from fetch(READ)
    return [(row["id"], row["number"]) for row in rows]


def now() -> Txn[int]:
    return (yield from clock())


def locked(name: str, exclusive: bool) -> Txn[str]:
    yield from lock_exclusive([name]) if exclusive else lock_shared([name])
    return "locked"


def tell(topic: str) -> Txn[None]:
    yield from notify([topic])


@dataclass(slots=True)
class HostClock:
    """A host's time of day that a test moves."""

    now_us: int = OLDEST

    def __call__(self) -> int:
        return self.now_us


@dataclass(slots=True)
class NoteDatabase:
    """A database with a table of notes."""

    database: Database
    url: str
    host: HostClock

    async def rows(self) -> list[tuple[str, int]]:
        return await self.database.read(read)

    async def connect(self) -> asyncpg.Connection:
        """A connection beside the database's own (PostgreSQL)."""
        return await asyncpg.connect(self.url)


@contextlib.asynccontextmanager
async def open_notes(url: str) -> AsyncIterator[NoteDatabase]:
    """The table of notes in a new database."""
    host = HostClock()
    if url.startswith("sqlite"):
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            note.create(connection)
            clock_table.create(connection)
            connection.execute(sa.insert(clock_table).values(id=1, now_us=0))
        engine.dispose()
        driver = SqliteDriver(Path(url.removeprefix("sqlite:///")), SqliteSettings(), host)
        database = Database(url, driver)
    elif url.startswith("mysql"):
        engine = sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"))
        with engine.begin() as connection:
            fence_table.create(connection)
            connection.exec_driver_sql(
                "CREATE TABLE note (id varbinary(255) PRIMARY KEY, number bigint NOT NULL)"
            )
        engine.dispose()
        database = open_database(url)
    else:
        connection = await asyncpg.connect(url)
        schema = url.partition("search_path=")[2].partition("&")[0]
        await connection.execute(
            f"CREATE SCHEMA {schema}; CREATE TABLE note (id text PRIMARY KEY, number bigint)"
        )
        await connection.close()
        database = open_database(url)
    try:
        yield NoteDatabase(database, url, host)
    finally:
        await database.close()

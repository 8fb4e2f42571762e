"""One small table, on each engine: what a driver promises does not depend on what is stored."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from tests.conftest import on_every_engine
from tests.store.db.notes import NoteDatabase, open_notes

from doonce.base.ids import new_token
from doonce.db.database import Database


@pytest.fixture(scope="session")
def db_postgres(postgres_url: str) -> Iterator[str]:
    """One PostgreSQL database for all tests of this process."""
    name = f"db_{new_token()}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name))
        )
        try:
            yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
async def postgresql(db_postgres: str) -> AsyncIterator[NoteDatabase]:
    """The table of notes on PostgreSQL."""
    async with open_notes(f"{db_postgres}?search_path=s{new_token()}") as notes:
        yield notes


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[NoteDatabase]:
    """The table of notes in a file."""
    async with open_notes(f"sqlite:///{tmp_path / 'notes.db'}") as notes:
        yield notes


@pytest.fixture
async def mariadb(fresh_mariadb: str) -> AsyncIterator[NoteDatabase]:
    """The table of notes on MariaDB."""
    async with open_notes(fresh_mariadb) as notes:
        yield notes


@pytest.fixture
async def plain(fresh_plain: str) -> AsyncIterator[NoteDatabase]:
    """The table of notes on MariaDB, in the plain form."""
    async with open_notes(fresh_plain) as notes:
        yield notes


@pytest.fixture
async def galera(fresh_galera: str) -> AsyncIterator[NoteDatabase]:
    """The table of notes on a node of a cluster."""
    async with open_notes(fresh_galera) as notes:
        yield notes


@pytest.fixture(params=on_every_engine())
def notes(request: pytest.FixtureRequest) -> NoteDatabase:
    """The table of notes on each engine."""
    made: NoteDatabase = request.getfixturevalue(request.param)
    return made


@pytest.fixture(params=[engine for engine in on_every_engine() if engine != "sqlite"])
def remote(request: pytest.FixtureRequest) -> NoteDatabase:
    """The table of notes on each engine that is reached over a connection."""
    made: NoteDatabase = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def database(notes: NoteDatabase) -> Database:
    """Only the database of it."""
    return notes.database

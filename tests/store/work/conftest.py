"""Databases for the kernel's tests: a schema each, which is much quicker to make than a database."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql
from tests.conftest import GALERA_NODES, PLAIN, on_every_engine
from tests.store.work.kernel import Kernel, Places

from doonce.base.ids import new_token


@pytest.fixture(scope="session")
def kernel_postgres(postgres_url: str) -> Iterator[str]:
    """One PostgreSQL database for all tests of this process."""
    name = f"kernel_{new_token()}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'").format(
                sql.Identifier(name)
            )
        )
        try:
            yield urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(params=on_every_engine())
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Where the tests' databases are made, on each engine."""
    if request.param == "sqlite":
        return Places(None, tmp_path)
    if request.param == PLAIN:
        request.getfixturevalue("plain_form")
    if request.param in ("mariadb", PLAIN):
        return Places(str(request.getfixturevalue("mariadb_url")), tmp_path)
    if request.param == "galera":
        return Places(GALERA_NODES[0], tmp_path)
    return Places(str(request.getfixturevalue("kernel_postgres")), tmp_path)


@pytest.fixture
def sqlite_places(tmp_path: Path) -> Places:
    """Where SQLite files are made, for what needs a clock that stands still."""
    return Places(None, tmp_path)


@pytest.fixture
def postgres_places(kernel_postgres: str, tmp_path: Path) -> Places:
    """Where PostgreSQL databases are made, for what only that engine can show."""
    return Places(kernel_postgres, tmp_path)


@pytest.fixture(
    params=[
        pytest.param("postgresql", marks=pytest.mark.postgresql),
        pytest.param("mariadb", marks=pytest.mark.mariadb),
        pytest.param(PLAIN, marks=pytest.mark.mariadb),
    ]
)
def server_places(request: pytest.FixtureRequest, tmp_path: Path) -> Places:
    """Where databases of servers are made, for what takes transactions that run side by side."""
    if request.param == PLAIN:
        request.getfixturevalue("plain_form")
    name = "kernel_postgres" if request.param == "postgresql" else "mariadb_url"
    return Places(str(request.getfixturevalue(name)), tmp_path)


@pytest.fixture
async def kernel(places: Places) -> AsyncIterator[Kernel]:
    """A fresh kernel on each engine, every family owned by `here` in epoch 1."""
    async with places.kernel() as kernel:
        yield kernel

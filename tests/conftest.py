"""What tests of every level share: databases of their own, and seeds of the kill tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import sqlalchemy as sa
from psycopg import sql

from doonce.base.ids import new_token
from doonce.db import tidb

POSTGRES_FIXTURES = {"postgres_url", "fresh_postgres", "module_postgres"}
PLAIN = "plain"
"""An engine: MariaDB, spoken to as if it had neither JSON_TABLE nor SKIP LOCKED. So TiDB is spoken to, which could
never be run here (`db/tidb.py`)."""
TOLD_PLAINLY = (
    "test_claim.py", "test_leases.py", "test_cancel.py", "test_lane_races.py", "test_journal.py",
    "test_link_store.py", "test_batches.py", "test_plain_claims.py",
)  # fmt: skip
"""The modules whose tests run on it as well: what is hot, and what rests on locks."""
NOT_PLAINLY = {"test_only_due_items_of_the_family_are_claimed_oldest_first"}
"""What is not promised there: claims are drawn from the oldest."""
RACES_OF_CLAIMS = "claim"
"""Of the races for lanes, which take long, only those of claims differ there."""
MARIADB_FIXTURES = {"mariadb_url", "fresh_mariadb", "module_mariadb"}
GALERA_FIXTURES = {"galera_nodes", "fresh_galera"}
GALERA_NODES = os.environ.get("DOONCE_TEST_GALERA", "").split()
"""The nodes of a cluster, by their URLs: a cluster is asked for, and only then part of the engines (`make galera`)."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kill-seeds", type=int, default=1, help="seeds of each test that kills a process (1)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kill_seed" in metafunc.fixturenames:
        metafunc.parametrize("kill_seed", range(metafunc.config.getoption("kill_seeds")))


def on_every_engine() -> list[Any]:
    """The engines as parameters; a cluster is one of them where there is one."""
    engines = ["sqlite", "postgresql", "mariadb", PLAIN, *(["galera"] if GALERA_NODES else [])]
    marks = {engine: getattr(pytest.mark, engine) for engine in engines if engine not in ("sqlite", PLAIN)}
    marks[PLAIN] = pytest.mark.mariadb
    return [pytest.param(engine, marks=marks[engine]) if engine in marks else engine for engine in engines]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what kills, and what needs a server: by its fixtures, or by a parameter that says so in its id.

    What needs a cluster is left out, and counted as left out, where none was asked for.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if "kill_seed" in fixtures:
            item.add_marker("kill")
        if POSTGRES_FIXTURES & fixtures or "postgresql" in item.name.lower():
            item.add_marker("postgresql")
        if MARIADB_FIXTURES & fixtures or "mariadb" in item.name.lower():
            item.add_marker("mariadb")
        if GALERA_FIXTURES & fixtures:
            item.add_marker("galera")
    items[:] = [item for item in items if not on_plain(item) or is_told_plainly(item)]
    if not GALERA_NODES:
        left_out = [item for item in items if GALERA_FIXTURES & set(getattr(item, "fixturenames", ()))]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def is_told_plainly(item: pytest.Item) -> bool:
    """Whether a test of the plain form is one of those that run on it."""
    name, _, which = item.name.partition("[")
    races = item.path.name == "test_lane_races.py" and RACES_OF_CLAIMS not in which
    return item.path.name in TOLD_PLAINLY and name not in NOT_PLAINLY and not races


def on_plain(item: pytest.Item) -> bool:
    """Whether a test runs on MariaDB in the plain form."""
    called = getattr(item, "callspec", None)
    return called is not None and PLAIN in called.params.values()


@pytest.fixture(scope="session")
def postgres_url() -> str:
    """The server for tests, by the URL of a database in which others can be created. Never skips."""
    url = os.environ.get("DOONCE_TEST_POSTGRES", "")
    if not url:
        pytest.fail("DOONCE_TEST_POSTGRES names no server; `make test` starts one", pytrace=False)
    return url


@pytest.fixture(scope="session")
def made_databases(postgres_url: str) -> Iterator[list[str]]:
    """Names of databases to drop at the end: each drop is a checkpoint of the whole server, so not after each test."""
    names: list[str] = []
    yield names
    with psycopg.connect(postgres_url, autocommit=True) as server:
        for name in names:
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def fresh_postgres(postgres_url: str, made_databases: list[str]) -> str:
    """The URL of a new, empty PostgreSQL database."""
    return _made(postgres_url, made_databases)


@pytest.fixture(scope="module")
def module_postgres(postgres_url: str, made_databases: list[str]) -> str:
    """The URL of a new, empty PostgreSQL database for the tests of one module."""
    return _made(postgres_url, made_databases)


def _made(postgres_url: str, made_databases: list[str]) -> str:
    database = f"test_{new_token()}"
    with psycopg.connect(postgres_url, autocommit=True) as server:
        text = "CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
        server.execute(sql.SQL(text).format(sql.Identifier(database)))
    made_databases.append(database)
    return urlunsplit(urlsplit(postgres_url)._replace(path=f"/{database}"))


@pytest.fixture(scope="session")
def mariadb_url() -> str:
    """The server for tests, by the URL of a user who may create databases. Never skips."""
    url = os.environ.get("DOONCE_TEST_MARIADB", "")
    if not url:
        pytest.fail("DOONCE_TEST_MARIADB names no server; `make test` starts one", pytrace=False)
    return url


@pytest.fixture
def fresh_mariadb(mariadb_url: str) -> Iterator[str]:
    """The URL of a new, empty MariaDB database."""
    with made_on_mysql([mariadb_url]) as urls:
        yield urls[0]


@pytest.fixture(scope="module")
def module_mariadb(mariadb_url: str) -> Iterator[str]:
    """The URL of a new, empty MariaDB database for the tests of one module."""
    with made_on_mysql([mariadb_url]) as urls:
        yield urls[0]


@pytest.fixture
def plain_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection of this process speaks the plain form to its server."""
    monkeypatch.setattr(tidb, "speaks_plainly", lambda _: True)


@pytest.fixture
def fresh_plain(fresh_mariadb: str, plain_form: None) -> str:
    """The URL of a new, empty MariaDB database, to be spoken to in the plain form."""
    return fresh_mariadb


@pytest.fixture
def galera_nodes() -> Iterator[list[str]]:
    """The URLs of a new, empty database of a Galera cluster, one for each node."""
    with made_on_mysql(GALERA_NODES) as urls:
        yield urls


@pytest.fixture
def fresh_galera(galera_nodes: list[str]) -> str:
    """The URL of a new, empty database at one node of a Galera cluster."""
    return galera_nodes[0]


@contextmanager
def made_on_mysql(servers: list[str]) -> Iterator[list[str]]:
    """A new, empty database, by each of these ways to its server or cluster."""
    first = sa.make_url(servers[0])
    engine = sa.create_engine(first.set(drivername="mysql+pymysql"), poolclass=sa.pool.NullPool)
    name = f"test_{new_token()}"
    with engine.connect() as connection:
        connection.execute(sa.schema.CreateSchema(name))
    yield [sa.make_url(url).set(database=name).render_as_string(hide_password=False) for url in servers]
    with engine.connect() as connection:
        connection.execute(sa.schema.DropSchema(name))


@pytest.fixture
def sqlite_path(tmp_path: Path) -> Path:
    """Where a new SQLite database may be made; no such file yet."""
    return tmp_path / "test.db"


@pytest.fixture(params=on_every_engine())
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of a new, empty database: the test runs once on each engine."""
    if request.param == "postgresql":
        return str(request.getfixturevalue("fresh_postgres"))
    if request.param in ("mariadb", "galera", PLAIN):
        return str(request.getfixturevalue(f"fresh_{request.param}"))
    return f"sqlite:///{request.getfixturevalue('sqlite_path')}"

"""An application under test: its own database, its own library, one table of its own."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import django
import psycopg
import pymysql
import pytest
from django.conf import settings
from psycopg import sql
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool

from doonce.runtime import schema

if not settings.configured:
    # Asyncio tests call Django from their own thread; the relay under test has a thread without a loop.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    settings.configure(DATABASES={}, USE_TZ=True)
    pymysql.install_as_MySQLdb()
    django.setup()

from django.db import connections, transaction

PLAIN = {"ssl_disabled": True}
"""For PyMySQL, which otherwise reads this host's certificates for each connection; tests make thousands."""

THINGS = "CREATE TABLE things (id INTEGER PRIMARY KEY, title VARCHAR(50) NOT NULL)"
DBAPI = {"sqlite": "sqlite3", "postgresql": "psycopg", "mariadb": "pymysql"}
"""The driver that is tried by itself on an engine."""


@dataclass(frozen=True)
class Application:
    """One way to reach one database."""

    engine: str
    library: str
    transaction: Callable[[], AbstractContextManager[Any]]
    """Yields a connection in an open transaction; commits on leaving, rolls back on an exception."""

    without_transaction: Callable[[], AbstractContextManager[Any]]
    """Yields a connection that commits each statement by itself, or has begun nothing."""

    execute: Callable[..., Sequence[Any]]
    """Runs a statement of the application's own, with `?` for its values."""

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.transaction() as connection:
            return self.read(connection, sql, *values)

    def read(self, connection: Any, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Identities are bytes on MariaDB; a test compares them as texts, and the payload as bytes."""
        rows = [tuple(row) for row in self.execute(connection, sql, *values)]
        if self.engine == "mariadb":
            return [tuple(map(_readable, row)) for row in rows]
        return rows

    def count(self, table: str) -> int:
        return int(self.rows(f"SELECT count(*) FROM {table}")[0][0])


def _readable(value: Any) -> Any:
    if not isinstance(value, bytes) or value.startswith((b"{", b'"')):
        return value
    return value.decode()


def prepare(app: Application) -> None:
    """Create our tables and the application's."""
    with app.transaction() as connection:
        schema.create(connection)
        app.execute(connection, THINGS)


@contextmanager
def database(engine: str, folder: Path) -> Iterator[str]:
    """Yield the address of a new, empty database; it is gone afterwards."""
    if engine == "sqlite":
        yield str(folder / "application.db")
        return
    if engine == "mariadb":
        with _mariadb() as address:
            yield address
        return
    server = os.environ.get("DOONCE_TEST_POSTGRES")
    if not server:
        pytest.fail("DOONCE_TEST_POSTGRES must name a PostgreSQL server: a missing database is a failure")
    name = "doonce_runtime_" + uuid4().hex
    with psycopg.connect(server, autocommit=True) as admin:
        # A schema of one's own costs a tenth of a database, and shows that nothing relies on "public".
        admin.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        try:
            yield psycopg.conninfo.make_conninfo(server, options="-csearch_path=" + name)
        finally:
            admin.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


@contextmanager
def _mariadb() -> Iterator[str]:
    server = os.environ.get("DOONCE_TEST_MARIADB")
    if not server:
        pytest.fail("DOONCE_TEST_MARIADB must name a MariaDB server: a missing database is a failure")
    name = "doonce_runtime_" + uuid4().hex
    address = make_url(server).set(drivername="mysql+pymysql", database=name)
    with (
        closing(pymysql.connect(**mariadb_options(address, database=None))) as admin,
        admin.cursor() as cursor,
    ):
        # Neither the character set nor the collation of the database is relied on.
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET latin1 COLLATE latin1_swedish_ci")
        try:
            yield address.render_as_string(hide_password=False)
        finally:
            cursor.execute(f"DROP DATABASE {name}")


def mariadb_options(address: str | URL, **changed: Any) -> dict[str, Any]:
    """What PyMySQL takes for a URL."""
    url = make_url(address)
    parts = {"host": url.host, "port": url.port, "user": url.username, "password": url.password}
    named = {"database": url.database, "unix_socket": url.query.get("unix_socket"), **PLAIN, **changed}
    return {name: value for name, value in {**parts, **named}.items() if value is not None}


def applications(engine: str) -> list[str]:
    """The libraries that are tried on an engine."""
    return ["sqlalchemy", "session", "django", DBAPI[engine]]


@contextmanager
def application(engine: str, library: str, address: str) -> Iterator[Application]:
    """`address`: a file name for SQLite, a libpq URL for PostgreSQL, SQLAlchemy's URL for MariaDB."""
    makers = {
        "sqlalchemy": _sqlalchemy,
        "session": _session,
        "sqlite3": _sqlite3,
        "psycopg": _psycopg,
        "pymysql": _pymysql,
        "django": _django,
    }
    with makers[library](engine, address) as made:
        yield made


def sqlalchemy_engine(engine: str, address: str, **options: Any) -> Engine:
    if engine == "mariadb":
        return create_engine(address, poolclass=NullPool, connect_args=PLAIN, **options)
    if engine == "postgresql":
        connect = {"creator": lambda: psycopg.connect(address)}
        return create_engine("postgresql+psycopg://", poolclass=NullPool, **connect, **options)
    made = create_engine("sqlite:///" + address, poolclass=NullPool, connect_args={"timeout": 30}, **options)

    @event.listens_for(made, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode=WAL").close()

    return made


def asyncio_engine(engine: str, address: str) -> AsyncEngine:
    if engine == "mariadb":
        return create_async_engine(make_url(address).set(drivername="mysql+asyncmy"), poolclass=NullPool)
    parts = psycopg.conninfo.conninfo_to_dict(address)
    url = URL.create(
        "postgresql+asyncpg",
        username=str(parts.get("user")),
        password=parts.get("password"),  # type: ignore[arg-type]  # libpq's values are texts here
        host=str(parts.get("host")),
        port=int(str(parts.get("port", 5432))),
        database=str(parts.get("dbname")),
    )
    schema_name = str(parts["options"]).partition("search_path=")[2]
    options = {"server_settings": {"search_path": schema_name}}
    return create_async_engine(url, poolclass=NullPool, connect_args=options)


@contextmanager
def _sqlalchemy(engine: str, address: str) -> Iterator[Application]:
    made = sqlalchemy_engine(engine, address)

    def execute(connection: Any, sql: str, *values: Any) -> Sequence[Any]:
        placed = sql.replace("?", "%s") if engine != "sqlite" else sql
        result = connection.exec_driver_sql(placed, values)
        return result.all() if result.returns_rows else []

    yield Application(engine, "sqlalchemy", made.begin, made.connect, execute)
    made.dispose()


@contextmanager
def _session(engine: str, address: str) -> Iterator[Application]:
    made = sqlalchemy_engine(engine, address)

    @contextmanager
    def begun() -> Iterator[Session]:
        with Session(made) as session, session.begin():
            yield session

    def execute(session: Session, sql: str, *values: Any) -> Sequence[Any]:
        placed = sql.replace("?", "%s") if engine != "sqlite" else sql
        result = session.connection().exec_driver_sql(placed, values)
        return result.all() if result.returns_rows else []

    yield Application(engine, "session", begun, lambda: Session(made), execute)
    made.dispose()


def _execute_dbapi(connection: Any, sql: str, *values: Any) -> Sequence[Any]:
    placed = sql if isinstance(connection, sqlite3.Connection) else sql.replace("?", "%s")
    with closing(connection.cursor()) as cursor:
        cursor.execute(placed, values)
        return cursor.fetchall() if cursor.description else []


@contextmanager
def _sqlite3(_engine: str, address: str) -> Iterator[Application]:
    @contextmanager
    def begun() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(address, timeout=30)) as connection:
            # A row factory of the application's must not change what ours reads.
            connection.row_factory = sqlite3.Row
            with connection:
                yield connection

    @contextmanager
    def bare() -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(address, timeout=30, isolation_level=None)) as connection:
            yield connection

    yield Application("sqlite", "sqlite3", begun, bare, _execute_dbapi)


@contextmanager
def _psycopg(_engine: str, address: str) -> Iterator[Application]:
    @contextmanager
    def begun() -> Iterator[Any]:
        with psycopg.connect(address, row_factory=psycopg.rows.dict_row) as connection:
            yield connection

    @contextmanager
    def bare() -> Iterator[Any]:
        with psycopg.connect(address, autocommit=True) as connection:
            yield connection

    def execute(connection: Any, sql: str, *values: Any) -> Sequence[Any]:
        cursor = psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row)
        cursor.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    yield Application("postgresql", "psycopg", begun, bare, execute)


@contextmanager
def _pymysql(_engine: str, address: str) -> Iterator[Application]:
    @contextmanager
    def begun() -> Iterator[Any]:
        # A class of cursors of the application's must not change what ours reads.
        options = mariadb_options(address, cursorclass=pymysql.cursors.DictCursor)
        with closing(pymysql.connect(**options)) as connection:
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    @contextmanager
    def bare() -> Iterator[Any]:
        with closing(pymysql.connect(**mariadb_options(address), autocommit=True)) as connection:
            yield connection

    def execute(connection: Any, sql: str, *values: Any) -> Sequence[Any]:
        with closing(connection.cursor(pymysql.cursors.Cursor)) as cursor:
            cursor.execute(sql.replace("?", "%s"), values)
            return list(cursor.fetchall()) if cursor.description else []

    yield Application("mariadb", "pymysql", begun, bare, execute)


@contextmanager
def _django(engine: str, address: str) -> Iterator[Application]:
    if engine == "sqlite":
        database: dict[str, Any] = {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": address,
            "OPTIONS": {"timeout": 30, "transaction_mode": "IMMEDIATE"},
        }
    elif engine == "mariadb":
        url = make_url(address)
        database = {
            "ENGINE": "django.db.backends.mysql",
            "NAME": url.database,
            "USER": url.username or "",
            "PASSWORD": url.password or "",
            "HOST": url.query.get("unix_socket") or url.host or "",
            "PORT": str(url.port or ""),
            "OPTIONS": PLAIN,
        }
    else:
        parts = psycopg.conninfo.conninfo_to_dict(address)
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts.get("user", ""),
            "PASSWORD": parts.get("password", ""),
            "HOST": parts.get("host", ""),
            "PORT": str(parts.get("port", "")),
            "OPTIONS": {"options": parts["options"]},
        }
    configured = connections.configure_settings({"default": {}, "app": database})
    connections.databases.update(configured)

    @contextmanager
    def begun() -> Iterator[Any]:
        try:
            with transaction.atomic("app"):
                yield connections["app"]
        finally:
            connections["app"].close()

    @contextmanager
    def bare() -> Iterator[Any]:
        try:
            yield connections["app"]
        finally:
            connections["app"].close()

    def execute(connection: Any, sql: str, *values: Any) -> Sequence[Any]:
        with connection.cursor() as cursor:
            cursor.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

    yield Application(engine, "django", begun, bare, execute)
    del connections["app"]
    del connections.databases["app"]

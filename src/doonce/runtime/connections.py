"""The application's open transaction, whatever library opened it.

`runner(connection)` finds out what was handed in and proves that a transaction is open; what it returns runs
our steps inside that transaction and can do nothing else: it has no way to begin, commit or roll back.

| handed in | a transaction is open when |
|---|---|
| SQLAlchemy `Connection`, `Session` | `in_transaction()`, and the driver does not commit each statement |
| Django's `connection` | inside `transaction.atomic()` |
| `sqlite3.Connection` | not in autocommit mode, or after an explicit `BEGIN` |
| `psycopg` (and `psycopg2`) connection | not in autocommit mode, or inside `connection.transaction()` |
| `pymysql` connection | not in autocommit mode, or after an explicit `BEGIN` |
| `MySQLdb` connection | not in autocommit mode: it does not tell more |

On the MySQL wire every answer says whether a transaction is open and whether statements commit by themselves; the
drivers keep that, so nothing is asked. A deadlock there rolls the whole transaction back and leaves the connection
usable, and a definition commits: `held` finds out after the application had the connection in its hands.
"""

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol, cast

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session, scoped_session

from doonce.base.errors import Conflict, Invalid
from doonce.runtime.statements import (
    WHICH_ENGINE,
    Engine,
    Placeholder,
    Rows,
    Step,
    T,
    Transaction,
    core,
    received,
    text,
)

IDLE = 0
"""libpq's transaction status outside of any transaction, as both psycopgs report it."""

BEGUN = 1
"""The bit of the MySQL wire's server status that says: a transaction is open."""


class Runner(Protocol):
    """Runs one step of ours in the application's transaction."""

    @property
    def engine(self) -> Engine:
        """Whose SQL the steps are."""
        ...

    def run(self, step: Step) -> Rows:
        """Return the step's rows; the driver's errors pass through unchanged."""
        ...


def execute(connection: Any, transaction: Transaction[T]) -> T:
    """Run `transaction` inside the open transaction of `connection` and return its result.

    Raises `Conflict` when no transaction is open and `Invalid` for a connection of an unknown kind; in both
    cases nothing was sent. An error of the driver closes the generator and passes through: whether to roll
    back is the application's decision, as for its own statements.
    """
    try:
        return advance(runner(connection), transaction)
    finally:
        transaction.close()


def advance(active: Runner, transaction: Transaction[T]) -> T:
    """Run the steps of `transaction` with a runner that was proven before."""
    rows: Rows = ()
    try:
        step = next(transaction)
        while True:
            asked = step.statement is WHICH_ENGINE
            rows = ({"engine": active.engine},) if asked else active.run(step)
            step = transaction.send(rows)
    except StopIteration as ended:
        return cast("T", ended.value)


async def execute_async(connection: Any, transaction: Transaction[T]) -> T:
    """`execute` for SQLAlchemy's asyncio connections and sessions."""
    if not isinstance(connection, AsyncConnection | AsyncSession):
        transaction.close()
        raise _unknown(connection)
    result: T = await connection.run_sync(execute, transaction)
    return result


def runner(connection: Any) -> Runner:
    """Return what runs steps in the open transaction of `connection`; see the table of this module."""
    if isinstance(connection, scoped_session):
        connection = connection()
    if isinstance(connection, Session):
        if not connection.in_transaction():
            raise _no_transaction("the session has none", "use `with Session.begin() as session:`")
        connection = connection.connection()
    if isinstance(connection, Connection):
        return _sqlalchemy(connection)
    if isinstance(connection, AsyncConnection | AsyncSession):
        raise Invalid(
            "this is an asyncio connection",
            hint="call the variant of this function whose name ends in _async",
        )
    if isinstance(connection, sqlite3.Connection):
        return _sqlite3(connection)
    if all(hasattr(connection, name) for name in ("in_atomic_block", "vendor", "cursor")):
        return _django(connection)
    if _is_psycopg(connection):
        return _psycopg(connection)
    if _modules(connection) & {"pymysql", "MySQLdb"} and hasattr(connection, "get_autocommit"):
        return _mysql(connection)
    raise _unknown(connection)


def held(connection: Any) -> Runner:
    """`runner`, for a connection in whose open transaction steps of ours have run before.

    Raises `Conflict` also where the driver tells that nothing is open any more: the application committed, or the
    server rolled back or committed by itself. A transaction that was begun since looks the same; whoever must know
    reads again what it wrote.
    """
    active = runner(connection)
    if _begun(connection) is False:
        raise Conflict(
            "the transaction in which this began is over",
            hint="neither commit, roll back nor define tables here, and let a deadlock's error (1213) leave",
        )
    return active


def require_unbegun(connection: Any) -> None:
    """Raise `Conflict` where a definition would commit what the application has done in this transaction."""
    if _begun(connection):
        raise Conflict(
            "on this engine a definition commits the transaction, and this one has begun already",
            hint="create the tables in a transaction of their own",
        )


def _begun(connection: Any) -> bool | None:
    """Whether the server has a transaction open, by its last word; None where that is not known."""
    if isinstance(connection, scoped_session):
        connection = connection()
    if isinstance(connection, Session):
        connection = connection.connection()
    if isinstance(connection, Connection):
        connection = connection.connection.driver_connection
    elif hasattr(connection, "in_atomic_block"):
        connection = connection.connection
    status = getattr(connection, "server_status", None)
    return bool(status & BEGUN) if isinstance(status, int) else None


# --------------------------------------------------------------------------------------- one for each library


class _SqlalchemyRunner:
    def __init__(self, connection: Connection, engine: Engine) -> None:
        self._connection = connection
        self.engine = engine

    def run(self, step: Step) -> Rows:
        values = dict(step.values)
        if self.engine == "mysql" and values:
            values = text(step.statement, self.engine, "format").named(values)
        result = self._connection.execute(core(step.statement, self.engine), values)
        if not result.returns_rows:
            return ()
        names = list(result.keys())
        return [received(names, row) for row in result]


def _sqlalchemy(connection: Connection) -> Runner:
    if not connection.in_transaction():
        raise _no_transaction("the connection has none", "use `with engine.begin() as connection:`")
    driver: Any = connection.connection.dbapi_connection
    if isinstance(driver, sqlite3.Connection):
        _require_sqlite3(driver)
    elif connection.dialect.detect_autocommit_setting(driver):
        raise _no_transaction("its isolation level is AUTOCOMMIT", "use another isolation level")
    return _SqlalchemyRunner(connection, _engine(connection.dialect.name))


class _CursorRunner:
    """For drivers that take texts: a cursor of our own each time, so that no setting of the application's
    cursors (row factories, statement caches) changes what comes back."""

    def __init__(self, cursor: Callable[[], Any], engine: Engine, placeholder: Placeholder) -> None:
        self._cursor = cursor
        self.engine = engine
        self._placeholder: Placeholder = placeholder

    def run(self, step: Step) -> Rows:
        statement = text(step.statement, self.engine, self._placeholder)
        with closing(self._cursor()) as cursor:
            cursor.execute(statement.sql, statement.values(step.values))
            if cursor.description is None:
                return ()
            names = [column[0] for column in cursor.description]
            return [received(names, row) for row in cursor.fetchall()]


def _sqlite3(connection: sqlite3.Connection) -> Runner:
    _require_sqlite3(connection)
    if connection.text_factory is not str:
        raise Invalid(
            "this sqlite3 connection does not return texts as str", hint="leave text_factory as it is"
        )

    def cursor() -> sqlite3.Cursor:
        made = connection.cursor()
        made.row_factory = None
        return made

    return _CursorRunner(cursor, "sqlite", "qmark")


def _require_sqlite3(connection: sqlite3.Connection) -> None:
    autocommits = connection.isolation_level is None or getattr(connection, "autocommit", None) is True
    if autocommits and not connection.in_transaction:
        raise _no_transaction("the sqlite3 connection is in autocommit mode", "execute BEGIN IMMEDIATE first")


def _modules(connection: Any) -> set[str]:
    return {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}


def _is_psycopg(connection: Any) -> bool:
    return bool(_modules(connection) & {"psycopg", "psycopg2"}) and hasattr(connection, "info")


def _mysql(connection: Any) -> Runner:
    if connection.get_autocommit() and not _begun(connection):
        raise _no_transaction(
            "the connection is in autocommit mode", "use autocommit=False, or connection.begin() of pymysql"
        )
    # A plain cursor, whatever class the application's are of. Not imported: as psycopg.
    name = "pymysql.cursors" if "pymysql" in _modules(connection) else "MySQLdb.cursors"
    plain = sys.modules[name].Cursor
    return _CursorRunner(lambda: connection.cursor(plain), "mysql", "format")


def _psycopg(connection: Any) -> Runner:
    if connection.autocommit and int(connection.info.transaction_status) == IDLE:
        raise _no_transaction(
            "the psycopg connection is in autocommit mode", "use `with connection.transaction():`"
        )
    if type(connection).__module__.startswith("psycopg2"):
        return _CursorRunner(connection.cursor, "postgresql", "format")
    # Not imported: psycopg is the application's choice, and was imported by whoever made the connection.
    psycopg: Any = sys.modules["psycopg"]
    if isinstance(connection, psycopg.AsyncConnection):
        raise Invalid("an asyncio connection of psycopg is not supported", hint="hand in SQLAlchemy's")
    return _CursorRunner(
        lambda: psycopg.Cursor(connection, row_factory=psycopg.rows.tuple_row), "postgresql", "format"
    )


def _django(connection: Any) -> Runner:
    if not connection.in_atomic_block:
        raise _no_transaction("Django is not in an atomic block", "use `with transaction.atomic():`")
    return _CursorRunner(connection.cursor, _engine(connection.vendor), "format")


def _engine(name: str) -> Engine:
    if name == "sqlite":
        return "sqlite"
    if name == "postgresql":
        return "postgresql"
    if name in {"mysql", "mariadb"}:
        return "mysql"
    raise Invalid("this database engine is not supported", hint="SQLite, PostgreSQL, MariaDB and MySQL are")


def _no_transaction(why: str, hint: str) -> Conflict:
    return Conflict(f"no transaction of the application is open: {why}", hint=hint)


def _unknown(connection: object) -> Invalid:
    kind = type(connection)
    return Invalid(
        f"a connection of type {kind.__module__}.{kind.__qualname__} is not supported",
        hint="hand in a connection of SQLAlchemy, Django, sqlite3, psycopg or pymysql",
    )

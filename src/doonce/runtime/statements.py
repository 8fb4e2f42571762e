"""Every statement of the application's side, written once in SQLAlchemy Core.

A transaction is a generator that yields steps (DESIGN rule 2); `connections` runs it inside whatever the
application hands in: SQLAlchemy executes a statement as it is, for DB-API and Django it is compiled to the
dialect's text and placeholders. Nothing here begins, commits or rolls back.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, Literal, TypeVar, cast

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    Executable,
    String,
    Table,
    bindparam,
    literal,
    literal_column,
    select,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import BindParameter, ClauseElement
from sqlalchemy.sql.functions import FunctionElement

from doonce.base.errors import Internal

Engine = Literal["sqlite", "postgresql", "mysql"]
"""`mysql` is the wire of MariaDB and MySQL alike."""


Placeholder = Literal["qmark", "format"]
Row = Mapping[str, Any]
Rows = Sequence[Row]
T = TypeVar("T")

_DIALECTS: Final[dict[Engine, Callable[..., Dialect]]] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
    "mysql": mysql.dialect,
}
RAW: Final = frozenset({"payload"})
"""The one column whose value is bytes to us; whatever else a driver calls bytes is text."""


class _NowUs(FunctionElement[int]):
    type = BigInteger()
    inherit_cache = True


@compiles(_NowUs, "postgresql")
def _now_us_postgresql(_element: _NowUs, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


@compiles(_NowUs, "sqlite")
def _now_us_sqlite(_element: _NowUs, _compiler: SQLCompiler, **_options: Any) -> str:
    return "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"


@compiles(_NowUs, "mysql")
@compiles(_NowUs, "mariadb")
def _now_us_mysql(_element: _NowUs, _compiler: SQLCompiler, **_options: Any) -> str:
    # From the universal time: a session's own zone may have an hour twice. It stands still for a whole statement.
    return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"


def now_us() -> ColumnElement[int]:
    """The database's own time in microseconds UTC, read when the statement runs and not when the transaction
    began (DESIGN rule 4.1). SQLite's has a millisecond's resolution; nothing here is ordered by time."""
    return _NowUs()


def now_us_once() -> ColumnElement[int]:
    """The same, read once for a whole statement: a condition on an index needs a value that stands still."""
    return select(_NowUs()).scalar_subquery()


def insert_or_keep(engine: Engine, table: Table, **values: Any) -> Executable:
    """An insert that leaves a row of the same key as it is; which one won is read under a lock (PROTOCOL T7)."""
    match engine:
        case "mysql":
            # Not INSERT IGNORE, which also swallows and cuts what the server refuses.
            kept = next(iter(table.primary_key.columns))
            return mysql.insert(table).values(**values).on_duplicate_key_update({kept.name: kept})
        case "postgresql":
            return postgresql.insert(table).values(**values).on_conflict_do_nothing()
        case "sqlite":
            return sqlite.insert(table).values(**values).on_conflict_do_nothing()


def insert_or_change(
    engine: Engine, table: Table, change: Mapping[str, ColumnElement[Any]], **values: Any
) -> Executable:
    """An insert that makes `change` to the row of the same primary key, and holds it until the commit."""
    key = list(table.primary_key.columns)
    match engine:
        case "mysql":
            return mysql.insert(table).values(**values).on_duplicate_key_update(dict(change))
        case "postgresql":
            row = postgresql.insert(table).values(**values)
            return row.on_conflict_do_update(index_elements=key, set_=dict(change))
        case "sqlite":
            same = sqlite.insert(table).values(**values)
            return same.on_conflict_do_update(index_elements=key, set_=dict(change))


def constant(value: Enum) -> ColumnElement[str]:
    """A state in the statement's own text: a partial index serves only a condition that spells it out."""
    word = str(value.value)
    if not word.isalpha():
        raise Internal("a state is a plain word")
    return literal_column("'" + word + "'", String())


def one_of(column: ColumnElement[str], values: Iterable[Enum]) -> ColumnElement[bool]:
    """Whether `column` holds one of these states, spelled out as well."""
    return column.in_([constant(value) for value in values])


def given(name: str) -> BindParameter[Any]:
    """A value that the step carries."""
    return bindparam(name)


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """One statement; `build` makes it for an engine, the same each time."""

    name: str
    build: Callable[[Engine], Executable]


def statement(build: Callable[[Engine], Executable]) -> Statement:
    """Make a statement of the function that builds it, under that function's name."""
    return Statement(build.__name__, build)


@dataclass(frozen=True, slots=True)
class Text:
    """A statement as a driver takes it: text, and the values in the order of its placeholders."""

    sql: str
    order: tuple[str, ...]
    fixed: Mapping[str, Any]
    exact: frozenset[str] = frozenset()
    """Names of the texts that the engine compares as bytes, and must get as bytes."""

    def values(self, given_values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the ordered values; one that was not given is a fault of ours and raises `KeyError`."""
        named = {**self.fixed, **self.named(given_values)}
        return tuple(named[name] for name in self.order)

    def named(self, given_values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given values by name, as the engine must get them."""
        return {
            name: value.encode() if name in self.exact and isinstance(value, str) else value
            for name, value in given_values.items()
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One statement with its values, yielded by a transaction; the rows come back (none for a write)."""

    statement: Statement
    values: Mapping[str, Any]


Transaction = Generator[Step, Rows, T]


WHICH_ENGINE: Final = Statement("which_engine", lambda _engine: select(literal(1)))
"""Never sent: whoever runs the steps knows its engine, and answers by itself."""


def engine_name() -> Transaction[Engine]:
    """Say on which engine the transaction runs, for one whose steps differ."""
    ((row),) = yield Step(WHICH_ENGINE, {})
    return cast("Engine", row["engine"])


def fetch(statement: Statement, **values: Any) -> Transaction[Rows]:
    """Run one statement within a transaction and return its rows."""
    return (yield Step(statement, values))


def fetch_one(statement: Statement, **values: Any) -> Transaction[Row | None]:
    """Run a statement that finds at most one row, by a unique key."""
    rows = yield Step(statement, values)
    if len(rows) > 1:
        raise Internal(f"{statement.name} found more than one row")
    return rows[0] if rows else None


@cache
def core(statement: Statement, engine: Engine) -> Executable:
    """Return the statement for SQLAlchemy, which keeps its own compiled form."""
    return statement.build(engine)


@cache
def text(statement: Statement, engine: Engine, placeholder: Placeholder) -> Text:
    """Return the statement's text for a driver that takes `placeholder`."""
    dialect = _DIALECTS[engine](paramstyle=placeholder)
    element = cast("ClauseElement", core(statement, engine))
    compiled = element.compile(dialect=dialect)
    if not isinstance(compiled, SQLCompiler):
        return Text(str(compiled), (), {})
    fixed = {name: bind.effective_value for bind, name in compiled.bind_names.items() if not bind.required}
    exact = frozenset(
        name
        for bind, name in compiled.bind_names.items()
        if engine == "mysql" and isinstance(bind.type.dialect_impl(dialect), mysql.VARBINARY)
    )
    return Text(str(compiled), tuple(compiled.positiontup or ()), fixed, exact)


def received(names: Iterable[str], values: Iterable[Any]) -> Row:
    """Return one row by its columns' names: what is compared as bytes comes back as the text that it was."""
    return {
        name: value.decode() if isinstance(value, bytes) and name not in RAW else value
        for name, value in zip(names, values, strict=True)
    }

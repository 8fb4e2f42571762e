"""Statements, written once in SQLAlchemy Core and compiled per dialect into text and an order of parameters.

Executing through SQLAlchemy costs three to six times a raw driver's call, so only its compiler is used here. A
statement is a function of a `Dialect`, which offers `batch`: rows from the caller as a table to join with, whatever
the engine calls that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Final, cast

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import asyncpg as postgresql_asyncpg
from sqlalchemy.sql import visitors
from sqlalchemy.sql.expression import FromClause

from doonce.db.arrays import integer_array, text_array
from doonce.db.mysql_sql import MysqlText, PlainText, batch_source, joined
from doonce.db.transaction import Params


class DialectName(str, Enum):
    """The SQL dialects that have landed."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"


class Batch:
    """Rows handed in by the caller, to be joined with: `.source` is the FROM element, `.c` its columns."""

    def __init__(self, source: FromClause) -> None:
        self.source = source
        self.c = source.c


class Dialect:
    """What a statement may ask of the engine it is compiled for.

    `plain`: a server on the MySQL wire without JSON_TABLE and SKIP LOCKED (`db/mysql_plain.py`).
    """

    def __init__(self, name: DialectName, *, plain: bool = False) -> None:
        self.name = name
        self.plain = plain
        self.batches: dict[str, dict[str, sa.types.TypeEngine[Any]]] = {}

    def batch(self, name: str, **columns: sa.types.TypeEngine[Any]) -> Batch:
        """Declare a batch parameter: a list of tuples in the order of `columns` (no bytes: use `insert_many`)."""
        self.batches[name] = columns
        if self.name is DialectName.POSTGRESQL:
            arrays = [array_parameter(f"{name}__{column}", kind) for column, kind in columns.items()]
            declared = [sa.column(column, kind) for column, kind in columns.items()]
            return Batch(sa.func.unnest(*arrays).table_valued(*declared).render_derived(name=name))
        if self.name is DialectName.MYSQL:
            return Batch(batch_source(name, columns, plain=self.plain))
        source = (
            sa.func.json_each(sa.bindparam(name, type_=sa.Text())).table_valued("value").alias(f"{name}_json")
        )
        values = [
            sa.func.json_extract(source.c.value, sa.literal_column(f"'$[{position}]'"), type_=kind).label(
                column
            )
            for position, (column, kind) in enumerate(columns.items())
        ]
        return Batch(sa.select(*values).subquery(name))

    def apart(self, rows: sa.Select[Any]) -> sa.Select[Any]:
        """Rows that a subquery gives, of a batch and what is looked up for each of its rows.

        In the plain form it is kept apart from the statement around it, by a limit that is never reached: MariaDB, on
        which that form is tested, loses sight of the batch when it runs the merged statement for the second time.
        """
        return rows.limit(sa.literal_column(str(ROWS_MAX))) if self.plain else rows

    def free(self, rows: sa.Select[Any]) -> sa.Select[Any]:
        """Rows to choose from: those that nobody else has locked, locked; where none can be skipped, without a lock.

        What is decided by them needs a lock of its own anyway: two may have chosen the same row.
        """
        return rows if self.plain else rows.with_for_update(skip_locked=True)

    def some_free(
        self, rows: sa.Select[Any], count: sa.BindParameter[int], *, by: Sequence[str]
    ) -> sa.Select[Any]:
        """The first so many of ordered rows to choose from, as `free` has it. `by`: the columns that order them.

        Where none can be skipped, they are drawn from a larger number of the first ones: else whoever asks at the same
        time would choose the same ones, wait for the first of them, and be left with nothing.
        """
        if not self.plain:
            return rows.limit(count).with_for_update(skip_locked=True)
        near = rows.limit(sa.literal_column(str(DRAWN_FROM))).subquery("near")
        drawn = sa.select(near).order_by(sa.func.rand()).limit(count).subquery("drawn")
        return sa.select(drawn).order_by(*[drawn.c[name] for name in by])

    def greatest(self, *values: Any) -> sa.ColumnElement[Any]:
        """The largest of scalar values."""
        return sa.func.max(*values) if self.name is DialectName.SQLITE else sa.func.greatest(*values)


ROWS_MAX: Final = 65_535
"""More than one statement can be given."""
DRAWN_FROM: Final = 256
"""Rows that a claim looks at to draw its own from, where it cannot skip those of others."""
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

Build = Callable[[Dialect], sa.sql.ClauseElement]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A positional parameter that is one named value."""

    name: str

    def value(self, params: Params) -> Any:
        """The driver's argument."""
        return params[self.name]


@dataclass(frozen=True, slots=True)
class Constant:
    """A positional parameter that the statement itself fixes."""

    constant: Any

    def value(self, params: Params) -> Any:
        """The driver's argument."""
        return self.constant


@dataclass(frozen=True, slots=True)
class Rows:
    """A positional parameter that is a whole batch, as JSON text. `integers`: the positions of its integer columns."""

    name: str
    integers: tuple[int, ...]
    width: int

    def value(self, params: Params) -> Any:
        """The driver's argument. Raises `OverflowError` for an integer that SQLite would turn into a float."""
        return msgspec.json.encode(self.rows(params)).decode()

    def rows(self, params: Params) -> Sequence[Sequence[Any]]:
        """The rows themselves. Raises `OverflowError` as `value` does."""
        rows: Sequence[Sequence[Any]] = params[self.name]
        for position in self.integers:
            for row in rows:
                number = row[position]
                if number is not None and not INTEGER_MIN <= number <= INTEGER_MAX:
                    raise OverflowError(f"an integer of batch {self.name} is out of range")
        return rows


@dataclass(frozen=True, slots=True)
class Column:
    """A positional parameter that is one column of a batch, as an array literal."""

    name: str
    position: int
    encode: Callable[[Sequence[Any]], Any]

    def value(self, params: Params) -> Any:
        """The driver's argument."""
        return self.encode([row[self.position] for row in params[self.name]])


Slot = Scalar | Constant | Rows | Column


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL text of one dialect and the source of each of its positional parameters.

    `writes`: the table that it changes, if it changes one and answers no rows. `touches`: every table it names.
    `plain`: it reads, and locks nothing. `texts`: the columns of its rows that hold text.
    """

    text: str
    slots: tuple[Slot, ...]
    writes: str | None = None
    touches: frozenset[str] = frozenset()
    plain: bool = False
    texts: frozenset[str] = frozenset()

    def arguments(self, params: Params) -> list[Any]:
        """The positional arguments for a driver."""
        return [slot.value(params) for slot in self.slots]


class Statement:
    """One named statement on every dialect. Register it at import; it is compiled once, when first asked for."""

    registry: ClassVar[dict[str, Statement]] = {}

    def __init__(self, name: str, build: Build) -> None:
        if name in self.registry:
            raise ValueError(f"two statements are named {name}")
        self.name = name
        self.build = build
        self.registry[name] = self

    @cached_property
    def sqlite(self) -> Compiled:
        """The SQLite form."""
        return _compile(self.build, DialectName.SQLITE)

    @cached_property
    def postgresql(self) -> Compiled:
        """The PostgreSQL form."""
        return _compile(self.build, DialectName.POSTGRESQL)

    @cached_property
    def mysql(self) -> Compiled:
        """The form of the MySQL wire."""
        return _compile(self.build, DialectName.MYSQL)

    @cached_property
    def mysql_plain(self) -> Compiled:
        """The plain form of the MySQL wire; `db/mysql_plain.py` writes its batches out."""
        return _compile(self.build, DialectName.MYSQL, plain=True)

    @cached_property
    def postgresql_then_clock(self) -> Compiled:
        """The PostgreSQL form of a locking select, with the time in each row's last column.

        A row leaves the inner select only when its lock is had, and its time is read then: the last row's time comes
        after all the locks (PROTOCOL T3).
        """
        return _compile(lambda dialect: _then_clock(self.build(dialect)), DialectName.POSTGRESQL)

    def on(self, dialect: DialectName) -> Compiled:
        """The form for one dialect."""
        match dialect:
            case DialectName.SQLITE:
                return self.sqlite
            case DialectName.POSTGRESQL:
                return self.postgresql
            case DialectName.MYSQL:
                return self.mysql


def _then_clock(statement: sa.sql.ClauseElement) -> sa.Select[Any]:
    if not isinstance(statement, sa.Select):
        raise TypeError("only a select can lock and then tell the time")
    now_us = sa.literal_column("(date_part('epoch', clock_timestamp()) * 1000000)::bigint", sa.BigInteger())
    return sa.select(statement.subquery("locked"), now_us.label("now_us"))


def array_parameter(name: str, kind: sa.types.TypeEngine[Any]) -> sa.ColumnElement[Any]:
    """A parameter that takes one column of many rows on PostgreSQL, in the form that `array_encoder` gives it."""
    plain = sa.Text() if isinstance(kind, sa.String) else kind
    array = postgresql.ARRAY(plain)
    if isinstance(plain, sa.LargeBinary):
        return sa.bindparam(name, type_=array)
    return sa.cast(sa.bindparam(name, type_=sa.Text()), array)


def array_encoder(kind: sa.types.TypeEngine[Any]) -> Callable[[Sequence[Any]], Any]:
    """How the values of such a column are handed to the driver."""
    if isinstance(kind, sa.LargeBinary):
        return list
    return integer_array if isinstance(kind, sa.Integer) else text_array


def sqlalchemy_dialect(name: DialectName, *, plain: bool = False) -> sa.Dialect:
    """SQLAlchemy's compiler for a dialect, with the parameter style of the raw driver."""
    if name is DialectName.SQLITE:
        return sqlite.dialect(paramstyle="qmark")
    if name is DialectName.MYSQL:
        return PlainText() if plain else MysqlText()
    return cast("sa.Dialect", postgresql_asyncpg.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy's own gap


def _compile(build: Build, name: DialectName, *, plain: bool = False) -> Compiled:
    dialect = Dialect(name, plain=plain)
    statement = build(dialect)
    if name is DialectName.MYSQL:
        statement = joined(statement)
    for element in visitors.iterate(statement):
        if isinstance(element, sa.BindParameter):
            element.required = (
                False  # its value comes with each call; spelling out an IN list would ask for it now
            )
    compiled = statement.compile(
        dialect=sqlalchemy_dialect(name, plain=plain), compile_kwargs={"render_postcompile": True}
    )
    constants = {key: value for key, value in compiled.params.items() if value is not None}
    slots = [_slot(key, dialect.batches, constants) for key in _positions(compiled)]
    touches = frozenset(part.name for part in visitors.iterate(statement) if isinstance(part, sa.Table))
    text = " ".join(compiled.string.split())
    reads = text.startswith("SELECT") and " FOR UPDATE" not in text and " FOR SHARE" not in text
    return Compiled(text, tuple(slots), _written(statement), touches, reads, _texts(statement))


def _texts(statement: sa.sql.ClauseElement) -> frozenset[str]:
    """The columns of its rows that hold text, whatever a server says of what it made up itself."""
    if not isinstance(statement, sa.Select):
        return frozenset()
    return frozenset(
        column.name for column in statement.exported_columns if isinstance(column.type, sa.String)
    )


def _written(statement: sa.sql.ClauseElement) -> str | None:
    """The table that a statement without rows changes."""
    if isinstance(statement, sa.Update | sa.Delete | sa.Insert) and not statement.exported_columns:
        return cast("sa.Table", statement.table).name
    return None


def _positions(compiled: Any) -> Sequence[str]:
    return compiled.positiontup or ()


def _slot(
    key: str, batches: dict[str, dict[str, sa.types.TypeEngine[Any]]], constants: dict[str, Any]
) -> Slot:
    if key in batches:
        kinds = batches[key].values()
        integers = tuple(at for at, kind in enumerate(kinds) if isinstance(kind, sa.Integer))
        return Rows(key, integers, len(kinds))
    name, _, column = key.partition("__")
    if name in batches and column in batches[name]:
        return Column(name, list(batches[name]).index(column), array_encoder(batches[name][column]))
    return Constant(constants[key]) if key in constants else Scalar(key)

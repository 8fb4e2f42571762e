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
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import asyncpg as postgresql_asyncpg
from sqlalchemy.sql.expression import FromClause

from doonce.db.transaction import Params


class DialectName(str, Enum):
    """The SQL dialects that have landed."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"


class Batch:
    """Rows handed in by the caller, to be joined with: `.source` is the FROM element, `.c` its columns."""

    def __init__(self, source: FromClause) -> None:
        self.source = source
        self.c = source.c


class Dialect:
    """What a statement may ask of the engine it is compiled for."""

    def __init__(self, name: DialectName) -> None:
        self.name = name
        self.batches: dict[str, tuple[str, ...]] = {}

    def batch(self, name: str, **columns: sa.types.TypeEngine[Any]) -> Batch:
        """Declare a batch parameter: a list of tuples in the order of `columns` (no bytes: use `insert_many`)."""
        self.batches[name] = tuple(columns)
        if self.name is DialectName.POSTGRESQL:
            arrays = [
                sa.bindparam(f"{name}__{column}", type_=postgresql.ARRAY(kind))
                for column, kind in columns.items()
            ]
            declared = [sa.column(column, kind) for column, kind in columns.items()]
            return Batch(sa.func.unnest(*arrays).table_valued(*declared).render_derived(name=name))
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

    def greatest(self, *values: Any) -> sa.ColumnElement[Any]:
        """The largest of scalar values."""
        return sa.func.greatest(*values) if self.name is DialectName.POSTGRESQL else sa.func.max(*values)


Build = Callable[[Dialect], sa.sql.ClauseElement]


@dataclass(frozen=True, slots=True)
class Slot:
    """Where one positional parameter comes from: a scalar, a whole batch, or one column of a batch."""

    name: str
    column: int | None = None
    batch: bool = False
    constant: Any = None
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Compiled:
    """SQL text of one dialect and the source of each of its positional parameters."""

    text: str
    slots: tuple[Slot, ...]

    def arguments(self, params: Params) -> list[Any]:
        """The positional arguments for a driver."""
        columns: dict[str, list[tuple[Any, ...]]] = {}
        arguments: list[Any] = []
        for slot in self.slots:
            if slot.is_constant:
                arguments.append(slot.constant)
            elif slot.batch and slot.column is None:
                arguments.append(msgspec.json.encode(params[slot.name]).decode())
            elif slot.column is not None:
                if slot.name not in columns:
                    columns[slot.name] = list(zip(*params[slot.name], strict=True))
                listed = columns[slot.name]
                arguments.append(listed[slot.column] if listed else ())
            else:
                arguments.append(params[slot.name])
        return arguments


class Statement:
    """One named statement on every dialect. Register it at import; it is compiled once, when first asked for."""

    registry: dict[str, Statement] = {}

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

    def on(self, dialect: DialectName) -> Compiled:
        """The form for one dialect."""
        return self.sqlite if dialect is DialectName.SQLITE else self.postgresql


def sqlalchemy_dialect(name: DialectName) -> sa.Dialect:
    """SQLAlchemy's compiler for a dialect, with the parameter style of the raw driver."""
    if name is DialectName.SQLITE:
        return sqlite.dialect(paramstyle="qmark")
    return postgresql_asyncpg.dialect()


def _compile(build: Build, name: DialectName) -> Compiled:
    dialect = Dialect(name)
    compiled = build(dialect).compile(dialect=sqlalchemy_dialect(name))
    constants = {key: value for key, value in compiled.params.items() if value is not None}
    slots = [_slot(key, dialect.batches, constants) for key in _positions(compiled)]
    return Compiled(" ".join(compiled.string.split()), tuple(slots))


def _positions(compiled: Any) -> Sequence[str]:
    return compiled.positiontup or ()


def _slot(key: str, batches: dict[str, tuple[str, ...]], constants: dict[str, Any]) -> Slot:
    if key in batches:
        return Slot(key, batch=True)
    name, _, column = key.partition("__")
    if name in batches and column in batches[name]:
        return Slot(name, column=batches[name].index(column), batch=True)
    if key in constants:
        return Slot(key, constant=constants[key], is_constant=True)
    return Slot(key)

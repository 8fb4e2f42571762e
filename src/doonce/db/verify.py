"""Whether a database has the schema that this release needs. Names every difference, repairs none (rule 12).

It is compared exactly, but for two things: until a half after is applied, what it names (`db/steps.py`); and on a
schema that a later release has extended, columns that nobody has to fill, defaults, and keys that refuse nothing of
ours.

Compared are the version, tables, columns (type and collation, nullability, defaults and what else fills a column by
itself), primary keys, unique keys, indexes and foreign keys. Tables that are not doonce's are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import sqlalchemy as sa

from doonce.base.errors import Unavailable
from doonce.db import maintenance, migrate, steps, verify_mysql
from doonce.db.migrate import Finding, Standing
from doonce.db.schema import clock, is_made_on, metadata

SHOWN_MAX = 5
"""Differences that an error's message names; `verify` returns all."""
NOT_NULL: Final = "NOT NULL"
DEFAULT: Final = "a default"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as this release needs it."""

    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what} should be {self.expected}, but is {self.found}"


@dataclass(frozen=True, slots=True)
class Verification:
    """Every difference, and what to do about them."""

    differences: tuple[Difference, ...]
    mend: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key or index: its columns in order, and what else makes it what it is."""

    columns: tuple[str, ...]
    unique: bool
    where: str = ""


@dataclass(slots=True)
class Shape:
    """What is compared of one table."""

    columns: dict[str, str] = field(default_factory=dict)
    primary_key: tuple[str, ...] = ()
    keys: dict[Key, str] = field(default_factory=dict)
    foreign_keys: set[tuple[Any, ...]] = field(default_factory=set)
    engine: str = ""


async def verify(url: str) -> Verification:
    """Compare the database at `url` with the owners' tables that are imported; changes nothing.

    Raises `Unavailable` when it cannot be read.
    """
    return await maintenance.run(url, compare, write=False)


async def require(url: str) -> None:
    """Raise `Unavailable`, which names the first differences and what to do, unless there are none."""
    found = await verify(url)
    if found.differences:
        shown = "; ".join(str(difference) for difference in found.differences[:SHOWN_MAX])
        more = len(found.differences) - SHOWN_MAX
        tail = f"; and {more} more" if more > 0 else ""
        raise Unavailable(f"the database is not what this release needs: {shown}{tail}", hint=found.mend)


def compare(connection: sa.Connection) -> Verification:
    """Every difference between the database behind this connection and the metadata."""
    standing = migrate.standing(connection)
    differences: list[Difference] = []
    inspector = sa.inspect(connection)
    present = set(inspector.get_table_names())
    for table in metadata.sorted_tables:
        if table.name not in present:
            differences.append(Difference(f"table {table.name}", "there", "missing"))
            continue
        expected, found = expected_shape(table, connection.dialect), found_shape(table.name, connection)
        if standing.finding is Finding.EXTENDED:
            found = without_additions(expected, found)
        differences += _compare_table(table.name, expected, found)
    if clock.name in present:
        rows = connection.execute(sa.select(sa.func.count()).select_from(clock)).scalar_one()
        if rows != 1:
            differences.append(Difference(f"table {clock.name}", "one row", f"{rows} rows"))
    passed_over = steps.passed_over(standing.revision) if standing.finding is Finding.CURRENT else ()
    named = [difference for difference in differences if difference.what not in passed_over]
    named[:0] = _version(standing)
    return Verification(tuple(named), _mend(standing) if named else "")


def _version(standing: Standing) -> Iterator[Difference]:
    if standing.finding not in (Finding.CURRENT, Finding.EXTENDED):
        found = standing.revision or f"none ({standing.finding.value})"
        yield Difference("the schema's version", steps.needed(), found)


def _mend(standing: Standing) -> str:
    if standing.finding in (Finding.EMPTY, Finding.OLDER):
        return "run `doonce migrate` with this URL"
    if standing.finding is Finding.NEWER:
        return "install the release that migrated this database, or a later one"
    if standing.finding is Finding.FOREIGN:
        return "give doonce a database or schema of its own, then run `doonce migrate` with its URL"
    return "something else changed the schema: undo that, or restore a backup; nothing repairs it by itself"


def expected_shape(table: sa.Table, dialect: sa.Dialect) -> Shape:
    """What the owner's table says."""
    shape = Shape(primary_key=tuple(column.name for column in table.primary_key))
    for column in table.columns:
        default = "" if column.server_default is None else DEFAULT
        shape.columns[column.name] = _column(
            column.type, dialect, nullable=bool(column.nullable), default=default
        )
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            columns = tuple(column.name for column in constraint.columns)
            shape.keys[Key(columns, unique=True)] = str(constraint.name)
        elif isinstance(constraint, sa.ForeignKeyConstraint):
            target = constraint.referred_table.name
            referred = tuple(element.column.name for element in constraint.elements)
            shape.foreign_keys.add((tuple(constraint.column_keys), target, referred))
    if dialect.name == "mysql":
        shape.engine = verify_mysql.ENGINE
    for index in table.indexes:
        if not is_made_on(index, dialect.name):
            continue
        where = index.dialect_options[dialect.name].get("where") if dialect.name != "mysql" else None
        columns = tuple(column.name for column in index.columns)
        shape.keys[Key(columns, bool(index.unique), _condition(where))] = str(index.name)
    return shape


def found_shape(name: str, connection: sa.Connection) -> Shape:
    """What the database has."""
    inspector, dialect = sa.inspect(connection), connection.dialect
    shape = Shape(primary_key=tuple(inspector.get_pk_constraint(name)["constrained_columns"]))
    if dialect.name == "mysql":
        shape.engine = verify_mysql.engine(connection, name)
        shape.columns = verify_mysql.columns(connection, name)
    else:
        shape.columns = _found_columns(name, inspector)
    for unique in inspector.get_unique_constraints(name):
        shape.keys[Key(tuple(unique["column_names"]), unique=True)] = str(unique["name"])
    for index in inspector.get_indexes(name):
        options = index.get("dialect_options", {})
        if index.get("duplicates_constraint") and not options.get("mysql_length"):
            continue
        columns = tuple(column or "(expression)" for column in index["column_names"])
        where = options.get("mysql_length") or options.get(f"{dialect.name}_where")
        shape.keys[Key(columns, bool(index["unique"]), _condition(where))] = str(index["name"])
    for key in inspector.get_foreign_keys(name):
        shape.foreign_keys.add(
            (tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
        )
    return shape


def without_additions(expected: Shape, found: Shape) -> Shape:
    """What the database has, without what a later release's half before may add beside us."""
    free = {name for name, words in found.columns.items() if name not in expected.columns and _is_free(words)}
    columns = {name: words for name, words in found.columns.items() if name not in free}
    columns |= {
        name: wanted
        for name, wanted in expected.columns.items()
        if found.columns.get(name) == f"{wanted} {DEFAULT}"
    }
    nullable = {name for name in free if NOT_NULL not in found.columns[name]}
    keys = {
        key: name
        for key, name in found.keys.items()
        if key in expected.keys or (key.unique and nullable.isdisjoint(key.columns))
    }
    return replace(found, columns=columns, keys=keys)


def _is_free(words: str) -> bool:
    """Whether a row may be added without a value for this column."""
    return NOT_NULL not in words or words.endswith(DEFAULT)


def _found_columns(name: str, inspector: sa.Inspector) -> dict[str, str]:
    columns: dict[str, str] = {}
    for column in inspector.get_columns(name):
        default = "" if column.get("default") is None and not column.get("identity") else DEFAULT
        columns[column["name"]] = _column(
            column["type"], inspector.dialect, nullable=column["nullable"], default=default
        )
    return columns


def _column(kind: sa.types.TypeEngine[Any], dialect: sa.Dialect, *, nullable: bool, default: str) -> str:
    words = [kind.compile(dialect=dialect), "" if nullable else NOT_NULL, default]
    return " ".join(word for word in words if word)


def _condition(where: Any) -> str:
    return "" if where is None else " ".join(str(where).strip("()").split())


def _compare_table(name: str, expected: Shape, found: Shape) -> Iterator[Difference]:
    for column in sorted(expected.columns | found.columns):
        wanted, there = expected.columns.get(column), found.columns.get(column)
        if wanted != there:
            yield Difference(f"column {name}.{column}", wanted or "absent", there or "missing")
    if expected.engine != found.engine:
        yield Difference(f"the storage engine of {name}", expected.engine, found.engine)
    if expected.primary_key != found.primary_key:
        yield Difference(
            f"the primary key of {name}", _listed(expected.primary_key), _listed(found.primary_key)
        )
    for key in sorted(expected.keys.keys() - found.keys.keys(), key=str):
        yield Difference(f"{_kind(key)} {expected.keys[key]} on {name}", _described(key), "missing")
    for key in sorted(found.keys.keys() - expected.keys.keys(), key=str):
        yield Difference(f"{_kind(key)} {found.keys[key]} on {name}", "absent", _described(key))
    for foreign in sorted(expected.foreign_keys ^ found.foreign_keys, key=str):
        columns, target, referred = foreign
        described = f"{_listed(columns)} to {target} {_listed(referred)}"
        ours = foreign in expected.foreign_keys
        yield Difference(
            f"a foreign key of {name}", described if ours else "absent", "missing" if ours else described
        )


def _kind(key: Key) -> str:
    return "unique key" if key.unique else "index"


def _described(key: Key) -> str:
    return _listed(key.columns) + (f" where {key.where}" if key.where else "")


def _listed(columns: tuple[str, ...]) -> str:
    return f"({', '.join(columns)})"

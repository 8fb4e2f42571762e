"""Putting the application's three tables into its database, by itself or through its own migrations.

An application with migrations of its own adds `metadata` to what Alembic compares, or takes the text of
`ddl("postgresql")`. `create` is for the others, and for tests. `verify` says what is missing.

On the MySQL wire each definition commits by itself, and MySQL has no `IF NOT EXISTS` for an index.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    Executable,
    Index,
    Table,
    TableClause,
    column,
    func,
    literal_column,
    select,
    table,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from doonce.base.errors import Invalid
from doonce.runtime.connections import execute, require_unbegun
from doonce.runtime.statements import (
    Engine,
    Statement,
    Transaction,
    engine_name,
    fetch,
    fetch_one,
    given,
    statement,
    text,
)
from doonce.runtime.tables import metadata

__all__ = ["create", "ddl", "metadata", "verification", "verify"]


def _definitions() -> Iterator[Statement]:
    """Each table and then its indexes, each only if it is not there."""
    for made in metadata.sorted_tables:
        yield _table_definition(made)
        for index in _indexes(made):
            yield _index_definition(index)


def _indexes(made: Table) -> list[Index]:
    return sorted(made.indexes, key=lambda one: str(one.name))


@cache
def _table_definition(made: Table) -> Statement:
    return Statement("create_" + made.name, lambda _engine: CreateTable(made, if_not_exists=True))


@cache
def _index_definition(index: Index) -> Statement:
    def build(engine: Engine) -> Executable:
        return CreateIndex(index, if_not_exists=engine != "mysql")

    return Statement("create_" + str(index.name), build)


_DEFINITIONS: Final = tuple(_definitions())


def create(connection: Any) -> None:
    """Create what is missing, inside the open transaction of `connection`; run it as often as you like.

    On the MySQL wire that commits the transaction: raises `Conflict` where something was done in it before.
    """
    require_unbegun(connection)
    execute(connection, _create())


def ddl(engine: Engine) -> str:
    """Return the definitions as one SQL script for a migration."""
    return "".join(text(one, engine, "qmark").sql.strip() + ";\n\n" for one in _DEFINITIONS)


def verify(connection: Any) -> None:
    """Return when every table has its columns, and transactions; otherwise raise `Invalid`, which names what not."""
    execute(connection, verification())


def verification() -> Transaction[None]:
    """`verify` as a transaction."""
    engine = yield from engine_name()
    for made in metadata.sorted_tables:
        rows = yield from fetch(column_names, table=made.name)
        missing = sorted({one.name for one in made.columns} - {row["name"] for row in rows})
        if missing:
            raise Invalid(
                f"the table {made.name} lacks {', '.join(missing)}",
                hint="run the application's migrations, or doonce.runtime.schema.create(connection)",
            )
        if engine == "mysql":
            kept = yield from fetch_one(storage_engine, table=made.name)
            if kept is None or str(kept["name"]).lower() != "innodb":
                raise Invalid(
                    f"the table {made.name} is not one of InnoDB",
                    hint="other storage engines have no transactions",
                )


def _create() -> Transaction[None]:
    engine = yield from engine_name()
    for made in metadata.sorted_tables:
        yield from fetch(_table_definition(made))
        there: set[str] = set()
        if engine == "mysql":
            there = {row["name"] for row in (yield from fetch(index_names, table=made.name))}
        for index in _indexes(made):
            if index.name not in there:
                yield from fetch(_index_definition(index))


def _information(name: str, *columns: str) -> TableClause:
    return table(name, *map(column, ("table_schema", "table_name", *columns)), schema="information_schema")


@statement
def index_names(_engine: Engine) -> Executable:
    """The names of one table's indexes, on the MySQL wire."""
    kept = _information("statistics", "index_name").c
    here = kept.table_schema == func.database(), kept.table_name == given("table")
    return select(kept.index_name.label("name")).distinct().where(*here)


@statement
def storage_engine(_engine: Engine) -> Executable:
    """Who keeps a table, on the MySQL wire."""
    kept = _information("tables", "engine").c
    here = kept.table_schema == func.database(), kept.table_name == given("table")
    return select(kept.engine.label("name")).where(*here)


@statement
def column_names(engine: Engine) -> Executable:
    """The columns of one table, found where the connection itself would find it."""
    if engine == "sqlite":
        return select(func.pragma_table_info(given("table")).table_valued("name").c.name)
    columns = _information("columns", "column_name").c
    if engine == "mysql":
        visible = columns.table_schema == func.database()
    else:
        visible = columns.table_schema == func.any(func.current_schemas(literal_column("false")))
    return select(columns.column_name.label("name")).where(columns.table_name == given("table"), visible)

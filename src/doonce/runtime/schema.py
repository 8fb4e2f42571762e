"""Putting the application's three tables into its database, by itself or through its own migrations.

An application with migrations of its own adds `metadata` to what Alembic compares, or takes the text of
`ddl("postgresql")`. `create` is for the others, and for tests. `verify` says what is missing.
"""

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Executable, column, func, literal_column, select, table
from sqlalchemy.schema import CreateIndex, CreateTable

from doonce.base.errors import Invalid
from doonce.runtime.connections import execute
from doonce.runtime.statements import Engine, Statement, Transaction, fetch, given, statement, text
from doonce.runtime.tables import metadata

__all__ = ["create", "ddl", "metadata", "verification", "verify"]


def _definitions() -> Iterator[Statement]:
    """Tables first, then their indexes, each only if it is not there."""
    for made in metadata.sorted_tables:
        create_table = CreateTable(made, if_not_exists=True)
        yield Statement("create_" + made.name, lambda _engine, ddl=create_table: ddl)  # type: ignore[misc]
        for index in sorted(made.indexes, key=lambda one: str(one.name)):
            create_index = CreateIndex(index, if_not_exists=True)
            yield Statement("create_" + str(index.name), lambda _engine, ddl=create_index: ddl)  # type: ignore[misc]


_DEFINITIONS: Final = tuple(_definitions())


def create(connection: Any) -> None:
    """Create what is missing, inside the open transaction of `connection`; run it as often as you like."""
    execute(connection, _create())


def ddl(engine: Engine) -> str:
    """Return the definitions as one SQL script for a migration."""
    return "".join(text(one, engine, "qmark").sql.strip() + ";\n\n" for one in _DEFINITIONS)


def verify(connection: Any) -> None:
    """Return when every table has its columns; otherwise raise `Invalid`, which names the missing ones."""
    execute(connection, verification())


def verification() -> Transaction[None]:
    """`verify` as a transaction."""
    for made in metadata.sorted_tables:
        rows = yield from fetch(column_names, table=made.name)
        missing = sorted({one.name for one in made.columns} - {row["name"] for row in rows})
        if missing:
            raise Invalid(
                f"the table {made.name} lacks {', '.join(missing)}",
                hint="run the application's migrations, or doonce.runtime.schema.create(connection)",
            )


def _create() -> Transaction[None]:
    for one in _DEFINITIONS:
        yield from fetch(one)


@statement
def column_names(engine: Engine) -> Executable:
    """The columns of one table, found where the connection itself would find it."""
    if engine == "sqlite":
        return select(func.pragma_table_info(given("table")).table_valued("name").c.name)
    columns = table(
        "columns",
        column("column_name"),
        column("table_name"),
        column("table_schema"),
        schema="information_schema",
    )
    visible = columns.c.table_schema == func.any(func.current_schemas(literal_column("false")))
    return select(columns.c.column_name.label("name")).where(columns.c.table_name == given("table"), visible)

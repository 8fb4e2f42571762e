"""INSERT on the MySQL wire: plain rows, rows whose key may be there already, and hints."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql as mysql_dialect

from doonce.db.mysql_sql import MysqlText, PlainText, batch_source
from doonce.db.schema import HINTS
from doonce.db.statement import Compiled, Rows
from doonce.db.transaction import InsertMany


def insert_text(table: sa.Table, columns: tuple[str, ...], skip_conflicts: bool) -> str:
    """INSERT … VALUES of one row, which the driver repeats for the others. Not for hints that may be there.

    A key that is there is left as it is by an assignment of a column to itself: `INSERT IGNORE` would also swallow
    and truncate what the server refuses (PROTOCOL T7).
    """
    plain = mysql_dialect.insert(table).values({name: sa.bindparam(name) for name in columns})
    statement = insert_statement(plain, InsertMany(table, columns, (), skip_conflicts))
    compiled: Any = statement.compile(
        dialect=mysql_dialect.dialect(paramstyle="format"), column_keys=list(columns)
    )
    if tuple(compiled.positiontup) != columns:
        raise TypeError(f"give the columns of {table.name} in table order: {compiled.positiontup}")
    return str(compiled.string)


def are_hints(call: InsertMany) -> bool:
    """Whether the rows are hints that may be there already: these are inserted in a way of their own."""
    return call.skip_conflicts and bool(call.table.info.get(HINTS))


def hint_insert(table: sa.Table, columns: tuple[str, ...], *, plain: bool) -> Compiled:
    """One statement for any number of hints: those that are not to be seen yet are inserted.

    Whoever looks at a hint has it locked, and may be waiting for a lane that this transaction holds: to wait for him
    would be a deadlock. The look here locks nothing, as READ COMMITTED has it for an INSERT … SELECT.
    """
    kinds = {name: table.c[name].type for name in columns}
    rows = batch_source("batch", kinds, plain=plain)
    there = table.alias("there")
    same = sa.and_(*[there.c[key.name] == rows.c[key.name] for key in table.primary_key])
    (first, *_) = table.primary_key.columns
    absent = (
        sa.select(*[rows.c[name] for name in columns])
        .select_from(rows.outerjoin(there, same))
        .where(there.c[first.name].is_(None))
    )
    insert = mysql_dialect.insert(table).from_select(list(columns), absent)
    dialect = PlainText() if plain else MysqlText()
    text = str(insert.on_duplicate_key_update({first.name: first}).compile(dialect=dialect))
    integers = tuple(at for at, kind in enumerate(kinds.values()) if isinstance(kind, sa.Integer))
    return Compiled(" ".join(text.split()), (Rows("batch", integers, len(kinds)),), writes=table.name)


def insert_statement(insert: mysql_dialect.Insert, call: InsertMany) -> mysql_dialect.Insert:
    """The insert, which leaves a key that is there as it is where the call says so."""
    if not call.skip_conflicts:
        return insert
    (first, *_) = call.table.primary_key.columns
    return insert.on_duplicate_key_update({first.name: first})

"""How statements are spelled on the MySQL wire, so that no optimizer's mood decides which rows are locked.

A batch is one JSON text that the server reads as a table. What it joins is found by an index, row after row of the
batch: a server that scanned a small table instead would also wait for, and lock, the rows that nobody asked for. So
the batch is always the first table of a STRAIGHT_JOIN, `x IN (SELECT … of a batch)` becomes such a join (the rows of
a batch are distinct), and every table is read with FORCE INDEX, which makes a scan the last resort.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final, cast

import sqlalchemy as sa
from sqlalchemy.dialects import mysql
from sqlalchemy.dialects.mysql.base import MySQLCompiler, MySQLDialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BinaryExpression, Tuple
from sqlalchemy.sql.expression import FromClause, FunctionElement, TableValuedAlias

from doonce.db.schema import MYSQL, ExactText, is_made_on

JSON_TYPES: Final = {True: "BIGINT", False: "LONGTEXT"}
PLACES: Final = tuple(f"'$[{position}]'" for position in range(64))


class JsonTable(FunctionElement[Any]):
    """Rows as JSON, as a table: what MySQL has in the place of arrays."""

    inherit_cache = True
    name = "json_table"

    def __init__(self, rows: sa.ColumnElement[str], columns: dict[str, sa.types.TypeEngine[Any]]) -> None:
        super().__init__(rows)
        self.columns_read = columns


@compiles(JsonTable)
def _json_table(element: JsonTable, compiler: Any, **options: Any) -> str:
    quote = compiler.preparer.quote
    declared = ", ".join(
        " ".join((quote(name), JSON_TYPES[isinstance(kind, sa.Integer)], "PATH", PLACES[position]))
        for position, (name, kind) in enumerate(element.columns_read.items())
    )
    return " ".join(
        ("JSON_TABLE(", compiler.process(element.clauses, **options), ", '$[*]' COLUMNS (", declared, "))")
    )


class PlainRows(JsonTable):
    """Rows as selects of their values, for a server without JSON_TABLE; `db/mysql_plain.py` writes one for each row."""

    inherit_cache = True


@compiles(PlainRows)
def _plain_rows(element: PlainRows, compiler: Any, **options: Any) -> str:
    quote = compiler.preparer.quote
    values = ", ".join(
        f"CAST(? AS {_cast(kind)}) AS {quote(name)}" for name, kind in element.columns_read.items()
    )
    given = compiler.process(element.clauses, **options)
    return f"ROWS[ {given} : SELECT {values} FROM DUAL WHERE ? ]"  # noqa: S608 (the names are our columns')


def _cast(kind: sa.types.TypeEngine[Any]) -> str:
    """What a value is turned into, so that it is compared as the columns of its kind are, by their keys."""
    if isinstance(kind, sa.Integer):
        return "SIGNED"
    return "BINARY" if isinstance(kind.dialect_impl(MySQLDialect()), ExactText | mysql.VARBINARY) else "CHAR"


def batch_source(
    name: str, columns: dict[str, sa.types.TypeEngine[Any]], *, plain: bool = False
) -> FromClause:
    """The rows of a batch parameter as a table."""
    declared = [sa.column(column, kind) for column, kind in columns.items()]
    kind = PlainRows if plain else JsonTable
    return kind(sa.bindparam(name, type_=sa.Text()), columns).table_valued(*declared).alias(name)


def joined(statement: sa.sql.ClauseElement) -> sa.sql.ClauseElement:
    """The statement with each `x IN (SELECT … of a batch)` as a join with the batch."""
    replaced: Any = visitors.replacement_traverse(statement, {}, _as_join)
    return cast("sa.sql.ClauseElement", replaced)


def _as_join(element: Any, **_: Any) -> Any:
    if not (isinstance(element, BinaryExpression) and element.operator is operators.in_op):
        return None
    chosen: Any = element.right
    while not isinstance(chosen, sa.Select):
        chosen = getattr(chosen, "element", None)
        if chosen is None:
            return None
    if not all(_is_batch(source) for source in chosen.get_final_froms()):
        return None
    left = element.left
    wanted: Sequence[Any] = left.clauses if isinstance(left, Tuple) else [left]
    columns = chosen.exported_columns
    return sa.and_(*[column == there for column, there in zip(wanted, columns, strict=True)])


def _is_batch(source: Any) -> bool:
    if isinstance(source, TableValuedAlias):
        return isinstance(source.element, JsonTable) or _is_batch(source.element)
    return False


def _leads(source: Any) -> bool:
    """Whether it is a batch, or is made of nothing else."""
    if _is_batch(source):
        return True
    inner = getattr(source, "element", None)
    if isinstance(inner, sa.Select):
        return all(_leads(part) for part in inner.get_final_froms())
    return isinstance(source, sa.Join) and _leads(source.left)


def _has_batch(source: Any) -> bool:
    """Whether it is a batch, or joins one."""
    return _leads(source) or (
        isinstance(source, sa.Join) and (_has_batch(source.left) or _has_batch(source.right))
    )


class BatchFirst(MySQLCompiler):
    """Writes the batch first, and the tables after it in the order of the statement."""

    def _compose_select_body(
        self,
        text: str,
        select: Any,
        compile_state: Any,
        inner_columns: Any,
        froms: list[Any],
        *others: Any,
        **named: Any,
    ) -> Any:
        if len(froms) > 1 and any(_leads(source) for source in froms):
            ordered = sorted(froms, key=lambda source: not _leads(source))
            froms = [reduce(lambda left, right: sa.join(left, right, sa.true()), ordered)]
        return super()._compose_select_body(  # type: ignore[no-untyped-call]  # SQLAlchemy's own gap
            text, select, compile_state, inner_columns, froms, *others, **named
        )

    def for_update_clause(self, select: Any, **options: Any) -> str:
        """MySQL refuses to lock a batch, so the tables beside it are named there, which MariaDB has no words for."""
        clause: str = super().for_update_clause(select, **options)
        sources = select.get_final_froms()
        if not any(_has_batch(source) for source in sources):
            return clause
        locking = select._for_update_arg  # noqa: SLF001 (SQLAlchemy's own compiler asks in the same way)
        wanted = locking.of or sources
        of = "OF " + ", ".join(self.preparer.quote(name) for source in wanted for name in _looked_up(source))
        if locking.read:
            return f" {_on_mysql(f'FOR SHARE {of}')} {_on_mariadb(clause.strip())}"
        return clause.replace(" FOR UPDATE", f" FOR UPDATE {_on_mysql(of)}")

    def visit_join(self, join: sa.Join, asfrom: bool = False, from_linter: Any = None, **options: Any) -> str:
        """An inner join with a batch begins with the batch, and stays in that order."""
        left, right = join.left, join.right
        if not join.isouter and _leads(right) and not _leads(left):
            left, right = right, left
        if join.isouter or not _leads(left):
            return super().visit_join(join, asfrom=asfrom, from_linter=from_linter, **options)
        sides = [
            self.process(side, asfrom=True, from_linter=from_linter, **options) for side in (left, right)
        ]
        if isinstance(join.onclause, sa.True_):
            return " STRAIGHT_JOIN ".join(sides)  # the condition is in the WHERE
        condition = self.process(join.onclause, from_linter=from_linter, **options)  # type: ignore[arg-type]
        return " ".join((sides[0], "STRAIGHT_JOIN", sides[1], "ON", condition))

    def update_tables_clause(
        self, update_stmt: Any, from_table: Any, extra_froms: list[Any], **options: Any
    ) -> str:
        """UPDATE batch STRAIGHT_JOIN table."""
        return self._straight([*extra_froms, from_table], **options)

    def delete_extra_from_clause(
        self, delete_stmt: Any, from_table: Any, extra_froms: list[Any], from_hints: Any, **options: Any
    ) -> str:
        """DELETE FROM table USING batch STRAIGHT_JOIN table."""
        return "USING " + self._straight([*extra_froms, from_table], **options)

    def _straight(self, sources: Sequence[Any], **options: Any) -> str:
        options.pop("asfrom", None)
        return " STRAIGHT_JOIN ".join(self.process(source, asfrom=True, **options) for source in sources)

    def visit_table(self, table: Any, *positional: Any, **options: Any) -> str:
        """A table that is read by name is read by one of its keys."""
        text: str = super().visit_table(table, *positional, **options)  # type: ignore[no-untyped-call]
        enclosing = options.get("enclosing_alias")
        aliased = enclosing is not None and enclosing.element is table
        if aliased or options.get("iscrud") or options.get("ashint") or not options.get("asfrom"):
            return text
        if not (isinstance(table, sa.Table) and table.primary_key):
            return text
        names = ["PRIMARY", *sorted(key_names(table))]
        return f"{text} FORCE INDEX ({', '.join(map(self.preparer.quote, names))})"


class PlainBatchFirst(BatchFirst):
    """The same without SKIP LOCKED and shared locks. TiDB is told to look what a batch joins up by its keys."""

    def for_update_clause(self, select: Any, **_: Any) -> str:
        """Every lock excludes, and is waited for."""
        return " FOR UPDATE"

    def _compose_select_body(
        self,
        text: str,
        select: Any,
        compile_state: Any,
        inner_columns: Any,
        froms: list[Any],
        *others: Any,
        **named: Any,
    ) -> Any:
        if any(_leads(source) for source in froms):
            text = _hinted(text, "SELECT", [name for source in froms for name in _looked_up(source)])
        return super()._compose_select_body(
            text, select, compile_state, inner_columns, froms, *others, **named
        )

    def visit_update(self, update_stmt: Any, *positional: Any, **options: Any) -> str:
        """UPDATE with the hint, if it begins with a batch."""
        text: str = super().visit_update(update_stmt, *positional, **options)
        return _hinted(text, "UPDATE", [update_stmt.table.name]) if text.startswith("UPDATE ROWS[") else text

    def visit_delete(self, delete_stmt: Any, *positional: Any, **options: Any) -> str:
        """DELETE with the hint, if it begins with a batch."""
        text: str = super().visit_delete(delete_stmt, *positional, **options)  # type: ignore[no-untyped-call]
        return _hinted(text, "DELETE", [delete_stmt.table.name]) if " USING ROWS[" in text else text


def _on_mysql(words: str) -> str:
    """A comment that MySQL obeys; to MariaDB, which takes none of these versions for its own, it is one."""
    return f"/*!80001 {words} */"


def _on_mariadb(words: str) -> str:
    """A comment that MariaDB alone obeys."""
    return f"/*M! {words} */"


def _hinted(text: str, verb: str, names: Sequence[str]) -> str:
    hint = f"{verb} /*+ INL_JOIN({', '.join(names)}) */ "
    return text.replace(f"{verb} ", hint, 1) if names else text


def _looked_up(source: Any) -> list[str]:
    """The names of the tables of a FROM element that are found by a batch's values."""
    if isinstance(source, sa.Join):
        return [*_looked_up(source.left), *_looked_up(source.right)]
    return [source.name] if isinstance(getattr(source, "element", source), sa.Table) else []


class MysqlText(MySQLDialect):
    """Compiles texts with `?` for the driver's prepared statements."""

    statement_compiler: type[BatchFirst] = BatchFirst
    supports_statement_cache = False

    def __init__(self) -> None:
        super().__init__(paramstyle="qmark")


class PlainText(MysqlText):
    """The same in the plain form."""

    statement_compiler = PlainBatchFirst
    supports_statement_cache = False


def key_names(table: sa.Table) -> list[str]:
    """The keys of a table on the MySQL wire, without the primary one."""
    unique = [str(key.name) for key in table.constraints if isinstance(key, sa.UniqueConstraint)]
    return unique + [str(index.name) for index in table.indexes if is_made_on(index, MYSQL[0])]

"""What the MySQL wire says of a table's columns, in the words in which the verifier compares.

SQLAlchemy's own reflection leaves out a text's collation where it is the table's, and what a generated column is
computed from; both decide what is stored here.
"""

from __future__ import annotations

import re
from typing import Any, Final

import sqlalchemy as sa

ENGINE: Final = "InnoDB"
WIDTH: Final = re.compile(r"^(\w*INT)\(\d+\)")
"""How wide a client may show an integer: MariaDB says it, MySQL does not, and nothing depends on it."""
COLUMNS: Final = sa.text(
    "SELECT column_name, column_type, character_set_name, collation_name, is_nullable, column_default, extra,"
    " generation_expression FROM information_schema.columns"
    " WHERE table_schema = DATABASE() AND table_name = :name"
)
STORED_BY: Final = sa.text(
    "SELECT engine FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = :name"
)


def engine(connection: sa.Connection, name: str) -> str:
    """The storage engine of a table: another one than InnoDB may have no transactions."""
    return str(connection.execute(STORED_BY, {"name": name}).scalar_one())


def columns(connection: sa.Connection, name: str) -> dict[str, str]:
    """Each column with its type, its text's collation, whether it may be null, and what else fills it."""
    return {row[0]: _described(*row[1:]) for row in connection.execute(COLUMNS, {"name": name})}


def _described(
    kind: str,
    charset: str | None,
    collation: str | None,
    nullable: str,
    default: Any,
    extra: str,
    computed: Any,
) -> str:
    words = [WIDTH.sub(r"\1", _text(kind).upper())]
    if charset is not None:
        words += ["CHARACTER SET", _text(charset), "COLLATE", _text(collation)]
    if nullable == "NO":
        words.append("NOT NULL")
    if computed:
        words += ["AS", _plain(_text(computed))]
    elif _text(default) not in ("", "NULL") or _text(extra):
        words.append("a default")
    return " ".join(words)


def _plain(expression: str) -> str:
    """An expression without the quotes and parentheses that each server adds in its own way."""
    return " ".join(re.sub(r"[`()]", " ", expression).lower().split())


def _text(value: Any) -> str:
    return "" if value is None else value.decode() if isinstance(value, bytes) else str(value)

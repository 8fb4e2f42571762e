"""The one schema of a deployment: every owner's `tables.py` adds to this metadata, nobody else writes its tables."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "ix": "%(table_name)s_%(column_0_N_name)s",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

MYSQL: Final = ("mysql", "mariadb")
"""What SQLAlchemy calls the engines on the MySQL wire."""


class ExactText(sa.types.TypeDecorator[str]):
    """Text that the server keeps as bytes, so that no collation folds or pads it."""

    impl = mysql.VARBINARY
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> Any:
        """Texts go as UTF-8."""
        return value.encode() if isinstance(value, str) else value

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> str | None:
        """They come back as texts."""
        return value.decode() if isinstance(value, bytes) else value


_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
IDENTITY = _TEXT.with_variant(ExactText(255), *MYSQL)
"""Text compared byte by byte: ids, names, states. On the MySQL wire bytes, which no collation folds or pads."""

KEY = _TEXT.with_variant(ExactText(1_024), *MYSQL)
"""The same, for what is framed of several parts or is the provider's: up to `LIMITS.key_bytes_max`. An index of InnoDB
ends at 3,072 bytes, so two of them fit into one."""

TEXT = _TEXT.with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), *MYSQL)
"""Prose, and documents of any length: never compared, never indexed."""

MICROSECONDS = sa.BigInteger()
"""Integer microseconds UTC, from the database's clock."""

COUNT = sa.BigInteger()
BODY = (
    sa.LargeBinary().with_variant(postgresql.BYTEA(), "postgresql").with_variant(mysql.MEDIUMBLOB(), *MYSQL)
)

HOT_ROW: dict[str, Any] = {"postgresql_with": {"fillfactor": "45"}}
"""Room for each row's next version on its own page: a batch updates neighbours together, before any old version may
be pruned. No index covers a column that a step changes, so that such an update touches no index."""

ENGINES: Final = "engines"
HINTS: Final = "hints"
"""Keys of `info`: on which engines an index is made; that the rows of a table are hints, so that adding one that is
there must not wait for whoever has locked it."""

PARTIAL: Final = ("sqlite", "postgresql")
"""Engines that have partial indexes."""


def only_on(index: sa.Index, *engines: str) -> sa.Index:
    """The index, made on these engines alone."""
    index.info[ENGINES] = engines
    return index.ddl_if(dialect=engines)  # type: ignore[arg-type]  # SQLAlchemy takes a tuple, and does not say so


def is_made_on(index: sa.Index, engine: str) -> bool:
    """Whether an engine has this index."""
    return engine in index.info.get(ENGINES, (engine,))


clock = sa.Table(
    "doonce_clock",
    metadata,
    sa.Column(
        "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False
    ),
    sa.Column("now_us", MICROSECONDS, nullable=False),
)
"""SQLite's clock: the newest time given out. PostgreSQL has its own, and leaves this row alone."""

fence = sa.Table(
    "doonce_fence",
    metadata,
    sa.Column("name", IDENTITY, primary_key=True),
    sa.Column("slot", COUNT, primary_key=True, autoincrement=False),
    sa.Column("moves", COUNT, nullable=False),
)
"""Named locks on the MySQL wire: who shares a name writes one of its slots, and who wants it alone writes all of them
(PROTOCOL S5). Other engines have named locks of their own, and leave this table empty."""

"""The one schema of a deployment: every owner's `tables.py` adds to this metadata, nobody else writes its tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pk",
        "ix": "%(table_name)s_%(column_0_N_name)s",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

IDENTITY = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
"""Text compared byte by byte: ids, keys, names, states."""

MICROSECONDS = sa.BigInteger()
"""Integer microseconds UTC, from the database's clock."""

COUNT = sa.BigInteger()
BODY = sa.LargeBinary().with_variant(postgresql.BYTEA(), "postgresql")

HOT_ROW: dict[str, Any] = {"postgresql_with": {"fillfactor": "45"}}
"""Room for each row's next version on its own page: a batch updates neighbours together, before any old version may
be pruned. No index covers a column that a step changes, so that such an update touches no index."""

clock = sa.Table(
    "doonce_clock",
    metadata,
    sa.Column(
        "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False
    ),
    sa.Column("now_us", MICROSECONDS, nullable=False),
)
"""SQLite's clock: the newest time given out. PostgreSQL has its own, and leaves this row alone."""

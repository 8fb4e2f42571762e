"""Column types as the migrations write them. What a released step has used never changes here: a new type is added."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

_MYSQL: Final = ("mysql", "mariadb")
_EXACT: Final = sa.Text().with_variant(sa.TEXT(collation="C"), "postgresql")

NAME: Final = _EXACT.with_variant(mysql.VARBINARY(255), *_MYSQL)
KEY: Final = _EXACT.with_variant(mysql.VARBINARY(1_024), *_MYSQL)
TEXT: Final = _EXACT.with_variant(mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), *_MYSQL)
BODY: Final = (
    sa.LargeBinary().with_variant(postgresql.BYTEA(), "postgresql").with_variant(mysql.MEDIUMBLOB(), *_MYSQL)
)


def on_mysql() -> bool:
    """Whether the step runs on the MySQL wire, which has no partial indexes."""
    return op.get_context().dialect.name in _MYSQL

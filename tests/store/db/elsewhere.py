"""A database that is another one than the schema was pinned to, as a copy or a promoted standby is."""

from __future__ import annotations

import sqlalchemy as sa

from doonce.db.incarnation import database_incarnation
from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch

ELSEWHERE = Statement(
    "test.pinned_elsewhere", lambda dialect: sa.update(database_incarnation).values(identity="server:another")
)


def pinned_elsewhere() -> Txn[None]:
    """Pin the schema to another server."""
    yield from fetch(ELSEWHERE)

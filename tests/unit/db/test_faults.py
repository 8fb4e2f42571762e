"""Who is told that a transaction cannot be had hears the engine's own code, and none of its words."""

import sqlite3

import asyncpg
import pymysql
import pytest
from tests.unit.db.fake import fake_database

from doonce.base.errors import Unavailable
from doonce.db.database import RetrySettings
from doonce.db.faults import RolledBack
from doonce.db.transaction import Txn


def on_sqlite() -> Exception:
    try:
        sqlite3.connect(":memory:").execute("SELECT abs(-9223372036854775808)")
    except sqlite3.Error as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "cause, said",
    [
        (asyncpg.DeadlockDetectedError("Key (secret)"), " (its error 40P01)"),
        (pymysql.err.OperationalError(3569, "secret"), " (its error 3569)"),
        (on_sqlite(), " (its error SQLITE_ERROR)"),
        (OSError("secret"), ""),
        (None, ""),
    ],
)
async def test_what_keeps_being_rolled_back_is_told_with_the_engines_code(
    cause: Exception | None, said: str
) -> None:
    def refused(_: object) -> RolledBack:
        fault = RolledBack("secret")
        fault.__cause__ = cause
        return fault

    def operation() -> Txn[None]:
        yield from ()

    database, driver = fake_database(RetrySettings(tries_max=2, base_ms=0.0))
    driver.fault = refused
    with pytest.raises(Unavailable) as caught:
        await database.transact(operation)
    assert str(caught.value).startswith(
        f"the database keeps rolling this transaction back{said}; nothing was written"
    )
    assert "secret" not in str(caught.value)

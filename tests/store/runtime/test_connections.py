"""What counts as an open transaction, connection by connection."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from tests.store.runtime.applications import asyncio_engine, database, sqlalchemy_engine

from doonce.base.errors import Conflict, Invalid
from doonce.runtime import inbox, outbox, schema
from doonce.wire import HandoffScope

INTENT: dict[str, Any] = {"operation": "person.update", "payload": {"title": "CTO"}, "local_ref": "42"}


def test_sqlite3_in_autocommit_mode_after_an_explicit_begin(tmp_path: Path, scope: HandoffScope) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        schema.create(connection)
        outbox.emit(connection, scope=scope, **INTENT)
        connection.execute("COMMIT")
        with pytest.raises(Conflict, match="autocommit"):
            outbox.emit(connection, scope=scope, **INTENT)
        connection.execute("BEGIN")
        outbox.emit(connection, scope=scope, **INTENT)
        connection.execute("ROLLBACK")

        assert connection.execute("SELECT count(*) FROM doonce_outbox").fetchone() == (1,)


def test_sqlite3_leaves_the_begun_transaction_open(tmp_path: Path, scope: HandoffScope) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        schema.create(connection)
        outbox.emit(connection, scope=scope, **INTENT)

        assert connection.in_transaction


def test_sqlite3_with_another_text_factory(tmp_path: Path, scope: HandoffScope) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.text_factory = bytes
        with pytest.raises(Invalid, match="texts"):
            outbox.emit(connection, scope=scope, **INTENT)


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "mariadb"])
def test_sqlalchemy_with_the_autocommit_isolation_level(
    engine: str, tmp_path: Path, scope: HandoffScope
) -> None:
    with database(engine, tmp_path) as address:
        made = sqlalchemy_engine(engine, address)
        with made.begin() as connection:
            schema.create(connection)
        autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
        with autocommit.begin() as connection, pytest.raises(Conflict, match="no transaction"):
            outbox.emit(connection, scope=scope, **INTENT)
        with made.connect() as connection:
            assert connection.exec_driver_sql("SELECT count(*) FROM doonce_outbox").scalar() == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "mariadb"])
def test_a_scoped_session(engine: str, tmp_path: Path, scope: HandoffScope) -> None:
    with database(engine, tmp_path) as address:
        made = sqlalchemy_engine(engine, address)
        with made.begin() as connection:
            schema.create(connection)
        session = scoped_session(sessionmaker(made))
        with pytest.raises(Conflict, match="session"):
            outbox.emit(session, scope=scope, **INTENT)
        with session.begin():
            outbox.emit(session, scope=scope, **INTENT)
        session.remove()
        with Session(made) as reader:
            assert reader.connection().exec_driver_sql("SELECT count(*) FROM doonce_outbox").scalar() == 1


def test_psycopg_in_autocommit_mode_inside_a_transaction_block(tmp_path: Path, scope: HandoffScope) -> None:
    with database("postgresql", tmp_path) as address, psycopg.connect(address, autocommit=True) as connection:
        with connection.transaction():
            schema.create(connection)
            outbox.emit(connection, scope=scope, **INTENT)
        with pytest.raises(Conflict, match="autocommit"):
            outbox.emit(connection, scope=scope, **INTENT)

        assert connection.execute("SELECT count(*) FROM doonce_outbox").fetchone() == (1,)


def test_psycopg_with_cursors_of_another_placeholder(tmp_path: Path, scope: HandoffScope) -> None:
    with (
        database("postgresql", tmp_path) as address,
        psycopg.connect(address, cursor_factory=psycopg.RawCursor) as connection,
    ):
        schema.create(connection)
        outbox.emit(connection, scope=scope, **INTENT)


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
async def test_sqlalchemys_asyncio(engine: str, tmp_path: Path, scope: HandoffScope) -> None:
    with database(engine, tmp_path) as address:
        made = asyncio_engine(engine, address)
        async with made.begin() as connection:
            await connection.run_sync(schema.create)
            await outbox.emit_async(connection, scope=scope, **INTENT)
            assert await inbox.once_async(connection, "job-1")
        async with AsyncSession(made) as session:
            with pytest.raises(Conflict, match="session"):
                await outbox.emit_async(session, scope=scope, **INTENT)
            async with session.begin():
                outbox_id = await outbox.emit_async(session, scope=scope, **INTENT)
                assert await outbox.withdraw_async(session, outbox_id) is outbox.Withdrawal.ASKED
                assert not await inbox.once_async(session, "job-1")
        async with made.connect() as connection:
            with pytest.raises(Conflict, match="connection"):
                await outbox.emit_async(connection, scope=scope, **INTENT)
            with pytest.raises(Invalid, match="asyncio") as refused:
                outbox.emit(connection, scope=scope, **INTENT)
            assert "_async" in refused.value.hint
        autocommit = made.execution_options(isolation_level="AUTOCOMMIT")
        async with autocommit.begin() as connection:
            with pytest.raises(Conflict, match="AUTOCOMMIT"):
                await outbox.emit_async(connection, scope=scope, **INTENT)
        await made.dispose()


@pytest.mark.parametrize("connection", [None, object(), "sqlite://"])
def test_whatever_is_no_connection_is_refused(connection: object, scope: HandoffScope) -> None:
    with pytest.raises(Invalid, match="not supported"):
        outbox.emit(connection, scope=scope, **INTENT)

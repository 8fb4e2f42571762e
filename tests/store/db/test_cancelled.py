"""Whoever is cancelled while the server owes an answer leaves no connection open, as the server's side of it sees."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest
from tests.store.db.notes import NoteDatabase, note
from tests.store.db.relayed import Relay, relayed

from doonce.db import closing
from doonce.db.database import Database, open_database
from doonce.db.mysql import MysqlSettings
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.transaction import Txn, clock, insert_many

pytestmark = pytest.mark.usefixtures("slow_answers_are_waited_for")
PATIENT = 60.0


@pytest.fixture
def slow_answers_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the cancellation ends a wait."""
    monkeypatch.setattr(closing, "GOODBYE_SECONDS", PATIENT)


def patient(relay: Relay) -> Database:
    return open_database(
        relay.url,
        postgresql=replace(
            PostgresqlSettings(), connect_timeout_seconds=PATIENT, answer_timeout_seconds=PATIENT
        ),
        mysql=replace(MysqlSettings(), connect_timeout_seconds=PATIENT, answer_timeout_seconds=PATIENT),
    )


async def cancelled_in_the_silence(relay: Relay, waiting: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(waiting)
    await relay.fell_silent.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def all_closed(relay: Relay) -> None:
    while relay.clients:  # the other side of a socket has no event
        await asyncio.sleep(0.01)


def writing() -> Txn[None]:
    yield from insert_many(note, ("id", "number"), [("written", 1)])
    yield from clock()


def failing() -> Txn[None]:
    yield from writing()
    raise ZeroDivisionError


@pytest.mark.parametrize("operation, said", [(writing, b"COMMIT"), (failing, b"ROLLBACK")])
async def test_the_end_of_a_transaction(
    remote: NoteDatabase, operation: Callable[[], Txn[None]], said: bytes
) -> None:
    async with asyncio.timeout(10), relayed(remote.url) as relay:
        relay.silent_at = said
        database = patient(relay)
        await cancelled_in_the_silence(relay, database.driver.run(operation, readonly=False))
        await all_closed(relay)
        await database.close()
    assert await remote.rows() == []


async def test_a_listener_that_has_not_begun_to_listen(fresh_postgres: str) -> None:
    async with asyncio.timeout(10), relayed(fresh_postgres) as relay:
        relay.silent_at = b"LISTEN"
        database = patient(relay)
        await cancelled_in_the_silence(relay, database.listen())
        await all_closed(relay)
        await database.close()


@pytest.mark.parametrize("connections", [1, 3])
async def test_the_driver_is_closed(remote: NoteDatabase, connections: int) -> None:
    """A goodbye that is cancelled is one without a word."""
    async with asyncio.timeout(10), relayed(remote.url) as relay:
        database = patient(relay)
        await asyncio.gather(*(database.driver.run(clock, readonly=True) for _ in range(connections)))
        assert relay.clients == connections
        closing_it = asyncio.create_task(database.close())
        await asyncio.sleep(0)  # it has begun, and no goodbye has been said
        closing_it.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing_it
        await all_closed(relay)

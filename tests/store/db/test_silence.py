"""A server that is there and says nothing: the transaction ends in time, as what is proven of it, on each wire."""

import asyncio
from dataclasses import replace

import pytest
from tests.store.db.notes import NoteDatabase, note
from tests.store.db.relayed import relayed

from doonce.db.database import open_database
from doonce.db.faults import CommitUnknown, Disconnected
from doonce.db.mysql import MysqlSettings
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.transaction import Txn, clock, insert_many

SOON = 0.5


@pytest.mark.parametrize("at_commit", [False, True])
async def test_t6_silence_before_the_commit_proves_a_rollback_and_at_it_nothing(
    remote: NoteDatabase, at_commit: bool
) -> None:
    async with relayed(remote.url) as relay:

        def operation() -> Txn[None]:
            yield from clock()
            relay.silent = not at_commit
            yield from insert_many(note, ("id", "number"), [("silent", 1)])
            yield from clock()
            relay.silent = True

        database = open_database(
            relay.url,
            postgresql=replace(PostgresqlSettings(), answer_timeout_seconds=SOON),
            mysql=replace(MysqlSettings(), answer_timeout_seconds=SOON),
        )
        wanted = CommitUnknown if at_commit else Disconnected
        async with asyncio.timeout(20):
            with pytest.raises(wanted, match="no answer"):
                await database.driver.run(operation, readonly=False)
            relay.silent = False
            await database.driver.run(clock, readonly=True)  # on another connection
            await database.close()
    assert await remote.rows() == []

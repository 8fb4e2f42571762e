"""A server that is there and says nothing: the transaction ends in time, as what is proven of it, on each wire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
import sqlalchemy as sa
from tests.store.db.notes import NoteDatabase, note

from doonce.db.database import open_database
from doonce.db.faults import CommitUnknown, Disconnected
from doonce.db.mysql import MysqlSettings
from doonce.db.postgresql import PostgresqlSettings
from doonce.db.transaction import Txn, clock, insert_many

SOON = 0.5


@dataclass(slots=True)
class Relay:
    """Passes bytes between clients and the server, until it keeps them to itself."""

    port: int = 0
    silent: bool = False


@asynccontextmanager
async def relayed(host: str, port: int) -> AsyncIterator[Relay]:
    """A relay to a server; its connections end with the block."""
    relay = Relay()
    passing: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                if not relay.silent:
                    writer.write(piece)
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, port)
        writers.extend((writer, back))
        for one in (pass_on(reader, back), pass_on(there, writer)):
            passing.add(asyncio.create_task(one))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.wait(passing, timeout=5)


@pytest.mark.parametrize("at_commit", [False, True])
async def test_t6_silence_before_the_commit_proves_a_rollback_and_at_it_nothing(
    remote: NoteDatabase, at_commit: bool
) -> None:
    url = sa.make_url(remote.url)
    async with relayed(url.host or "127.0.0.1", url.port or 0) as relay:

        def operation() -> Txn[None]:
            yield from clock()
            relay.silent = not at_commit
            yield from insert_many(note, ("id", "number"), [("silent", 1)])
            yield from clock()
            relay.silent = True

        database = open_database(
            url.set(host="127.0.0.1", port=relay.port).render_as_string(hide_password=False),
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

"""A relay before a server, which can fall silent, and sees which connections are open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import sqlalchemy as sa


@dataclass(slots=True)
class Relay:
    """Passes bytes between clients and the server, until it keeps them to itself."""

    url: str = ""
    silent: bool = False
    silent_at: bytes | None = None
    """What a client says that makes it fall silent, before that has reached the server."""
    fell_silent: asyncio.Event = field(default_factory=asyncio.Event)
    clients: int = 0
    """Connections that clients have not closed."""

    def passes(self, said: bytes) -> bool:
        if self.silent_at is not None and self.silent_at in said:
            self.silent = True
            self.fell_silent.set()
        return not self.silent


@asynccontextmanager
async def relayed(server_url: str) -> AsyncIterator[Relay]:
    """A relay to a server; its connections end with the block."""
    place = sa.make_url(server_url)
    relay = Relay()
    passing: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                if relay.passes(piece) if client else not relay.silent:
                    writer.write(piece)
            writer.close()
        relay.clients -= client

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay.clients += 1
        there, back = await asyncio.open_connection(place.host, place.port)
        writers.extend((writer, back))
        for one in (pass_on(reader, back, True), pass_on(there, writer, False)):
            passing.add(asyncio.create_task(one))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    here = place.set(host="127.0.0.1", port=server.sockets[0].getsockname()[1])
    relay.url = here.render_as_string(hide_password=False)
    try:
        yield relay
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.wait(passing, timeout=5)

"""The provider of the conformance suite, in the suite's own process: it counts what reaches it, and answers or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import parse_qs, urlsplit

HEAD_BYTES_MAX: Final = 65_536
ANSWER: Final = b'{"id":"1"}'


class Manner(str, Enum):
    """How the witness treats a request that it has read, and counted, whole."""

    ANSWER = "answer"
    HANG_UP = "hang_up"
    HOLD = "hold"


@dataclass(slots=True)
class Witness:
    """A server on loopback. `bodies` has every request by its command, in the order of arrival."""

    manner: Manner = Manner.ANSWER
    bodies: dict[str, list[bytes]] = field(default_factory=dict)
    secrets: Counter[str] = field(default_factory=Counter)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=HEAD_BYTES_MAX)

    async def stop(self) -> None:
        """Stop listening."""
        self.released.set()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def origin(self) -> str:
        """Where it listens."""
        if self._server is None:
            raise RuntimeError("the witness has not been started")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def count(self, command_id: str) -> int:
        """How many requests of this command have arrived."""
        return len(self.bodies.get(command_id, []))

    def behave(self, manner: Manner) -> None:
        """Treat requests so from now on."""
        self.manner = manner
        self.released = asyncio.Event()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                if not await self._serve_one(reader, writer):
                    break
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and treat it; False when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        target = head[0].split(" ")[1]
        (command_id,) = parse_qs(urlsplit(target).query).get("command", [""])
        self.bodies.setdefault(command_id, []).append(body)
        self.secrets[headers.get("authorization", "")] += 1
        if self.manner is Manner.HANG_UP:
            return False
        if self.manner is Manner.HOLD:
            await self.released.wait()
        head_out = (
            f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(ANSWER)}\r\n\r\n"
        )
        writer.write(head_out.encode() + ANSWER)
        await writer.drain()
        return True

"""A sender of signed deliveries that costs little: bytes made beforehand, one request at a time on each connection."""

from __future__ import annotations

import asyncio
import hmac
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

from doonce.ingress.receipts import RouteKey

ROUTE = RouteKey("bench", "only", "shop.events", "order")
SECRET = "the secret of the benchmark"
DUPLICATES = 0.1
"""How many deliveries are one that was sent before, among the last thousand."""

FILLING = "x" * 400
PACK = b"""
format = "doonce.pack/1"
name = "shop"
version = "1.0.0"
title = "A shop"
auth = { scheme = "none" }

[webhooks.order]
summary = "An order"
response_deadline = "10s"
redelivery = "window"
redelivery_window = "3d"
delivery_id = "Shop-Delivery"
events = { type = "/type", identity = ["/id"] }
verifier = { algorithm = "hmac-sha256", header = "Shop-Signature", encoding = "hex", content = "{body}" }
"""


def requests(number: int, name: str) -> list[bytes]:
    """So many requests, duplicates among them; `name` keeps them apart from those of other calls."""
    rng = random.Random(name)
    made: list[bytes] = []
    for count in range(number):
        if made and rng.random() < DUPLICATES:
            made.append(made[rng.randrange(max(0, count - 1_000), count)])
            continue
        identity = f"{name}-{count}"
        body = json.dumps({"type": "order", "id": identity, "note": FILLING}).encode()
        signature = hmac.digest(SECRET.encode(), body, "sha256").hex()
        path = "/in/" + "/".join(ROUTE.parts)
        made.append(
            f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Shop-Delivery: {identity}\r\nShop-Signature: {signature}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
    return made


class Connection(asyncio.Protocol):
    """One kept connection: a request, its answer, the next. All answers of the service fit one segment."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport | None = None
        self.waiting: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self.transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """The answer."""
        waiting, self.waiting = self.waiting, None
        assert waiting is not None
        if data.startswith(b"HTTP/1.1 200") and data.endswith(b"\r\n\r\n"):
            waiting.set_result(None)
        else:
            waiting.set_exception(AssertionError(f"not taken: {data!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody waits for an answer that cannot come."""
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(exc or ConnectionResetError("closed by the service"))

    async def ask(self, request: bytes) -> None:
        """Send, and wait for the success."""
        assert self.transport is not None
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        await self.waiting


@dataclass(slots=True)
class Sender:
    """So many connections to one service."""

    connections: list[Connection] = field(default_factory=list)

    @staticmethod
    async def connected(port: int, number: int) -> Sender:
        """Open them all."""
        loop = asyncio.get_running_loop()
        made = [await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(number)]
        return Sender([protocol for _, protocol in made])

    async def send_all(self, wanted: list[bytes]) -> float:
        """Send as fast as answers come; how many seconds it took."""
        pending = iter(wanted)

        async def lane(connection: Connection, pending: Iterator[bytes]) -> None:
            for request in pending:
                await connection.ask(request)

        began_s = time.perf_counter()
        await asyncio.gather(*(lane(connection, pending) for connection in self.connections))
        return time.perf_counter() - began_s

    async def send_at(self, wanted: list[bytes], per_s: float) -> list[float]:
        """Send at a rate, whatever the answers; seconds from the moment that each was due to its success."""
        began_s = time.perf_counter()
        took: list[float] = []
        due = iter([(began_s + number / per_s, request) for number, request in enumerate(wanted)])

        async def lane(connection: Connection) -> None:
            for at_s, request in due:
                await asyncio.sleep(max(0.0, at_s - time.perf_counter()))
                await connection.ask(request)
                took.append(time.perf_counter() - at_s)

        await asyncio.gather(*(lane(connection) for connection in self.connections))
        return took

    def close(self) -> None:
        """Let go."""
        for connection in self.connections:
            if connection.transport is not None:
                connection.transport.close()

"""A server of bytes: each accepted connection is handed to the test, which reads and writes as it likes."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext

from doonce.base.secrets import Secret
from doonce.http import (
    PRIVATE_ALLOWED,
    Bounds,
    Client,
    ClientSettings,
    EgressPolicy,
    Gate,
    Go,
    Request,
    Sent,
    boottime_ns,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SECOND_NS = 1_000_000_000


@dataclass
class Peer:
    """One accepted connection."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: bytearray = field(default_factory=bytearray)

    async def request(self) -> bytes:
        """One whole request, head and body; b"" at the end of the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as ended:
            self.received += ended.partial
            return b""
        self.received += head
        body = b""
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                body = await self.reader.readexactly(int(line.partition(b":")[2]))
                self.received += body
        return head + body

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        sock: socket.socket = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()


@dataclass
class RawServer:
    """Where it listens, and the connections that it accepted."""

    origin: str
    port: int
    peers: list[Peer] = field(default_factory=list)

    @property
    def received(self) -> bytes:
        """Every byte of every connection that a script has read."""
        return b"".join(bytes(peer.received) for peer in self.peers)


Script = Callable[[Peer], Awaitable[None]]


async def answer_all(peer: Peer) -> None:
    """The well-behaved server."""
    while await peer.request():
        peer.write(OK)


def replying(*replies: bytes, then_close: bool = False) -> Script:
    """Each connection gets these replies, one per request, then OK for ever, or the close."""

    async def script(peer: Peer) -> None:
        for reply in replies:
            if not await peer.request():
                return
            peer.write(reply)
        if then_close:
            await peer.close()
            return
        await answer_all(peer)

    return script


@asynccontextmanager
async def serving(
    script: Script, *, tls: SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[RawServer]:
    """A server that runs `script` on every connection."""
    tasks: set[asyncio.Task[None]] = set()
    server = RawServer("", 0)

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(len(server.peers), reader, writer)
        server.peers.append(peer)
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await script(peer)
            await reader.read()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            tasks.discard(task)
            writer.close()

    listening = await asyncio.start_server(accepted, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    server.origin = f"{'https' if tls else 'http'}://{host}:{server.port}"
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def connected(
    origin: str, settings: ClientSettings | None = None, **options: object
) -> AsyncIterator[Client]:
    """A client that may reach `origin` on this machine."""
    policy = EgressPolicy(origins=frozenset({origin}), http_allowed=True, private_networks=PRIVATE_ALLOWED)
    client = Client(policy, settings, **options)  # type: ignore[arg-type]  # passed through by name
    try:
        yield client
    finally:
        await client.close()


def permit(*, send_by_ns: int = 5 * SECOND_NS, abort_ns: int = 5 * SECOND_NS) -> Go:
    """Consent relative to now."""
    now_ns = boottime_ns()
    return Go(send_by_ns=now_ns + send_by_ns, abort_at_ns=now_ns + abort_ns)


async def until(fact: Callable[[], object], timeout_s: float = 5.0) -> None:
    """Wait for a fact of this process or of the loopback interface, which nothing announces."""
    async with asyncio.timeout(timeout_s):
        while not fact():
            await asyncio.sleep(0.0005)


async def consent() -> Go:
    """A gate that lets pass for five seconds."""
    return permit()


def asking(origin: str, method: str = "GET", target: str = "/", body: bytes = b"") -> Request:
    """A request with nothing special about it."""
    return Request(method, origin, target, (), body)


async def send(
    client: Client,
    request: Request,
    *,
    gate: Gate = consent,
    bounds: Bounds | None = None,
    secrets: dict[str, Secret] | None = None,
    connect_timeout_ns: int = 5 * SECOND_NS,
) -> Sent:
    """`client.send` with what a test does not care about filled in."""
    return await client.send(
        request,
        secret_headers=secrets or {},
        gate=gate,
        bounds=bounds or Bounds(),
        connect_timeout_ns=connect_timeout_ns,
    )

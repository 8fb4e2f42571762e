"""The end of a call: at the deadline, or when its caller leaves, untaken bytes are withdrawn (D3)."""

import asyncio
import contextlib

import pytest

from doonce.http import Go, Replied, Unanswered, connection

from .raw import OK, SECOND_NS, Peer, asking, connected, permit, replying, send, serving, until

BODY = bytes(4 * 1024 * 1024)
"""More than the buffers of both sides hold together."""


class StalledServer:
    """Reads nothing until told to; then everything that still comes."""

    def __init__(self) -> None:
        self.proceed = asyncio.Event()
        self.finished = asyncio.Event()
        self.received_bytes = 0
        self.reset = False

    async def script(self, peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        await self.proceed.wait()
        peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
        try:
            while piece := await peer.reader.read(1 << 20):
                self.received_bytes += len(piece)
        except ConnectionResetError:
            self.reset = True
        self.finished.set()


@pytest.mark.parametrize("how", ["deadline", "cancel"])
async def test_bytes_that_the_server_had_not_taken_never_arrive(how: str) -> None:
    stalled = StalledServer()
    async with serving(stalled.script) as server, connected(server.origin) as client:
        sent_something = asyncio.Event()

        async def gate() -> Go:
            sent_something.set()
            return permit(abort_ns=SECOND_NS // 5 if how == "deadline" else 60 * SECOND_NS)

        task = asyncio.create_task(send(client, asking(server.origin, "PUT", body=BODY), gate=gate))
        await sent_something.wait()
        if how == "cancel":
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            assert await task == Unanswered("the deadline passed")
        await asyncio.sleep(0)
        stalled.proceed.set()
        async with asyncio.timeout(5):
            await stalled.finished.wait()
        assert stalled.reset
        assert stalled.received_bytes < len(BODY)


async def test_a_reply_that_comes_after_the_deadline_is_nobodys() -> None:
    release = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number == 0:
            await release.wait()
            with contextlib.suppress(OSError):
                peer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nlate")
        else:
            peer.write(OK)

    async with serving(script) as server, connected(server.origin) as client:

        async def gate() -> Go:
            return permit(abort_ns=SECOND_NS // 10)

        assert isinstance(await send(client, asking(server.origin, "PUT"), gate=gate), Unanswered)
        release.set()
        second = await send(client, asking(server.origin))
        assert isinstance(second, Replied)
        assert second.body == b"ok"
        assert len(server.peers) == 2


@pytest.mark.parametrize(
    "begun, status",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", 200),
        (b"HTTP/1.1 404 Not Found\r\nContent-", 404),
    ],
)
async def test_a_reply_cut_off_by_the_deadline_keeps_its_status(begun: bytes, status: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.write(begun)
        await peer.reader.read()

    async with serving(script) as server, connected(server.origin) as client:

        async def gate() -> Go:
            return permit(abort_ns=SECOND_NS // 10)

        sent = await send(client, asking(server.origin), gate=gate)
        assert isinstance(sent, Replied)
        assert (sent.status, sent.complete, sent.reason) == (status, False, "the deadline passed")


async def test_the_deadline_is_counted_on_the_given_clock_not_on_the_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop's clock stands still in suspend; a clock that jumps stands for one that does not."""
    monkeypatch.setattr(connection, "_DEADLINE_TICK_NS", SECOND_NS // 200)
    jumped_ns = 0
    looked = 0

    def clock_ns() -> int:
        nonlocal looked
        looked += 1
        return 1_000 * SECOND_NS + jumped_ns

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reader.read()

    async with serving(script) as server, connected(server.origin, clock_ns=clock_ns) as client:

        async def gate() -> Go:
            return Go(clock_ns() + SECOND_NS, clock_ns() + 3600 * SECOND_NS)

        task = asyncio.create_task(send(client, asking(server.origin), gate=gate))
        await until(lambda: server.received)
        before = looked
        await until(lambda: looked > before + 3)
        assert not task.done()
        jumped_ns = 3600 * SECOND_NS
        async with asyncio.timeout(5):
            assert await task == Unanswered("the deadline passed")


async def test_a_reply_before_the_request_was_taken_is_complete_but_ends_the_connection() -> None:
    async def script(peer: Peer) -> None:
        if peer.number:
            await peer.request()
            peer.write(OK)
            return
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport can
        peer.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")

    async with serving(script) as server, connected(server.origin) as client:
        sent = await send(client, asking(server.origin, "PUT", body=BODY))
        assert isinstance(sent, Replied)
        assert (sent.status, sent.complete) == (413, True)
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert len(server.peers) == 2


async def test_closing_the_client_ends_what_is_in_flight_as_unanswered() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.reader.read()

    async with serving(script) as server, connected(server.origin) as client:
        task = asyncio.create_task(send(client, asking(server.origin)))
        await until(lambda: server.received)
        await client.close()
        assert isinstance(await task, Unanswered)


@pytest.mark.parametrize("size", [1, 65_536, 200_000])
async def test_a_glued_second_reply_is_never_the_next_answer(size: int) -> None:
    poison = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n" % size + b"!" * size
    async with serving(replying(OK + poison)) as server, connected(server.origin) as client:
        first = await send(client, asking(server.origin))
        assert isinstance(first, Replied)
        assert (first.status, first.body, first.complete) == (200, b"ok", True)
        second = await send(client, asking(server.origin, "PUT"))
        assert isinstance(second, Replied)
        assert second.status == 200
        assert len(server.peers) == 2

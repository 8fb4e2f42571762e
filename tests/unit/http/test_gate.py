"""The gate and what is checked behind it: before the first byte everything is NotSent, and provably so."""

import asyncio
import os
import socket

import pytest

from doonce.base.errors import Invalid
from doonce.base.secrets import Secret
from doonce.http import ClientSettings, Go, NotSent, Replied, Stage, Stop, Unanswered, boottime_ns

from .raw import OK, SECOND_NS, Peer, answer_all, asking, connected, permit, replying, send, serving, until

METHODS = ["GET", "PUT", "DELETE", "PATCH", "POST"]


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("method", METHODS)
async def test_the_gate_is_asked_once_with_the_connection_held_and_no_byte_sent(
    method: str, reused: bool
) -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:
        if reused:
            assert isinstance(await send(client, asking(server.origin)), Replied)
        before = server.received
        asked = 0

        async def gate() -> Go:
            nonlocal asked
            asked += 1
            await until(lambda: len(server.peers) == 1)
            await _turns()
            assert server.received == before
            return permit()

        sent = await send(client, asking(server.origin, method), gate=gate)
        assert isinstance(sent, Replied)
        assert sent.complete
        assert asked == 1
        assert len(server.peers) == 1
        assert server.received.startswith(before + method.encode())


async def test_a_stop_sends_nothing_and_keeps_the_connection() -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:

        async def gate() -> Stop:
            return Stop("the lease is gone")

        assert await send(client, asking(server.origin, "PUT"), gate=gate) == NotSent(
            Stage.GATE, "the lease is gone"
        )
        assert server.received == b""
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert len(server.peers) == 1


async def test_an_exception_of_the_gate_passes_through_and_sends_nothing() -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:

        async def gate() -> Go:
            raise LookupError("mark failed")

        with pytest.raises(LookupError):
            await send(client, asking(server.origin, "PUT"), gate=gate)
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert server.received.startswith(b"GET")
        assert len(server.peers) == 1


async def test_cancelled_in_the_gate_nothing_was_sent() -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:
        entered = asyncio.Event()

        async def gate() -> Go:
            entered.set()
            await asyncio.Event().wait()
            return permit()

        task = asyncio.create_task(send(client, asking(server.origin, "PUT"), gate=gate))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert server.received.startswith(b"GET")


@pytest.mark.parametrize("late", ["send_by", "abort"])
async def test_past_the_window_nothing_is_sent_and_the_connection_is_thrown_away(late: str) -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:

        async def gate() -> Go:
            if late == "send_by":
                return permit(send_by_ns=-1)
            return permit(abort_ns=-1)

        sent = await send(client, asking(server.origin, "PUT"), gate=gate)
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.WINDOW
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert [bytes(peer.received[:3]) for peer in server.peers] == [b"", b"GET"]


@pytest.mark.parametrize("reused", [False, True])
@pytest.mark.parametrize("over_ns, allowed", [(0, True), (1, False)])
async def test_a_connection_that_was_quiet_for_longer_than_the_send_window_is_thrown_away(
    reused: bool, over_ns: int, allowed: bool
) -> None:
    """Its time unused in the pool counts like its time at the gate, also when a gate had let it go."""
    now_ns = boottime_ns()
    settings = ClientSettings(send_window_ns=2 * SECOND_NS)
    async with (
        serving(answer_all) as server,
        connected(server.origin, settings, clock_ns=lambda: now_ns) as client,
    ):

        async def go() -> Go:
            return Go(now_ns + 60 * SECOND_NS, now_ns + 60 * SECOND_NS)

        async def slow_stop() -> Stop:
            nonlocal now_ns
            now_ns += SECOND_NS
            return Stop("not now")

        async def slow_go() -> Go:
            nonlocal now_ns
            now_ns += SECOND_NS + over_ns
            return await go()

        if reused:
            assert isinstance(await send(client, asking(server.origin), gate=go), Replied)
        before = server.received
        assert isinstance(await send(client, asking(server.origin), gate=slow_stop), NotSent)
        sent = await send(client, asking(server.origin, "PUT"), gate=slow_go)
        assert len(server.peers) == 1
        if allowed:
            assert isinstance(sent, Replied)
        else:
            assert isinstance(sent, NotSent)
            assert sent.stage is Stage.WINDOW
            await until(server.peers[0].reader.at_eof)
            assert server.received == before


@pytest.mark.parametrize("how", ["close", "reset", "speak"])
@pytest.mark.parametrize("reused", [False, True])
async def test_a_connection_that_ended_while_held_is_not_written_to(how: str, reused: bool) -> None:
    ended = asyncio.Event()

    async def script(peer: Peer) -> None:
        if peer.number == 0:
            if reused:
                await peer.request()
                peer.write(OK)
            await ended.wait()
            await _end(peer, how)
        await answer_all(peer)

    async with serving(script) as server, connected(server.origin) as client:
        if reused:
            await send(client, asking(server.origin))
        before = server.received

        async def gate() -> Go:
            ended.set()
            await _turns()
            return permit()

        sent = await send(client, asking(server.origin, "PUT"), gate=gate)
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.CLOSED
        assert server.received == before
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert len(server.peers) == 2


@pytest.mark.parametrize("how", ["close", "speak"])
async def test_the_kernel_is_asked_too_in_the_same_turn_as_the_first_byte(how: str) -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:
        await send(client, asking(server.origin))
        before = server.received
        theirs = socket.socket(fileno=os.dup(server.peers[0].writer.get_extra_info("socket").fileno()))

        async def gate() -> Go:
            # no await from here on: the client's loop cannot have read any of it
            if how == "close":
                theirs.shutdown(socket.SHUT_WR)
            else:
                theirs.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
            return permit()

        with theirs:
            sent = await send(client, asking(server.origin, "PUT"), gate=gate)
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.CLOSED
        await _turns()
        assert server.received == before


@pytest.mark.parametrize("how", ["close", "reset", "speak"])
async def test_an_idle_connection_that_ended_is_not_taken(how: str) -> None:
    ended = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.write(OK)
        if peer.number == 0:
            await ended.wait()
            await _end(peer, how)

    async with serving(script) as server, connected(server.origin) as client:
        await send(client, asking(server.origin))
        ended.set()
        await _turns()
        assert isinstance(await send(client, asking(server.origin, "PUT")), Replied)
        assert [bytes(peer.received[:3]) for peer in server.peers] == [b"GET", b"PUT"]


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("method", METHODS)
async def test_a_kept_connection_that_dies_on_the_request_is_unanswered_and_nothing_is_resent(
    method: str, how: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.write(OK)
        await peer.reader.read(1)
        peer.received += b"*"
        await _end(peer, how)

    async with serving(script) as server, connected(server.origin) as client:
        await send(client, asking(server.origin))
        asked = 0

        async def gate() -> Go:
            nonlocal asked
            asked += 1
            return permit()

        assert isinstance(await send(client, asking(server.origin, method), gate=gate), Unanswered)
        await _turns()
        assert asked == 1
        assert len(server.peers) == 1
        assert bytes(server.peers[0].received).endswith(b"\r\n\r\n*")


async def test_a_request_that_cannot_be_written_is_refused_before_anything(unused_tcp_port: int) -> None:
    origin = f"http://127.0.0.1:{unused_tcp_port}"
    async with connected(origin) as client:

        async def gate() -> Go:
            raise AssertionError("the gate was asked")

        for bad in (asking(origin, "G T"), asking(origin, target="/a b"), asking(origin + "/x")):
            with pytest.raises(Invalid):
                await send(client, bad, gate=gate)
        with pytest.raises(Invalid):
            await send(client, asking(origin), gate=gate, secrets={"X-A": Secret("a\r\nb")})


async def test_a_redirect_is_a_reply_like_any_other() -> None:
    redirect = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n"
    async with serving(replying(redirect)) as server, connected(server.origin) as client:
        sent = await send(client, asking(server.origin, "PUT"))
        assert isinstance(sent, Replied)
        assert (sent.status, dict(sent.headers)["location"]) == (307, "/there")
        assert server.received.count(b"PUT") == 1


async def test_cookies_are_not_kept() -> None:
    cookie = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"
    async with serving(replying(cookie)) as server, connected(server.origin) as client:
        await send(client, asking(server.origin))
        await send(client, asking(server.origin))
        assert b"ookie" not in server.received


async def test_proxies_of_the_environment_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(answer_all) as proxy, serving(answer_all) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.origin)
        async with connected(server.origin) as client:
            assert isinstance(await send(client, asking(server.origin)), Replied)
        assert not proxy.peers


async def _end(peer: Peer, how: str) -> None:
    match how:
        case "close":
            await peer.close()
        case "reset":
            peer.reset()
        case _:
            peer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")


async def _turns(count: int = 20) -> None:
    """Let both sides of the loopback connection see what was written."""
    for _ in range(count):
        await asyncio.sleep(0)
    await asyncio.sleep(0.005)


@pytest.mark.parametrize("how", ["answered", "reset", "window"])
async def test_a_secret_is_in_the_request_and_nowhere_else(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if how == "reset":
            peer.reset()
        else:
            peer.write(OK)

    caplog.set_level(0)
    asyncio.get_running_loop().set_debug(True)
    async with serving(script) as server, connected(server.origin) as client:

        async def gate() -> Go:
            return permit(send_by_ns=-1 if how == "window" else SECOND_NS)

        secrets = {"Authorization": Secret("Bearer very-secret")}
        sent = await send(client, asking(server.origin), gate=gate, secrets=secrets)
        assert (b"very-secret" in server.received) is (how != "window")
        assert "very-secret" not in repr(sent)
    assert "very-secret" not in caplog.text

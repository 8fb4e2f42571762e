"""The pool: bounds on sockets, waiting within the connect time, and nothing leaked by anyone who leaves."""

import asyncio

import pytest

from doonce.http import Client, ClientSettings, Go, NotSent, Replied, Stage, Stop

from .raw import SECOND_NS, Peer, answer_all, asking, connected, permit, replying, send, serving, until

MILLISECOND_NS = 1_000_000


class Held:
    """A gate that holds its connection until released."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.released = asyncio.Event()

    async def __call__(self) -> Go:
        self.entered.set()
        await self.released.wait()
        return permit()


async def holding(client: Client, origin: str) -> tuple[Held, asyncio.Task[object]]:
    held = Held()
    task: asyncio.Task[object] = asyncio.create_task(send(client, asking(origin), gate=held))
    await held.entered.wait()
    return held, task


async def test_connections_are_bounded_and_reused() -> None:
    settings = ClientSettings(connections_per_origin_max=3)
    async with serving(answer_all) as server, connected(server.origin, settings) as client:
        sent = await asyncio.gather(*(send(client, asking(server.origin)) for _ in range(50)))
        assert all(isinstance(one, Replied) and one.complete for one in sent)
        assert len(server.peers) == 3


async def test_waiting_for_a_connection_ends_with_the_connect_time() -> None:
    settings = ClientSettings(connections_per_origin_max=1)
    async with serving(answer_all) as server, connected(server.origin, settings) as client:
        held, task = await holding(client, server.origin)
        sent = await send(client, asking(server.origin), connect_timeout_ns=50 * MILLISECOND_NS)
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.POOL
        held.released.set()
        assert isinstance(await task, Replied)
        assert isinstance(await send(client, asking(server.origin)), Replied)
        assert len(server.peers) == 1


@pytest.mark.parametrize("ending", ["answered", "stopped", "broken", "cancelled"])
async def test_a_waiter_goes_on_however_the_holder_ends(ending: str) -> None:
    async def script(peer: Peer) -> None:
        if ending == "broken" and peer.number == 0:
            await peer.request()
            peer.reset()
            return
        await answer_all(peer)

    settings = ClientSettings(connections_per_origin_max=1)
    async with serving(script) as server, connected(server.origin, settings) as client:
        held, task = await holding(client, server.origin)
        waiting = asyncio.create_task(send(client, asking(server.origin)))
        await asyncio.sleep(0)
        if ending in ("stopped", "cancelled"):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            held.released.set()
            await task
        assert isinstance(await waiting, Replied)


@pytest.mark.parametrize("freed", ["connection", "slot"])
async def test_what_is_handed_to_a_waiter_that_leaves_at_that_moment_is_not_lost(freed: str) -> None:
    """The holder's step that frees it and the waiter's cancellation fall into one turn of the loop."""
    once = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"
    settings = ClientSettings(connections_per_origin_max=1)
    async with serving(replying(once)) as server, connected(server.origin, settings) as client:
        released = asyncio.Event()

        async def gate() -> Go | Stop:
            await released.wait()
            return Stop("enough") if freed == "connection" else permit()

        async def holder() -> None:
            await send(client, asking(server.origin), gate=gate)
            waiting.cancel()

        holding_it = asyncio.create_task(holder())
        await until(lambda: server.peers)
        waiting = asyncio.create_task(send(client, asking(server.origin)))
        await asyncio.sleep(0)
        released.set()
        await holding_it
        with pytest.raises(asyncio.CancelledError):
            await waiting
        sent = await send(client, asking(server.origin), connect_timeout_ns=SECOND_NS)
        assert isinstance(sent, Replied)


async def test_a_cancelled_opening_gives_its_slot_back() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    settings = ClientSettings(connections_per_origin_max=1)
    origin = "http://slow.example:80"
    async with connected(origin, settings, resolver=never) as client:
        for _ in range(3):
            task = asyncio.create_task(send(client, asking(origin)))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        sent = await send(client, asking(origin), connect_timeout_ns=20 * MILLISECOND_NS)
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.RESOLVE


async def test_all_origins_together_are_bounded_and_idle_ones_make_room() -> None:
    settings = ClientSettings(connections_max=2)
    async with serving(answer_all) as one, serving(answer_all) as two, serving(answer_all) as three:
        origins = [one.origin, two.origin, three.origin]
        async with connected(one.origin, settings) as client:

            async def to(origin: str) -> object:
                return await client.send(
                    asking(origin), secret_headers={}, gate=_go, declared_origins=origins
                )

            for origin in origins:
                assert isinstance(await to(origin), Replied)
            first = asyncio.create_task(
                client.send(
                    asking(one.origin), secret_headers={}, gate=(a := Held()), declared_origins=origins
                )
            )
            second = asyncio.create_task(
                client.send(
                    asking(two.origin), secret_headers={}, gate=(b := Held()), declared_origins=origins
                )
            )
            await a.entered.wait()
            await b.entered.wait()
            refused = await to(three.origin)
            assert isinstance(refused, NotSent)
            assert refused.stage is Stage.POOL
            a.released.set()
            b.released.set()
            assert isinstance(await first, Replied)
            assert isinstance(await second, Replied)


async def _go() -> Go:
    return permit()


async def test_an_idle_connection_has_an_age_limit_taken_or_not() -> None:
    now_ns = 1_000 * SECOND_NS
    settings = ClientSettings(idle_max_ns=SECOND_NS // 20)
    async with (
        serving(answer_all) as server,
        connected(server.origin, settings, clock_ns=lambda: now_ns) as client,
    ):

        async def gate() -> Go:
            return Go(now_ns + SECOND_NS, now_ns + 60 * SECOND_NS)

        await send(client, asking(server.origin), gate=gate)
        now_ns += SECOND_NS // 20 + 1
        await send(client, asking(server.origin), gate=gate)
        assert len(server.peers) == 2
        now_ns += SECOND_NS
        await until(server.peers[1].reader.at_eof)


async def test_a_closed_client_sends_nothing() -> None:
    async with serving(answer_all) as server, connected(server.origin) as client:
        await send(client, asking(server.origin))
        await client.close()
        sent = await send(client, asking(server.origin))
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.POOL
        await until(server.peers[0].reader.at_eof)


async def test_closing_refuses_those_who_wait() -> None:
    settings = ClientSettings(connections_per_origin_max=1)
    async with serving(answer_all) as server, connected(server.origin, settings) as client:
        held, task = await holding(client, server.origin)
        waiting = asyncio.create_task(send(client, asking(server.origin)))
        await asyncio.sleep(0)
        await client.close()
        sent = await waiting
        assert isinstance(sent, NotSent)
        assert sent.stage is Stage.POOL
        held.released.set()
        ended = await task
        assert isinstance(ended, NotSent)
        assert ended.stage is Stage.CLOSED

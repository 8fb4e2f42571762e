"""Opening a connection: each failure has its stage, and the address that was checked is the one used."""

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network

import pytest

from doonce.http import Client, EgressPolicy, NotSent, Replied, Stage
from doonce.http.dial import system_resolver
from doonce.http.egress import Network

from .raw import answer_all, asking, send, serving

LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.1/32"),)


class Answers:
    """A name server with a new answer each time."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def client_for(origin: str, answers: Answers, networks: tuple[Network, ...] = LOOPBACK) -> Client:
    policy = EgressPolicy(origins=frozenset({origin}), http_allowed=True, private_networks=networks)
    return Client(policy, resolver=answers)


async def stage(client: Client, origin: str, **options: int) -> tuple[Stage, str]:
    sent = await send(client, asking(origin), **options)  # type: ignore[arg-type]  # only the timeout is passed
    await client.close()
    assert isinstance(sent, NotSent)
    return sent.stage, sent.reason


async def test_a_name_that_rebinds_is_resolved_once_and_the_checked_address_is_used() -> None:
    """The second answer, which would lead to a private address, is never asked for."""
    async with serving(answer_all) as server:
        answers = Answers(["127.0.0.1"], ["127.0.0.2"])
        origin = f"http://api.example.com:{server.port}"
        client = client_for(origin, answers)
        sent = await send(client, asking(origin))
        await client.close()
        assert isinstance(sent, Replied)
        assert answers.asked == [("api.example.com", server.port)]
        assert b"\r\nHost: api.example.com:%d\r\n" % server.port in server.received


async def test_a_name_that_turned_private_is_refused_on_the_next_connection() -> None:
    async with serving(answer_all) as server:
        origin = f"http://api.example.com:{server.port}"
        answers = Answers(["169.254.169.254"])
        assert (await stage(client_for(origin, answers), origin))[0] is Stage.EGRESS
        assert not server.peers


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1", "127.0.0.1"], ["::ffff:127.0.0.1", "fe80::1%lo", "127.0.0.1"]]
)
async def test_of_several_addresses_only_acceptable_ones_are_used(addresses: list[str]) -> None:
    async with serving(answer_all) as server:
        origin = f"http://api.example.com:{server.port}"
        client = client_for(origin, Answers(addresses))
        assert isinstance(await send(client, asking(origin)), Replied)
        await client.close()


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with serving(answer_all) as server:
        origin = f"http://api.example.com:{server.port}"
        networks: tuple[Network, ...] = (ip_network("127.0.0.0/8"),)
        client = client_for(origin, Answers(["127.0.0.9", "127.0.0.1"]), networks)
        assert isinstance(await send(client, asking(origin)), Replied)
        await client.close()


@pytest.mark.parametrize(
    "answer",
    [
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ["not an address"],
        UnicodeError("bad label"),
    ],
)
async def test_a_name_that_does_not_resolve(answer: Exception | list[str]) -> None:
    origin = "http://nowhere.example:80"
    assert (await stage(client_for(origin, Answers(answer)), origin))[0] is Stage.RESOLVE


async def test_a_name_without_addresses() -> None:
    origin = "http://nowhere.example:80"
    assert (await stage(client_for(origin, Answers([])), origin))[0] is Stage.EGRESS


async def test_a_name_server_that_does_not_answer_in_time() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    origin = "http://slow.example:80"
    client = Client(EgressPolicy(origins=frozenset({origin}), http_allowed=True), resolver=never)
    found, reason = await stage(client, origin, connect_timeout_ns=20_000_000)
    assert (found, "timed out" in reason) == (Stage.RESOLVE, True)


async def test_a_port_that_refuses(unused_tcp_port: int) -> None:
    origin = f"http://127.0.0.1:{unused_tcp_port}"
    found, reason = await stage(client_for(origin, Answers()), origin)
    assert (found, "refused" in reason) == (Stage.CONNECT, True)


@contextmanager
def silent(host: str, port: int = 0) -> Iterator[int]:
    """A listening socket whose queue is full: it answers no handshake."""
    with socket.create_server((host, port), backlog=0) as full, ExitStack() as fillers:
        for _ in range(4):
            filler = fillers.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        yield full.getsockname()[1]


async def test_a_host_that_does_not_answer_in_time() -> None:
    with silent("127.0.0.1") as port:
        origin = f"http://127.0.0.1:{port}"
        found, reason = await stage(client_for(origin, Answers()), origin, connect_timeout_ns=100_000_000)
        assert (found, "timed out" in reason) == (Stage.CONNECT, True)


async def test_an_address_that_is_silent_leaves_time_for_the_next() -> None:
    networks: tuple[Network, ...] = (ip_network("127.0.0.0/8"),)
    async with serving(answer_all) as server:
        with silent("127.0.0.9", server.port):
            origin = f"http://api.example.com:{server.port}"
            client = client_for(origin, Answers(["127.0.0.9", "127.0.0.1"]), networks)
            sent = await send(client, asking(origin), connect_timeout_ns=400_000_000)
            await client.close()
        assert isinstance(sent, Replied)


@pytest.mark.parametrize(
    "origin", ["http://127.0.0.1:9", "http://[::1]:9", "http://169.254.169.254", "http://[::ffff:127.0.0.1]"]
)
async def test_an_address_as_host_is_checked_as_well(origin: str) -> None:
    assert (await stage(client_for(origin, Answers(), ()), origin))[0] is Stage.EGRESS


@pytest.mark.parametrize("origin", ["http://other.example", "http://api.example:81"])
async def test_an_undeclared_origin_is_refused_before_its_name_is_asked_for(origin: str) -> None:
    answers = Answers(["93.184.216.34"])
    client = client_for("http://api.example", answers)
    assert (await stage(client, origin))[0] is Stage.EGRESS
    assert not answers.asked


async def test_http_needs_a_setting() -> None:
    origin = "http://127.0.0.1:9"
    client = Client(EgressPolicy(origins=frozenset({origin}), private_networks=LOOPBACK))
    assert (await stage(client, origin))[0] is Stage.EGRESS


async def test_the_system_resolver_answers_with_addresses() -> None:
    assert "127.0.0.1" in await system_resolver("localhost", 80)

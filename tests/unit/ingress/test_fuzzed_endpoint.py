"""Whatever requests and connections are made of: one answer, one count, no exception, nothing believed unproven."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.ingress.deliveries import opened, webhook
from uvicorn.server import ServerState

from doonce.app.web.connection import Config, Connection
from doonce.ingress.endpoint import HEAD_BYTES_MAX, IngressEndpoint, path_of
from doonce.ingress.model import Delivery, Verified
from doonce.ingress.receipts import Fate, Receipt, RouteKey
from doonce.ingress.service import IngressSettings, OpenRoute

KEY = RouteKey("acme", "main", "shop.events", "event")
PATH = path_of(KEY).encode()
ROUTE = OpenRoute(
    KEY,
    "sha256:" + "0" * 64,
    webhook("github", "event"),
    opened("github", "event", "a secret", url=None),
    ("whs",),
)
SHORT = settings(max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])


class Remembering:
    """An ingress without a database: one route, and what it was told."""

    def __init__(self) -> None:
        self.settings = IngressSettings(read_seconds=0.05)
        self.away: Counter[str] = Counter()
        self.believed: list[Delivery] = []

    async def route(self, key: RouteKey) -> OpenRoute | None:
        """The only one."""
        await asyncio.sleep(0)
        return self.known(key)

    def known(self, key: RouteKey) -> OpenRoute | None:
        """The only one."""
        return ROUTE if key == KEY else None

    def turned_away(self, route: object, reason: str, **_: Any) -> None:
        """Count."""
        self.away[reason] += 1

    async def receive(self, route: OpenRoute, delivery: Delivery, verified: Verified) -> Receipt:
        """Take."""
        self.believed.append(delivery)
        return Receipt("ing", Fate.RECEIVED, 1)


def signed(body: bytes) -> bytes:
    """What the provider would write."""
    return b"sha256=" + hmac.digest(b"a secret", body, "sha256").hex().encode()


# --- requests as ASGI has them ------------------------------------------------------------------------------------

paths = st.one_of(
    st.just(PATH),
    st.just(PATH),
    st.lists(st.sampled_from([b"/", b"/in", b"acme", b"main", b"%2f", b"%00", b"%", b"..", b"%ff"])).map(
        b"".join
    ),
    st.binary(max_size=40),
)
names = st.sampled_from(
    [
        b"x-hub-signature-256",
        b"x-github-delivery",
        b"content-length",
        b"content-encoding",
        b"transfer-encoding",
    ]
)
values = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([b"gzip", b"identity", b"chunked", b"9" * 5_000, b"-1", b"\xff", b"x" * 20_000, b"0"]),
)
pieces = st.lists(st.binary(max_size=200), max_size=5)


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    """A scope, the messages of its body, and the body; now and then honest."""
    body = b"".join(sent := draw(pieces))
    headers = draw(st.lists(st.tuples(names, values), max_size=4))
    if draw(st.booleans()):
        headers.append((b"x-hub-signature-256", signed(body)))
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in sent]
    messages.append(
        draw(
            st.sampled_from(
                [{"type": "http.request"}, {"type": "http.disconnect"}, {"type": "nothing comes"}]
            )
        )
    )
    path = draw(paths)
    scope = {
        "type": "http", "method": draw(st.sampled_from(["POST", "POST", "POST", "GET", "ÿ"])), "headers": headers,
        "path": path.decode("latin-1"), "raw_path": path, "query_string": draw(st.binary(max_size=20)),
    }  # fmt: skip
    return scope, messages, body


@SHORT
@given(requests())
def test_a_request_has_one_answer_and_one_count(
    request: tuple[dict[str, Any], list[dict[str, Any]], bytes],
) -> None:
    scope, messages, body = request
    ingress, sent = Remembering(), []

    async def receive() -> Any:
        message = messages.pop(0)
        if message["type"] == "nothing comes":
            await asyncio.Event().wait()
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(IngressEndpoint(ingress)(scope, receive, send))  # type: ignore[arg-type]  # all that it uses
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] in {200, 400, 401, 404, 405, 408, 413, 415, 431}
    assert sum(ingress.away.values()) + len(ingress.believed) == 1
    assert "internal" not in ingress.away
    for delivery in ingress.believed:
        assert delivery.body == body
        assert dict(delivery.headers)[b"x-hub-signature-256"] == signed(body)
        assert sum(len(name) + len(value) for name, value in delivery.headers) <= HEAD_BYTES_MAX


# --- connections --------------------------------------------------------------------------------------------------


class Wire(asyncio.Transport):
    """The other end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.said = b""
        self.closed = False

    def write(self, data: Any) -> None:
        """Keep it."""
        assert not self.closed, "nothing is said after the end"
        self.said += data

    def close(self) -> None:
        """End it."""
        self.closed = True

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self.closed

    def pause_reading(self) -> None:
        """Nothing to pause."""

    def resume_reading(self) -> None:
        """Nothing to resume."""


HONEST = b"POST %s HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: %s\r\nContent-Length: 3\r\n\r\nabc" % (
    PATH,
    signed(b"abc"),
)
HEAD = b"POST %s HTTP/1.1\r\nHost: x\r\nX-Hub-Signature-256: %s\r\n" % (PATH, signed(b"abc"))
openings = st.sampled_from(
    [
        b"", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", HEAD + b"Content-Length: 50\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n",
        b"POST /none HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n",
    ]
)  # fmt: skip
parts = st.one_of(
    st.just(HONEST),
    st.sampled_from(
        [
            b"POST %s HTTP/1.1\r\n" % PATH, b"GET / HTTP/1.0\r\n", b"Host: x\r\n", b"\r\n", b"\r\n\r\n", b"\n", b"abc",
            b"Content-Length: 3\r\n", b"Content-Length: 99999\r\n", b"Content-Length: x\r\n", b"Connection: close\r\n",
            b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"3\r\nabc\r\n", b"0\r\n\r\n", b"zz\r\n",
            b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\nConnection: upgrade\r\n", b"fffff\r\n" + b"x" * 9_000,
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"X: " + b"y" * 17_000 + b"\r\n", b" folded\r\n", b"\x00", b"\xff\xfe",
        ]
    ),
    st.binary(max_size=30),
)  # fmt: skip


@pytest.fixture(scope="module")
def complaints() -> Iterator[list[str]]:
    """What uvicorn and asyncio log."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    handler = Keep()
    logging.getLogger().addHandler(handler)
    yield lines
    logging.getLogger().removeHandler(handler)


@SHORT
@given(
    openings,
    st.lists(parts, min_size=1, max_size=8),
    st.lists(st.integers(1, 400), min_size=1, max_size=6),
    st.booleans(),
)
def test_a_connection_survives_any_bytes_in_any_pieces(
    complaints: list[str], opening: bytes, sent: list[bytes], sizes: list[int], leaves: bool
) -> None:
    raw, ingress, wire, refused = opening + b"".join(sent), Remembering(), Wire(), list[str]()

    async def run() -> None:
        config = Config(
            IngressEndpoint(ingress),  # type: ignore[arg-type]  # all that it uses
            head_seconds=0.01, connections_max=10, turned_away=refused.append, log_config=None, lifespan="off",
            ws="none", log_level="error", access_log=False, h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        )  # fmt: skip
        config.load()
        state = ServerState()
        connection = Connection(config, state, {})
        connection.connection_made(wire)
        position = number = 0
        while position < len(raw) and not wire.closed:
            size = sizes[number % len(sizes)]
            connection.data_received(raw[position : position + size])
            position, number = position + size, number + 1
            for _ in range(4):  # so that an answer may come before the next piece
                await asyncio.sleep(0)
        if not leaves and not state.tasks and not wire.closed:
            async with asyncio.timeout(5):
                while not wire.closed and connection.timeout_keep_alive_task is None and not state.tasks:
                    await asyncio.sleep(0.002)
        connection.connection_lost(None)
        if state.tasks:
            await asyncio.wait(list(state.tasks), timeout=5)
        assert not state.tasks, "a request outlives its connection"

    before = len(complaints)
    asyncio.run(run())
    assert complaints[before:] == []
    assert len(refused) <= 1
    assert wire.said.count(b"HTTP/1.1 200") == len(ingress.believed) or leaves or wire.closed
    assert {delivery.body for delivery in ingress.believed} <= {b"abc"}

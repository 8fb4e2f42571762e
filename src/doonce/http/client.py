"""The outbound client: one request goes out at most once, and what is not known is said to be unknown.

It has no retry, no redirect, no cookie, no proxy, no cache and no header of its own beyond Host and
Content-Length. Resending is not switched off: there is no code that could do it. A send holds one
connection, asks the gate once, and writes the whole request in the same step in which it checked that it
still may (PROTOCOL D1, D3, D4).
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import assert_never

from doonce.base.secrets import Secret
from doonce.http.connection import Connection
from doonce.http.dial import Dialer, Resolver, system_resolver
from doonce.http.egress import EgressPolicy
from doonce.http.model import (
    Bounds,
    Gate,
    Go,
    NotSent,
    Replied,
    Request,
    Sent,
    Stage,
    Stop,
    Unanswered,
    boottime_ns,
)
from doonce.http.origins import Origin, parse_origin
from doonce.http.pool import Pool
from doonce.http.reply import ReplyReader
from doonce.http.serialize import serialize

_CLOSE_TIMEOUT_S = 3.0
_CONNECT_TIMEOUT_NS = 5_000_000_000
_DEFAULT_BOUNDS = Bounds()


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Bounds of one client.

    `connections_per_origin_max`: as many calls to one origin are in flight.
    `connections_max`: all origins together; keep it well below the limit of open files.
    `send_window_ns`: the longest that a connection may have been quiet before a first byte, its wait for the
    gate included; below the idle limit of common servers (5 s), so that a request never meets their close.
    `idle_max_ns`: how much of that may be spent unused in the pool; the rest is left for the gate.
    """

    connections_per_origin_max: int = 128
    connections_max: int = 512
    send_window_ns: int = 4_500_000_000
    idle_max_ns: int = 2_500_000_000


class Client:
    """Sends requests within an egress policy. One per process and event loop, for any number of tasks."""

    def __init__(
        self,
        policy: EgressPolicy,
        settings: ClientSettings | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        resolver: Resolver = system_resolver,
        clock_ns: Callable[[], int] = boottime_ns,
    ) -> None:
        self._policy = policy
        self._settings = settings if settings is not None else ClientSettings()
        self._clock_ns = clock_ns
        dialer = Dialer(policy, tls=tls, resolver=resolver, clock_ns=clock_ns)
        self._pool = Pool(
            dialer,
            per_origin_max=self._settings.connections_per_origin_max,
            total_max=self._settings.connections_max,
            idle_max_ns=self._settings.idle_max_ns,
            clock_ns=clock_ns,
        )

    async def send(
        self,
        request: Request,
        *,
        secret_headers: Mapping[str, Secret],
        gate: Gate,
        connect_timeout_ns: int = _CONNECT_TIMEOUT_NS,
        bounds: Bounds = _DEFAULT_BOUNDS,
        declared_origins: Iterable[str] | None = None,
    ) -> Sent:
        """Send `request` at most once and return what is known of it; never raises for what the net does.

        NotSent is proof that no byte left. Unanswered, or a Replied that is not complete, is all that is
        known once a byte may have. Raises Invalid, before anything is done, for a request that cannot be
        written. An exception of the gate passes through; nothing was sent. Cancelling it after the gate
        resets the connection: the caller then knows nothing.

        `declared_origins` are those of the request's own pack; without it the policy's are used.
        """
        origin = parse_origin(request.origin)
        raw = serialize(request, origin, secret_headers)
        if refusal := self._policy.refusal(origin, declared_origins):
            return NotSent(Stage.EGRESS, refusal)
        held = await self._hold(origin, connect_timeout_ns)
        if isinstance(held, NotSent):
            return held
        try:
            permit = await gate()
        except BaseException:
            self._pool.give_back(held)
            raise
        match permit:
            case Stop(reason):
                self._pool.give_back(held)
                return NotSent(Stage.GATE, reason)
            case Go():
                return await self._exchange(held, raw, ReplyReader(bounds, method=request.method), permit)
            case _:
                assert_never(permit)

    async def close(self) -> None:
        """Close every connection. A send in flight ends as Unanswered, a later one as NotSent."""
        await self._pool.close(_CLOSE_TIMEOUT_S)

    async def _hold(self, origin: Origin, connect_timeout_ns: int) -> Connection | NotSent:
        if self._pool.closed:
            return NotSent(Stage.POOL, "the client is closed")
        connection = self._pool.take(origin, self._clock_ns())
        if connection is not None:
            return connection
        return await self._pool.acquire(origin, connect_timeout_ns / 1e9)

    async def _exchange(
        self, connection: Connection, raw: Secret, reply: ReplyReader, permit: Go
    ) -> Replied | NotSent | Unanswered:
        """From the gate's consent on. No await stands between the checks and the first byte."""
        if not connection.still_open():
            connection.abort()
            return NotSent(Stage.CLOSED, "the server had closed the connection, or spoken on it unasked")
        now_ns = self._clock_ns()
        if now_ns > min(permit.send_by_ns, permit.abort_at_ns):
            connection.close_idle()
            return NotSent(Stage.WINDOW, "the time to send by has passed")
        if now_ns - connection.quiet_since_ns > self._settings.send_window_ns:
            connection.close_idle()
            return NotSent(Stage.WINDOW, "the connection was quiet for longer than the send window")
        done = connection.exchange(raw.reveal_bytes(), reply, permit.abort_at_ns, now_ns)
        try:
            sent = await done
        except asyncio.CancelledError:
            connection.abort()
            raise
        self._pool.give_back(connection)
        return sent

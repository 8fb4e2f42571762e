"""Opening a connection: resolve once, check, connect to exactly the checked address, shake hands."""

import asyncio
import contextlib
import ipaddress
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from doonce.http.connection import Connection, abortive
from doonce.http.egress import Address, EgressPolicy
from doonce.http.model import NotSent, Stage
from doonce.http.origins import Origin

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses as text, best first; raises OSError when there are none."""

ADDRESSES_TRIED_MAX: Final = 6
"""More addresses than this cost more of the connect time than they add to the chance."""

_TLS_SHUTDOWN_S: Final = 2.0
"""How long an idle connection being closed waits for the peer's close notice."""


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The system's name service, in a thread of the loop's executor."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def default_tls() -> ssl.SSLContext:
    """The system's authorities, host names checked, TLS 1.2 at least, HTTP/1.1 only."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class Dialer:
    """Opens connections. Every failure here is before the first byte, so each is a NotSent."""

    def __init__(
        self,
        policy: EgressPolicy,
        *,
        tls: ssl.SSLContext | None,
        resolver: Resolver,
        clock_ns: Callable[[], int],
    ) -> None:
        self._policy = policy
        self._tls = tls
        self._resolver = resolver
        self._clock_ns = clock_ns

    async def dial(
        self, origin: Origin, timeout_s: float, on_lost: Callable[[Connection], None]
    ) -> Connection | NotSent:
        """A connection with TCP and TLS up within `timeout_s`, or why there is none."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline_s):
                addresses = await self._addresses(origin)
        except (OSError, UnicodeError, ValueError) as error:
            return NotSent(Stage.RESOLVE, f"{origin.host} cannot be resolved: {_kind(error)}")
        accepted = [address for address in addresses if self._policy.accepts(address)]
        if not accepted:
            return NotSent(Stage.EGRESS, f"{origin.host} has no address that the settings allow")
        connected = await self._connect(origin, accepted[:ADDRESSES_TRIED_MAX], deadline_s)
        if isinstance(connected, NotSent):
            return connected
        return await self._shake_hands(origin, connected, deadline_s, on_lost)

    async def _addresses(self, origin: Origin) -> list[Address]:
        if (literal := origin.address) is not None:
            return [literal]
        return [ipaddress.ip_address(text) for text in await self._resolver(origin.host, origin.port)]

    async def _connect(
        self, origin: Origin, addresses: list[Address], deadline_s: float
    ) -> socket.socket | NotSent:
        """The first address that answers; each gets an equal share of the time that is left."""
        loop = asyncio.get_running_loop()
        failure = "no time was left"
        for position, address in enumerate(addresses):
            share_s = (deadline_s - loop.time()) / (len(addresses) - position)
            if share_s <= 0:
                break
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            sock = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                abortive(sock)
                async with asyncio.timeout(share_s):
                    await loop.sock_connect(sock, (str(address), origin.port))
                return sock
            except OSError as error:
                sock.close()
                failure = _kind(error)
            except BaseException:
                sock.close()
                raise
        return NotSent(Stage.CONNECT, f"{origin} cannot be connected: {failure}")

    async def _shake_hands(
        self, origin: Origin, sock: socket.socket, deadline_s: float, on_lost: Callable[[Connection], None]
    ) -> Connection | NotSent:
        """Hand the socket to the loop and, for https, complete the handshake under the origin's name."""
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(origin, sock, clock_ns=self._clock_ns, on_lost=on_lost)

        secured = origin.scheme == "https"
        try:
            async with asyncio.timeout_at(deadline_s):
                if secured:
                    _, opened = await loop.create_connection(
                        connection,
                        sock=sock,
                        ssl=self._context(),
                        server_hostname=origin.host,
                        ssl_shutdown_timeout=_TLS_SHUTDOWN_S,
                    )
                else:
                    _, opened = await loop.create_connection(connection, sock=sock)
        except (OSError, ssl.CertificateError) as error:
            _close(sock)
            stage = Stage.TLS if secured else Stage.CONNECT
            return NotSent(stage, f"{origin} refused or broke the handshake: {_kind(error)}")
        except BaseException:
            _close(sock)
            raise
        return opened

    def _context(self) -> ssl.SSLContext:
        """Made at the first use: loading the system's authorities takes tens of milliseconds."""
        if self._tls is None:
            self._tls = default_tls()
        return self._tls


def _close(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.close()


def _kind(error: BaseException) -> str:
    """What went wrong in the system's or the TLS library's own fixed words."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return "timed out"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or type(error).__name__}"
    if isinstance(error, socket.gaierror):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__

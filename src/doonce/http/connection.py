"""One connection, one exchange at a time, and an end that takes unsent bytes with it (PROTOCOL D3)."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from typing import Final, cast

from doonce.base.errors import Internal
from doonce.http.model import Replied, Unanswered
from doonce.http.origins import Origin
from doonce.http.reply import ReplyReader

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_LINGER_ON_CLOSE: Final = struct.pack("ii", 0, 0)

_DEADLINE_TICK_NS: Final = 1_000_000_000
"""Timers of the loop stand still while the machine is suspended: the deadline is looked at this often."""

_INT_MAX: Final = 2**31 - 1


def abortive(sock: socket.socket) -> None:
    """From now on every close of `sock`, also by the kernel when the process dies, is a reset.

    A reset discards what was written and not yet taken by the peer; a plain close delivers it.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


class Connection(asyncio.Protocol):
    """A held or pooled connection; `quiet_since_ns` is when it was opened or last read to the end of a reply.

    It is `usable` until anything at all happened on it that was not a complete exchange: the peer closed,
    or spoke unasked (a second reply, a time-out notice), or an exchange ended in another way. What HTTP/1.1
    leaves open: an unasked reply that arrives when the next request is already on its way looks like its
    answer. Only evidence in the reply itself, which the pack declares, tells them apart.
    """

    __slots__ = (
        "_abort_at_ns",
        "_clock_ns",
        "_done",
        "_on_lost",
        "_reply",
        "_sock",
        "_spoiled",
        "_timer",
        "_transport",
        "origin",
        "quiet_since_ns",
        "tls",
    )

    def __init__(
        self,
        origin: Origin,
        sock: socket.socket,
        *,
        clock_ns: Callable[[], int],
        on_lost: Callable[["Connection"], None],
    ) -> None:
        self.origin = origin
        self.tls = origin.scheme == "https"
        self.quiet_since_ns = clock_ns()
        self._sock = sock
        self._clock_ns = clock_ns
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._reply: ReplyReader | None = None
        self._done: asyncio.Future[Replied | Unanswered] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._abort_at_ns = 0
        self._spoiled = False

    # -- state -------------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """As far as the loop has looked."""
        transport = self._transport
        return transport is not None and not self._spoiled and not transport.is_closing()

    def still_open(self) -> bool:
        """As far as the kernel knows, this instant: also what the loop has not come to read yet.

        Over TLS, waiting bytes prove nothing (session tickets come late); an end of stream does.
        """
        if not self.usable:
            return False
        try:
            peeked = self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return self.tls and peeked != b""

    # -- one exchange ------------------------------------------------------------------------------------

    def exchange(
        self, request: bytes, reply: ReplyReader, abort_at_ns: int, now_ns: int
    ) -> asyncio.Future[Replied | Unanswered]:
        """Write `request` now, within this call; the future gets what became of it, and never raises."""
        transport = self._transport
        if transport is None or self._reply is not None or self._spoiled:
            raise Internal("a connection was used for a second exchange at once, or after its end")
        loop = asyncio.get_running_loop()
        self._done = done = loop.create_future()
        self._reply = reply
        self._abort_at_ns = abort_at_ns
        # the kernel gives up by itself, by then, on bytes that the peer does not take: this process may be
        # stopped or gone when the deadline comes
        left_ms = max(1, (abort_at_ns - now_ns) // 1_000_000)
        with contextlib.suppress(OSError):  # reset meanwhile: the loop is about to say so
            self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, min(left_ms, _INT_MAX))
        transport.write(request)
        self._timer = loop.call_later(
            min(abort_at_ns - now_ns, _DEADLINE_TICK_NS) / 1e9, self._look_at_deadline
        )
        return done

    def _look_at_deadline(self) -> None:
        left_ns = self._abort_at_ns - self._clock_ns()
        if left_ns > 0:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(min(left_ns, _DEADLINE_TICK_NS) / 1e9, self._look_at_deadline)
            return
        self._end("the deadline passed", clean=False)

    def _end(self, reason: str, *, clean: bool) -> None:
        reply = self._reply
        if reply is None:
            self.abort()
            return
        reply.end(reason, clean=clean)
        self._settle(reply)

    def _settle(self, reply: ReplyReader) -> None:
        """The exchange is over; whatever may still follow on the connection belongs to nobody."""
        transport, done, timer = self._transport, self._done, self._timer
        self._reply = self._done = self._timer = None
        if timer is not None:
            timer.cancel()
        if not reply.reusable or transport is None or transport.get_write_buffer_size():
            self.abort()
        self.quiet_since_ns = self._clock_ns()
        if done is not None and not done.done():
            done.set_result(reply.outcome())

    # -- ends --------------------------------------------------------------------------------------------

    def abort(self) -> None:
        """Close by reset, dropping every byte that the kernel still holds. Safe to repeat."""
        self._spoiled = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            self._transport.abort()

    def close_idle(self) -> None:
        """Close an unused connection in the orderly way: nothing of ours is under way on it."""
        self._spoiled = True
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        with contextlib.suppress(OSError):  # gone meanwhile
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ON_CLOSE)
        transport.close()

    # -- called by the loop ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of the abstract one
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        reply = self._reply
        if reply is None:
            self.abort()
        elif reply.feed(data):
            self._settle(reply)

    def eof_received(self) -> None:
        self._end("the server closed the connection", clean=self._closed_by_server())

    def _closed_by_server(self) -> bool:
        """Over TLS anyone on the path can end the stream; only a close notice is the server's own word."""
        if not self.tls or self._transport is None:
            return True
        secured = self._transport.get_extra_info("ssl_object")
        try:
            # after a notice this is the end of the stream for ever; without one it asks for more bytes
            return bool(secured.read(1) == b"")
        except ssl.SSLError:
            return False

    def connection_lost(self, error: Exception | None) -> None:
        self._spoiled = True
        self._transport = None
        if self._reply is not None:
            cause = (
                "the connection was lost" if error is None else f"the connection was lost: {_named(error)}"
            )
            self._end(cause, clean=False)
        self._on_lost(self)


def _named(error: Exception) -> str:
    """The kind of an error without its text, which may quote what was sent or received."""
    return type(error).__name__

"""One HTTP connection, bounded in time and in number: uvicorn's own, which bounds neither.

    waiting for a head ── in time ──▶ busy ── answered ──▶ kept for the next head, or, where the body goes on, closed
          └── `head_seconds` are over, or the room is needed: closed, counted

What a stranger sends before there is a request costs it a short answer and us a count, never a line in the log.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LINGER_SECONDS: Final = 1.0
"""How long the rest of a body is still read and dropped after its answer: a reset would take the answer back."""

_ANSWERABLE: Final = (h11.IDLE, h11.SEND_RESPONSE)


class Config(uvicorn.Config):
    """uvicorn's, with bounds of connections, and where what never became a request is counted."""

    def __init__(
        self,
        app: Any,
        *,
        head_seconds: float,
        connections_max: int,
        turned_away: Callable[[str], None],
        **rest: Any,
    ) -> None:
        super().__init__(app, http=Connection, limit_concurrency=None, **rest)
        self.head_seconds = head_seconds
        self.connections_max = connections_max
        self.turned_away = turned_away


class _Awaited(Enum):
    """What a connection is given a bounded time for."""

    HEAD = "the head of a request"
    REST = "the rest of a body, after its answer"


class Connection(H11Protocol):
    """A connection that nobody can hold for ever by sending slowly, too much, or nothing."""

    config: Config
    _awaited: _Awaited | None = None
    _deadline: asyncio.TimerHandle | None = None
    waits_since_s: float = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for a head; beyond `connections_max` the one that has waited longest makes room, or this one goes."""
        super().connection_made(transport)
        self.waits_since_s = self.loop.time()
        if len(self.connections) > self.config.connections_max:
            waiting = [one for one in self.connections if isinstance(one, Connection) and one.waits()]
            longest = min(waiting, key=lambda one: one.waits_since_s, default=self)
            longest.make_room()
        self._mind()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._await(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        self._mind()

    def on_response_complete(self) -> None:
        """Go on to the next request, once the body of this one has ended."""
        self.waits_since_s = self.loop.time()
        super().on_response_complete()
        self._mind()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, with the status that it has for this, if anything can still be said."""
        status = getattr(sys.exc_info()[1], "error_status_hint", 400)
        self._refuse(status, "head_long" if status == 431 else "malformed")

    def make_room(self) -> None:
        """Close for the sake of a new one."""
        self._close("connections")

    def waits(self) -> bool:
        """Whether no request is under way here, so that closing it breaks none."""
        return not self._busy() and not self.transport.is_closing()

    def _should_upgrade(self) -> bool:
        """Never: there is nothing to upgrade to. The request is answered as it is."""
        return False

    def _busy(self) -> bool:
        cycle = getattr(self, "cycle", None)
        return cycle is not None and not cycle.response_complete

    def _mind(self) -> None:
        """Bound the time of what is waited for now. An unused connection's own time is uvicorn's to count."""
        if self._busy() or self.transport.is_closing():
            self._await(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._await(_Awaited.REST)
        else:
            self._await(_Awaited.HEAD if self.timeout_keep_alive_task is None else None)

    def _await(self, awaited: _Awaited | None) -> None:
        if awaited is self._awaited:
            return
        self._awaited = awaited
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if awaited is not None:
            seconds = self.config.head_seconds if awaited is _Awaited.HEAD else LINGER_SECONDS
            self.waits_since_s = self.loop.time()
            self._deadline = self.loop.call_later(seconds, self._late, awaited)

    def _late(self, awaited: _Awaited) -> None:
        if awaited is _Awaited.REST:
            self.transport.close()  # its request is answered, and counted, already
        elif self.conn.trailing_data[0]:
            self._refuse(408, "head_deadline")
        else:
            self._close("head_deadline")

    def _refuse(self, status: int, reason: str) -> None:
        """Answer, where no answer has begun, and close."""
        if self.conn.our_state in _ANSWERABLE:
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            for event in (h11.Response(status_code=status, headers=headers), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self._close(reason)

    def _close(self, reason: str) -> None:
        """Close; a request under way learns that its sender is gone, and counts itself."""
        self._await(None)
        if self._busy():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        else:
            self.config.turned_away(reason)
        self.transport.close()

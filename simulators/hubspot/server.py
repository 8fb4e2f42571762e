"""The socket side: one protocol object per connection, on the raw transport so that faults are real ones.

A request is recorded before anything is answered, so whoever has seen an answer finds it in the ledger; one
that breaks off is recorded with what came of it.
"""

import asyncio
import socket
import struct
import time
from typing import Final, cast

import httptools

from simulators.hubspot import responses
from simulators.hubspot.contacts import Answer
from simulators.hubspot.control import CONTROL_PREFIX, Control
from simulators.hubspot.faults import Fault, Rule
from simulators.hubspot.ledger import Arrival
from simulators.hubspot.replies import Player
from simulators.hubspot.service import Service

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)
_BODY_BYTES_MAX: Final = 16 * 1_048_576


class Connection(asyncio.Protocol):
    """One accepted connection: requests one after the other, each recorded and answered or mistreated."""

    def __init__(
        self, service: Service, control: Control, peers: set["Connection"], *, back_door: bool
    ) -> None:
        self._service = service
        self._control = control
        self._peers = peers
        self._back_door = back_door
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser = httptools.HttpRequestParser(self)
        self._on_next: Rule | None = None
        self._playing: asyncio.Task[None] | None = None
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._arrival = Arrival(self._number)
        self._url = b""
        self._authorization = ""
        self._conditions: dict[str, str] = {}
        self._received_bytes = 0
        self._is_control = False
        self._pieces: list[bytes] = []
        self._body_bytes = 0
        self._rule: Rule | None = None
        self._over = False

    # -- the transport ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._back_door:
            return
        self._service.connections += 1
        self._number = self._arrival.connection = self._service.connections
        self._peers.add(self)
        if self._service.script.take_on_accept() is not None:
            self.reset()

    def data_received(self, data: bytes) -> None:
        if not self._arrival.at_us:
            self._arrival.at_us = time.time_ns() // 1000
        self._received_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if not self._transport.is_closing():
                self._record_partial("not HTTP")
                self._transport.write(responses.whole(Answer(400), "Connection: close\r\n"))
                self._transport.close()

    def eof_received(self) -> None:
        self._record_partial("")

    def connection_lost(self, error: Exception | None) -> None:
        self._record_partial("")
        self._peers.discard(self)
        if self._playing is not None:
            self._playing.cancel()

    def reset(self) -> None:
        """Close by RST: whatever was not yet read by the peer is lost."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._over = True
        self._transport.abort()

    def close(self) -> None:
        """Close in the orderly way."""
        self._over = True
        self._transport.close()

    # -- the parser ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._on_next is not None:
            # what comes is not parsed: the server had decided to close before it looked
            rule, self._on_next = self._on_next, None
            self._rule = rule
            self._record_partial(rule.fault.value)
            if rule.fault is Fault.RESET_ON_NEXT:
                self.reset()
            else:
                self.close()

    def on_url(self, piece: bytes) -> None:
        self._url += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        text, lowered = value.decode("latin-1"), name.decode("latin-1").lower()
        self._arrival.headers.append((lowered, text))
        self._arrival.head_bytes += len(name) + len(value) + 4
        if lowered == "authorization":
            self._authorization = text
        elif lowered in ("if-match", "if-none-match"):
            self._conditions[lowered] = text

    def on_headers_complete(self) -> None:
        if self._over:
            return
        arrival = self._arrival
        arrival.method = method = self._parser.get_method().decode("ascii")
        arrival.target = target = self._url.decode("latin-1")
        arrival.head_bytes += len(method) + len(target) + 14
        if target.startswith(CONTROL_PREFIX):
            self._is_control = True
            self._peers.discard(self)
            return
        self._rule = rule = self._service.script.take(method, target)
        if rule is not None and rule.fault is Fault.RESET_BEFORE_BODY:
            self._record_partial(rule.fault.value)
            self.reset()

    def on_body(self, piece: bytes) -> None:
        if self._over:
            return
        self._pieces.append(piece)
        self._body_bytes += len(piece)
        if self._body_bytes > _BODY_BYTES_MAX:
            self._record_partial("too large")
            self.reset()
        elif self._rule is not None and self._rule.fault is Fault.RESET_DURING_BODY:
            self._pieces = [b"".join(self._pieces)[: max(1, self._body_bytes // 2)]]
            self._record_partial(self._rule.fault.value)
            self.reset()

    def on_message_complete(self) -> None:
        if self._over:
            return
        arrival, body, rule = self._arrival, b"".join(self._pieces), self._rule
        if self._is_control:
            answer = self._control.handle(arrival.method, arrival.target, body)
            self._transport.write(responses.whole(answer, ""))
        elif rule is None:
            answer = self._service.answer(
                arrival.method, arrival.target, self._authorization, body, self._conditions
            )
            self._record(body, answer, fault="")
            self._transport.write(responses.whole(answer, self._service.rate.header_lines()))
        else:
            self._mistreat(rule, body)
        if not self._over:
            self._begin()
            if not self._parser.should_keep_alive() and self._playing is None:
                self.close()

    # -- within --------------------------------------------------------------------------------------------

    def _mistreat(self, rule: Rule, body: bytes) -> None:
        arrival = self._arrival
        if rule.fault is Fault.RESET_DURING_BODY:
            # there was no body to stop in
            self._record(body, Answer(0), fault=rule.fault.value)
            self.reset()
            return
        answer = self._service.answer_with(
            rule, arrival.method, arrival.target, self._authorization, body, self._conditions
        )
        self._record(body, answer, fault=rule.fault.value)
        if rule.fault in (Fault.CLOSE_ON_NEXT, Fault.RESET_ON_NEXT):
            self._on_next = rule
        player = Player(self, self._transport, rule, answer, self._service.rate.header_lines())
        if player.at_once():
            return
        self._transport.pause_reading()
        self._playing = asyncio.get_running_loop().create_task(player.play())
        self._playing.add_done_callback(self._played)

    def _played(self, task: asyncio.Task[None]) -> None:
        self._playing = None
        if not task.cancelled() and not self._over:
            self._transport.resume_reading()

    def _record(self, body: bytes, answer: Answer, *, fault: str, complete: bool = True) -> None:
        self._service.ledger.record(
            self._arrival,
            body,
            complete=complete,
            committed=answer.committed,
            status=answer.status,
            fault=fault,
        )

    def _record_partial(self, fault: str) -> None:
        """A request that began and will not be read to its end."""
        arrival = self._arrival
        if self._over or not arrival.at_us or self._is_control:
            return
        self._over = True
        if not arrival.method:
            arrival.head_bytes = self._received_bytes
        self._record(b"".join(self._pieces), Answer(0), fault=fault, complete=False)

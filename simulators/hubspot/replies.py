"""Giving an answer under a fault: some at once, some over time, some never."""

import asyncio
import zlib
from collections.abc import Callable
from functools import cache
from typing import Final, Protocol

from simulators.hubspot import responses
from simulators.hubspot.contacts import Answer
from simulators.hubspot.faults import Fault, Rule, bomb

_GIGABYTE: Final = 1_073_741_824
_PIECE: Final = b" " * 65_536
_GZIP: Final = zlib.MAX_WBITS | 16
_SECOND: Final = Answer(200, b'{"id":"666","properties":{"jobtitle":"not yours"}}')


class Ending(Protocol):
    """How a connection can be ended."""

    def reset(self) -> None:
        """By RST."""

    def close(self) -> None:
        """By FIN, once what was written is sent."""


class Player:
    """Gives one answer as its rule says."""

    def __init__(
        self, ending: Ending, transport: asyncio.Transport, rule: Rule, answer: Answer, extra: str
    ) -> None:
        self._ending = ending
        self._transport = transport
        self._rule = rule
        self._answer = answer
        self._extra = extra

    def at_once(self) -> bool:
        """Do all that the fault asks for; False if it takes time, and `play` has to be run."""
        whole = responses.whole(self._answer, self._extra)
        filled = responses.body_or_filler(self._answer)
        write, close = self._transport.write, self._ending.close
        match self._rule.fault:
            case Fault.RESET_AFTER_BODY | Fault.COMMIT_RESET:
                self._ending.reset()
            case Fault.CLOSE_UNANSWERED | Fault.COMMIT_CLOSE:
                close()
            case Fault.HALF_HEAD:
                write(whole[:25])
                close()
            case Fault.HALF_ANSWER:
                write(responses.whole(filled, self._extra)[: -len(filled.body) // 2])
                close()
            case Fault.LENGTH_SHORT:
                write(responses.with_length(filled, len(filled.body) // 2))
            case Fault.LENGTH_LONG:
                write(responses.with_length(filled, len(filled.body) * 2))
                close()
            case Fault.INTERIM:
                write(responses.INTERIM * self._rule.count + whole)
            case Fault.CHUNK_GARBAGE:
                write(
                    responses.head(200, [("Transfer-Encoding", "chunked")])
                    + b"5\r\nhello\r\nzz\r\nnot a chunk"
                )
            case Fault.GLUED_REPLY:
                write(whole + responses.whole(_SECOND, ""))
            case Fault.UNTIL_CLOSE:
                kind = [("Content-Type", "application/json")]
                write(responses.head(filled.status, kind, version="1.0") + filled.body)
                close()
            case Fault.CLOSE_IDLE:
                write(whole)
                close()
            case Fault.GZIP_BOMB:
                write(_compressed("gzip", _GZIP))
            case Fault.DEFLATE_BOMB:
                write(_compressed("deflate", zlib.MAX_WBITS))
            case Fault.STALL | Fault.SLOW_DRIP | Fault.INTERIM_FLOOD | Fault.GIGABYTE | Fault.LATE_REPLY:
                return False
            case _:
                write(whole)
        return True

    async def play(self) -> None:
        """The rest of the menu; cancelled when the connection is lost."""
        whole = responses.whole(self._answer, self._extra)
        delay_s = self._rule.delay_ms / 1000
        match self._rule.fault:
            case Fault.SLOW_DRIP:
                for position in range(len(whole)):
                    self._transport.write(whole[position : position + 1])
                    await asyncio.sleep(delay_s)
            case Fault.LATE_REPLY:
                self._transport.write(whole)
                await asyncio.sleep(delay_s)
                self._transport.write(responses.whole(_SECOND, ""))
            case Fault.INTERIM_FLOOD:
                await self._pour(lambda: responses.INTERIM * 1000, None)
            case Fault.GIGABYTE:
                length = [("Content-Type", "application/json"), ("Content-Length", str(_GIGABYTE))]
                self._transport.write(responses.head(200, length))
                await self._pour(lambda: _PIECE, _GIGABYTE // len(_PIECE))
            case _:
                await asyncio.Event().wait()

    async def _pour(self, piece: Callable[[], bytes], count: int | None) -> None:
        """Write as fast as the peer takes it, never holding more than a little."""
        while (count is None or count > 0) and not self._transport.is_closing():
            if self._transport.get_write_buffer_size() > 4 * len(_PIECE):
                await asyncio.sleep(0.001)
                continue
            self._transport.write(piece())
            count = None if count is None else count - 1
            await asyncio.sleep(0)


@cache
def _compressed(coding: str, wbits: int) -> bytes:
    raw = bomb(wbits)
    headers = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", coding),
        ("Content-Length", str(len(raw))),
    ]
    return responses.head(200, headers) + raw

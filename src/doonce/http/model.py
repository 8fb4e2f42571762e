"""What a send asks for and what can be known afterwards (PROTOCOL D1, D3, D4)."""

import enum
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from doonce.base.limits import LIMITS


@dataclass(frozen=True, slots=True)
class Request:
    """One request, whole: `origin` is `https://host[:port]`, `target` is path and query as sent."""

    method: str
    origin: str
    target: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Go:
    """The mark is durable: the first byte may leave until `send_by_ns`, and no byte after `abort_at_ns`.

    Both are CLOCK_BOOTTIME nanoseconds, which also count while the machine is suspended (PROTOCOL C4).
    """

    send_by_ns: int
    abort_at_ns: int


@dataclass(frozen=True, slots=True)
class Stop:
    """The caller forbids the send; nothing has left and nothing will."""

    reason: str


Gate = Callable[[], Awaitable[Go | Stop]]
"""Awaited exactly once per send, with the connection held (TCP and TLS up) and before any byte."""


class Stage(str, enum.Enum):
    """How far a send came that provably let no request byte out."""

    RESOLVE = "resolve"
    CONNECT = "connect"
    TLS = "tls"
    POOL = "pool"
    EGRESS = "egress"
    GATE = "gate"
    WINDOW = "window"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of an answer is read. Beyond a bound the connection is aborted, the reply incomplete.

    `head_bytes_max` counts every head of one exchange: interim (1xx) heads, the final one, trailers.
    `body_bytes_max` counts the body as received, `decompressed_bytes_max` as handed to the caller.
    """

    head_bytes_max: int = LIMITS.response_head_bytes_max
    body_bytes_max: int = LIMITS.response_bytes_max
    decompressed_bytes_max: int = LIMITS.response_bytes_max
    interim_replies_max: int = 32


@dataclass(frozen=True, slots=True)
class Replied:
    """A status was read. `complete` only if the whole message was, well-formed and within its bounds.

    `headers` has lower-case names, in order; when not complete, those read so far. `body` is decompressed.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)
    complete: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NotSent:
    """Proven: no byte of the request left this process (PROTOCOL D4)."""

    stage: Stage
    reason: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A byte may have left, and no status came back: nobody knows."""

    reason: str


Sent = Replied | NotSent | Unanswered


def boottime_ns() -> int:
    """CLOCK_BOOTTIME now: monotonic, and running in suspend."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

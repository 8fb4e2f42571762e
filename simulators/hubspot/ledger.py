"""The ledger: one line for every request of which a byte arrived, in the order in which they began to.

Lines are appended to a file, once per turn of the event loop and before any reading of it; nothing is ever
rewritten. A reset is a line of its own, and hides what lies before it from readers over HTTP only.
"""

import asyncio
import base64
import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

_FLUSH_BYTES: Final = 262_144


class Arrival(msgspec.Struct):
    """A request as far as it has arrived."""

    connection: int
    at_us: int = 0
    method: str = ""
    target: str = ""
    headers: list[tuple[str, str]] = []
    head_bytes: int = 0


class Entry(msgspec.Struct):
    """One line. `complete`: the whole head and body arrived. `committed`: the effect happened.

    The body is `body` when it is UTF-8, else `body_base64`. `status` is the one that was answered or set out
    to be, 0 if none was. `connection` counts accepted connections.
    """

    seq: int
    connection: int
    at_us: int
    method: str
    target: str
    headers: list[tuple[str, str]]
    head_bytes: int
    body_bytes: int
    body_digest: str
    body: str | None
    body_base64: str | None
    complete: bool
    committed: bool
    status: int
    fault: str


class Ledger:
    """Append with `record`; read with `entries` and `stats`, which first make the file whole."""

    def __init__(self, path: Path, *, now_us: Callable[[], int]) -> None:
        self._path = path
        self._now_us = now_us
        self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        self._hidden_bytes = os.fstat(self._file).st_size
        self._encoder = msgspec.json.Encoder()
        self._pending = bytearray()
        self._flush_due = False
        self._seq = 0
        self._counts: Counter[str] = Counter()

    def record(
        self, arrival: Arrival, body: bytes, *, complete: bool, committed: bool, status: int, fault: str
    ) -> None:
        """Append one request."""
        self._seq += 1
        text, encoded = _readable(body)
        entry = Entry(
            self._seq,
            arrival.connection,
            arrival.at_us,
            arrival.method,
            arrival.target,
            arrival.headers,
            arrival.head_bytes,
            len(body),
            "sha256:" + hashlib.sha256(body).hexdigest(),
            text,
            encoded,
            complete,
            committed,
            status,
            fault,
        )
        counts = self._counts
        counts["requests"] += 1
        counts["committed"] += committed
        counts["partial"] += not complete
        counts[f"method:{arrival.method}"] += 1
        self._append(self._encoder.encode(entry))

    def entries(self, since: int = 0) -> list[dict[str, Any]]:
        """The entries since the last reset with a number above `since`."""
        self.flush()
        size = os.fstat(self._file).st_size
        raw = os.pread(self._file, size - self._hidden_bytes, self._hidden_bytes)
        lines = map(msgspec.json.decode, raw.splitlines())
        return [line for line in lines if line.get("seq", 0) > since]

    def stats(self) -> dict[str, int]:
        """Counts since the last reset: requests, committed, partial, and one per method."""
        return {"requests": 0, "committed": 0, "partial": 0} | dict(self._counts)

    def reset(self) -> None:
        """Hide everything until now from `entries` and `stats`; numbering goes on."""
        self._append(self._encoder.encode({"reset_after": self._seq, "at_us": self._now_us()}))
        self.flush()
        self._hidden_bytes = os.fstat(self._file).st_size
        self._counts.clear()

    def flush(self) -> None:
        """Everything recorded is in the file."""
        self._flush_due = False
        while self._pending:
            written = os.write(self._file, self._pending)
            del self._pending[:written]

    def close(self) -> None:
        """Flush and let go of the file."""
        self.flush()
        os.close(self._file)

    def _append(self, line: bytes) -> None:
        self._pending += line
        self._pending += b"\n"
        if len(self._pending) >= _FLUSH_BYTES:
            self.flush()
        elif not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self.flush)


def _readable(body: bytes) -> tuple[str | None, str | None]:
    try:
        return body.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(body).decode()

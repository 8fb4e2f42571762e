"""How a driver lets go of its connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final, Protocol

GOODBYE_SECONDS: Final = 2.0


class Closable(Protocol):
    """A connection to a server."""

    async def close(self) -> None:
        """Tell the server, and close."""

    def terminate(self) -> None:
        """Close without a word; nothing happens to one that is closed."""


async def close_all(connections: Sequence[Closable]) -> None:
    """Take leave of the server on every connection at once, for at most `GOODBYE_SECONDS`.

    All are closed afterwards, whatever the server answered and even if the caller is cancelled meanwhile.
    """
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await asyncio.gather(*(one.close() for one in connections), return_exceptions=True)
    finally:
        for one in connections:
            one.terminate()

"""Hints that work has arrived: an event in this process, and what other processes notify. Losing one costs a poll."""

from __future__ import annotations

import asyncio
from collections import defaultdict


class Wakeups:
    """Topics that tasks of one event loop wait on."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def wake(self, topic: str) -> None:
        """Wake whoever waits on the topic now, or the next one to wait."""
        self._events[topic].set()

    async def wait(self, topic: str, timeout_seconds: float) -> bool:
        """Wait for a hint, at most so long; tells whether one came. A hint given before the call counts."""
        event = self._events[topic]
        try:
            async with asyncio.timeout(timeout_seconds):
                await event.wait()
        except TimeoutError:
            return False
        if self._events.get(topic) is event:  # a newer hint, given since, is for the next wait
            del self._events[topic]
        return True

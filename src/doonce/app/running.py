"""The tasks of a started engine, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from doonce.work.service import Worker


@dataclass(slots=True)
class Running:
    """Workers of families, and what else goes on in the background."""

    workers: list[Worker[Any]] = field(default_factory=list)
    working: list[asyncio.Task[None]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def begin(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run something for as long as the engine does."""
        self.tasks.append(asyncio.create_task(coroutine, name=name))

    def work(self, worker: Worker[Any], name: str) -> None:
        """Have a worker claim, until it drains."""
        self.workers.append(worker)
        self.working.append(asyncio.create_task(worker.run(), name=f"worker:{name}"))

    def begin_drain(self) -> None:
        """Begin no more claims, at once; what runs goes on to its end."""
        for worker in self.workers:
            worker.begin_drain()

    async def last_claims(self) -> None:
        """Wait, after `begin_drain`, for claims that were under way: from then on nothing more is taken."""
        for worker in self.workers:
            await worker.last_claim()

    async def drained(self, timeout_seconds: float) -> None:
        """Wait, after `begin_drain`, for what the workers hold, and for no longer than allowed."""
        if self.working:
            await asyncio.wait(self.working, timeout=timeout_seconds)

    async def end(self) -> None:
        """End everything, wherever it is; wait until it has ended."""
        tasks = [*self.working, *self.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def failed(self) -> BaseException | None:
        """Why something ended although nobody asked it to."""
        for task in (*self.working, *self.tasks):
            if task.done() and not task.cancelled() and task.exception() is not None:
                return task.exception()
        return None


__all__ = ["Running"]

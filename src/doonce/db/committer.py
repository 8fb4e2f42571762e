"""The group committer: callers of one operation share transactions, and none goes on before its own row is durable.

Whatever has queued while the last flush ran goes out as one set-based transaction; alone, at once. Nothing is
weakened by it: each caller hears of its own row, after the commit (PROTOCOL G1–G3).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from doonce.base.errors import Exhausted
from doonce.db.database import Database
from doonce.db.faults import Contended, RefusedData
from doonce.db.transaction import Txn

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class FlushObserver(Protocol):
    """Where a committer reports the size of each flush."""

    def flushed(self, operation: str, rows: int) -> None: ...


@dataclass(frozen=True, slots=True)
class CommitterSettings:
    """Bounds of one committer. Full means that callers wait, never that it grows.

    `flushes_max`: flushes under way at once; two let a second batch gather while the first waits for the disk.
    """

    rows_max: int = 256
    bytes_max: int = 4_194_304
    queue_rows_max: int = 4_096
    flushes_max: int = 1


@dataclass(slots=True)
class _Queued(Generic[Item, Outcome]):
    item: Item
    key: str
    bytes: int
    done: asyncio.Future[Outcome]
    alone: bool = False


class Committer(Generic[Item, Outcome]):
    """Gathers rows of one operation into flushes.

    `operation(items)` is a transaction that returns one outcome per item, in order. `key(item)` names the row whose
    lock it takes: a flush holds one item per key and sorts by it, so that all flushes lock in one order.
    """

    def __init__(
        self,
        database: Database,
        operation: Callable[[Sequence[Item]], Txn[Sequence[Outcome]]],
        *,
        key: Callable[[Item], str],
        size: Callable[[Item], int] = lambda item: 256,
        settings: CommitterSettings | None = None,
        observer: FlushObserver | None = None,
    ) -> None:
        self._database = database
        self._operation = operation
        self._key = key
        self._size = size
        self._settings = settings or CommitterSettings()
        self._observer = observer
        self._queue: list[_Queued[Item, Outcome]] = []
        self._flushes: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._scheduled = False

    async def submit(self, item: Item) -> Outcome:
        """Wait until the item is durable and return its outcome.

        Cancelling the caller withdraws the item only while it is not yet sealed into a flush. Raises what the
        operation's transaction raises; a data error reaches its own caller alone.
        """
        size = self._size(item)
        if size > self._settings.bytes_max:
            raise Exhausted(
                f"one row of {size} bytes is over the flush limit of {self._settings.bytes_max} bytes"
            )
        while len(self._queue) >= self._settings.queue_rows_max:
            self._room.clear()
            await self._room.wait()
        queued = _Queued[Item, Outcome](
            item, self._key(item), size, asyncio.get_running_loop().create_future()
        )
        self._queue.append(queued)
        self._schedule()
        try:
            return await queued.done
        except asyncio.CancelledError:
            if queued in self._queue:
                self._queue.remove(queued)
            raise

    async def drain(self) -> None:
        """Wait until nothing is queued and no flush is under way."""
        while self._flushes or self._queue:
            if self._flushes:
                await asyncio.wait(self._flushes)
            else:
                await asyncio.sleep(0)

    def _schedule(self) -> None:
        if not self._scheduled and len(self._flushes) < self._settings.flushes_max:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        sealed = self._seal()
        if sealed:
            task = asyncio.get_running_loop().create_task(self._flush(sealed))
            self._flushes.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._flushes.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a group committer's flush failed outside its operation", "exception": error}
            )
        if self._queue:
            self._schedule()

    def _seal(self) -> list[_Queued[Item, Outcome]]:
        """Take rows in order of arrival: one per key, within the bounds, a contended one alone."""
        sealed: dict[str, _Queued[Item, Outcome]] = {}
        left: list[_Queued[Item, Outcome]] = []
        size = 0
        closed = False
        for queued in self._queue:
            if queued.done.cancelled():
                continue
            full = len(sealed) >= self._settings.rows_max or size + queued.bytes > self._settings.bytes_max
            if closed or full or queued.key in sealed or (sealed and queued.alone):
                left.append(queued)
                continue
            sealed[queued.key] = queued
            size += queued.bytes
            closed = queued.alone
        self._queue = left
        if len(left) < self._settings.queue_rows_max:
            self._room.set()
        return [sealed[key] for key in sorted(sealed)]

    async def _flush(self, sealed: list[_Queued[Item, Outcome]]) -> None:
        try:
            outcomes = await self._database.transact(self._operation, [queued.item for queued in sealed])
        except RefusedData as error:
            if len(sealed) == 1:
                _fail(sealed[0], error)
                return
            for queued in sealed:
                await self._flush([queued])
        except Contended as error:
            for queued in sealed:
                if queued.alone:
                    _fail(queued, error)
                else:
                    queued.alone = True
                    self._queue.append(queued)
        except BaseException as error:
            for queued in sealed:
                _fail(queued, error)
            if not isinstance(error, Exception):
                raise
        else:
            if self._observer is not None:
                self._observer.flushed(self._operation.__name__, len(sealed))
            for queued, outcome in zip(sealed, outcomes, strict=True):
                if not queued.done.done():
                    queued.done.set_result(outcome)


def _fail(queued: _Queued[Item, Outcome], error: BaseException) -> None:
    if not queued.done.done():
        queued.done.set_exception(error)

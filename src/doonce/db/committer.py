"""The group committer: callers of one operation share transactions, and none goes on before its own row is durable.

Whatever has queued while the last flush ran goes out as one set-based transaction; alone, at once. Nothing is
weakened by it: each caller hears of its own row, after the commit (PROTOCOL G1–G3).
"""

from __future__ import annotations

import asyncio
from collections import deque
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

    `rows_max`, `bytes_max`: of one flush; `bytes_max` also bounds one row. `queue_rows_max`, `queue_bytes_max`: of what
    waits for a flush. `flushes_max`: flushes under way at once; two let a second batch gather while the first waits for
    the disk.
    """

    rows_max: int = 256
    bytes_max: int = 4_194_304
    queue_rows_max: int = 4_096
    queue_bytes_max: int = 33_554_432
    flushes_max: int = 1


@dataclass(slots=True, eq=False)
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
        self._queue: deque[_Queued[Item, Outcome]] = deque()
        self._queue_bytes = 0
        self._entrance = asyncio.Lock()
        self._room = asyncio.Event()
        self._flushes: set[asyncio.Task[None]] = set()
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
        if self._entrance.locked() or not self._has_room(size):
            async with (
                self._entrance
            ):  # in line: a small row does not overtake a large one that waits for room
                while not self._has_room(size):
                    self._room.clear()
                    await self._room.wait()
                queued = self._enqueue(item, size)
        else:
            queued = self._enqueue(item, size)
        try:
            return await queued.done
        except asyncio.CancelledError:
            if queued in self._queue:
                self._queue.remove(queued)
                self._left_queue(size)
            raise

    async def drain(self) -> None:
        """Wait until nothing is queued and no flush is under way."""
        while self._flushes or self._queue:
            if self._flushes:
                await asyncio.wait(self._flushes)
            else:
                await asyncio.sleep(0)

    def _has_room(self, size: int) -> bool:
        settings = self._settings
        rows = len(self._queue)
        return rows == 0 or (
            rows < settings.queue_rows_max and self._queue_bytes + size <= settings.queue_bytes_max
        )

    def _enqueue(self, item: Item, size: int) -> _Queued[Item, Outcome]:
        done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        queued = _Queued(item, self._key(item), size, done)
        self._queue.append(queued)
        self._queue_bytes += size
        self._schedule()
        return queued

    def _left_queue(self, size: int) -> None:
        self._queue_bytes -= size
        self._room.set()

    def _schedule(self) -> None:
        if not self._scheduled and len(self._flushes) < self._settings.flushes_max:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._start)

    def _start(self) -> None:
        self._scheduled = False
        sealed = self._seal()
        if sealed:
            task = asyncio.get_running_loop().create_task(self._run(sealed))
            self._flushes.add(task)
            task.add_done_callback(self._finished)
            if self._queue:
                self._schedule()

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._flushes.discard(task)
        if self._queue:
            self._schedule()

    def _seal(self) -> list[_Queued[Item, Outcome]]:
        """Take rows in order of arrival: one per key, within the bounds, a contended one alone."""
        sealed: dict[str, _Queued[Item, Outcome]] = {}
        left: deque[_Queued[Item, Outcome]] = deque()
        waiting: set[str] = set()  # a later row of a key never overtakes an earlier one
        size = size_gone = 0
        while self._queue and len(sealed) < self._settings.rows_max:
            queued = self._queue.popleft()
            if queued.done.cancelled():  # withdrawn, its caller has not run yet
                size_gone += queued.bytes
                continue
            if (
                queued.key in sealed
                or queued.key in waiting
                or (sealed and queued.alone)
                or (sealed and size + queued.bytes > self._settings.bytes_max)
            ):
                left.append(queued)
                waiting.add(queued.key)
                continue
            sealed[queued.key] = queued
            size += queued.bytes
            if queued.alone:
                break
        self._queue.extendleft(reversed(left))
        self._left_queue(size + size_gone)
        return [sealed[key] for key in sorted(sealed)]

    async def _run(self, sealed: list[_Queued[Item, Outcome]]) -> None:
        try:
            await self._flush(sealed)
        except BaseException as error:  # only when the loop itself is ending: nobody may wait for ever
            for queued in sealed:
                _fail(queued, error)
            raise

    async def _flush(self, sealed: list[_Queued[Item, Outcome]]) -> None:
        """Commit these rows and tell their callers; rows that cannot go together are told apart (PROTOCOL G2)."""
        try:
            outcomes = await self._database.transact(self._operation, [queued.item for queued in sealed])
        except RefusedData as error:
            if len(sealed) == 1:
                _fail(sealed[0], error)
                return
            middle = len(sealed) // 2
            await self._flush(sealed[:middle])
            await self._flush(sealed[middle:])
        except Contended as error:
            self._retry_alone(sealed, error)
        except Exception as error:  # noqa: BLE001  # each caller's to raise
            for queued in sealed:
                _fail(queued, error)
        else:
            if self._observer is not None:
                self._observer.flushed(self._operation.__name__, len(sealed))
            for queued, outcome in zip(sealed, outcomes, strict=True):
                if not queued.done.done():
                    queued.done.set_result(outcome)

    def _retry_alone(self, sealed: list[_Queued[Item, Outcome]], error: Contended) -> None:
        """Put contended rows back, each to go alone, behind what waits: one of them must not hold up the others."""
        for queued in sealed:
            if queued.alone or len(sealed) == 1:
                _fail(queued, error)
            elif not queued.done.done():
                queued.alone = True
                self._queue.append(queued)
                self._queue_bytes += queued.bytes


def _fail(queued: _Queued[Item, Outcome], error: BaseException) -> None:
    if not queued.done.done():
        queued.done.set_exception(error)

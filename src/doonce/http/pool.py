"""The pool: bounded connections per origin, the last used first, handed over fairly.

A connection counts from the moment its opening starts until the loop reports it lost, so that the bounds
are bounds on sockets. Everything here happens before a byte is sent or after an exchange is over.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from doonce.http.connection import Connection
from doonce.http.dial import Dialer
from doonce.http.model import NotSent, Stage
from doonce.http.origins import Origin

_Waiter = asyncio.Future[Connection | NotSent | None]
"""Gets a connection, or a refusal, or None: the right to open one, already counted."""


@dataclass(slots=True)
class _Site:
    """The connections of one origin."""

    idle: list[Connection] = field(default_factory=list)
    opened: int = 0
    waiters: deque[_Waiter] = field(default_factory=deque)


class Pool:
    """Connections to every origin. `take` or `acquire` holds one; `give_back` or its loss ends that."""

    def __init__(
        self,
        dialer: Dialer,
        *,
        per_origin_max: int,
        total_max: int,
        idle_max_ns: int,
        clock_ns: Callable[[], int],
    ) -> None:
        self._dialer = dialer
        self._per_origin_max = per_origin_max
        self._total_max = total_max
        self._idle_max_ns = idle_max_ns
        self._clock_ns = clock_ns
        self._sites: dict[Origin, _Site] = {}
        self._connections: set[Connection] = set()
        self._opened = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Event | None = None
        self.closed = False

    def take(self, origin: Origin, now_ns: int) -> Connection | None:
        """An idle connection that is still usable, without waiting."""
        site = self._sites.get(origin)
        if site is None:
            return None
        while site.idle:
            connection = site.idle.pop()
            if not connection.usable:
                continue
            if now_ns - connection.quiet_since_ns > self._idle_max_ns:
                connection.close_idle()
                continue
            return connection
        return None

    async def acquire(self, origin: Origin, timeout_s: float) -> Connection | NotSent:
        """Open a connection, or wait for one within the bounds. Cancelling it leaves nothing behind."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while True:
            site = self._sites.setdefault(origin, _Site())
            if site.opened < self._per_origin_max:
                if self._opened >= self._total_max and not self._evict_one():
                    return NotSent(Stage.POOL, f"all {self._total_max} connections are in use")
                site.opened += 1
                self._opened += 1
                break
            waited = await self._wait(origin, site, deadline_s)
            if isinstance(waited, NotSent):
                return waited
            if waited is None:
                break  # the right to open comes with its count
            if waited.usable:
                return waited
        return await self._open(origin, deadline_s)

    def give_back(self, connection: Connection) -> None:
        """The exchange is over, or never began; the connection may serve the next one."""
        if not connection.usable:
            return
        if self.closed:
            connection.close_idle()
            return
        site = self._sites[connection.origin]
        waiter = _next_waiter(site)
        if waiter is not None:
            waiter.set_result(connection)
            return
        site.idle.append(connection)
        if self._sweeper is None:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(self._idle_max_ns / 1e9, self._sweep)

    async def close(self, timeout_s: float) -> None:
        """Close what is idle, abort what is not, and wait for the sockets to be gone."""
        self.closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for site in self._sites.values():
            for connection in site.idle:
                connection.close_idle()
            site.idle.clear()
            while (waiter := _next_waiter(site)) is not None:
                waiter.set_result(NotSent(Stage.POOL, "the client is closed"))
        for connection in list(self._connections):
            if connection.usable:
                connection.abort()
        if self._connections:
            self._emptied = asyncio.Event()
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(timeout_s):
                        await self._emptied.wait()
            finally:
                for connection in list(self._connections):
                    connection.abort()

    # -- within ------------------------------------------------------------------------------------------

    async def _wait(self, origin: Origin, site: _Site, deadline_s: float) -> Connection | NotSent | None:
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        site.waiters.append(waiter)
        try:
            async with asyncio.timeout_at(deadline_s):
                return await waiter
        except TimeoutError:
            self._pass_on(origin, waiter)
            return NotSent(Stage.POOL, f"no connection to {origin} became free in time")
        except asyncio.CancelledError:
            self._pass_on(origin, waiter)
            raise

    def _pass_on(self, origin: Origin, waiter: _Waiter) -> None:
        """A waiter that leaves may have been given something in the same turn of the loop."""
        if not waiter.done() or waiter.cancelled():
            return
        given = waiter.result()
        if given is None:
            self._release_slot(origin)
        elif isinstance(given, Connection):
            self.give_back(given)

    async def _open(self, origin: Origin, deadline_s: float) -> Connection | NotSent:
        """Opens on a slot already counted, which from success on belongs to the connection."""
        try:
            timeout_s = deadline_s - asyncio.get_running_loop().time()
            opened = await self._dialer.dial(origin, timeout_s, self._lost)
        except BaseException:
            self._release_slot(origin)
            raise
        if isinstance(opened, NotSent):
            self._release_slot(origin)
            return opened
        self._connections.add(opened)
        if not opened.usable:
            # lost before it was known here
            self._lost(opened)
            return NotSent(Stage.CLOSED, f"{origin} closed the new connection at once")
        if self.closed:
            opened.close_idle()
            return NotSent(Stage.POOL, "the client is closed")
        return opened

    def _lost(self, connection: Connection) -> None:
        if connection not in self._connections:
            return  # still being opened: the slot is released there
        self._connections.discard(connection)
        self._release_slot(connection.origin)
        if self._emptied is not None and not self._connections:
            self._emptied.set()

    def _release_slot(self, origin: Origin) -> None:
        site = self._sites[origin]
        waiter = None if self.closed else _next_waiter(site)
        if waiter is not None:
            waiter.set_result(None)
            return
        site.opened -= 1
        self._opened -= 1
        if not site.opened and not site.waiters:
            del self._sites[origin]

    def _evict_one(self) -> bool:
        """Close the connection that has been idle longest, wherever; its count falls when it is lost."""
        candidates = [site.idle for site in self._sites.values() if site.idle]
        if not candidates:
            return False
        oldest = min(candidates, key=lambda idle: idle[0].quiet_since_ns)
        oldest.pop(0).close_idle()
        return True

    def _sweep(self) -> None:
        self._sweeper = None
        now_ns = self._clock_ns()
        left = False
        for site in self._sites.values():
            fresh = [c for c in site.idle if c.usable and now_ns - c.quiet_since_ns <= self._idle_max_ns]
            for connection in site.idle:
                if connection.usable and connection not in fresh:
                    connection.close_idle()
            site.idle[:] = fresh
            left = left or bool(fresh)
        if left:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(self._idle_max_ns / 1e9, self._sweep)


def _next_waiter(site: _Site) -> _Waiter | None:
    while site.waiters:
        waiter = site.waiters.popleft()
        if not waiter.done():
            return waiter
    return None

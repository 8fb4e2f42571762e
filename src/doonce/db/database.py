"""`Database.transact`: run a generator as one durable transaction, or say exactly what is known of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import sqlalchemy as sa

from doonce.base.errors import DoonceError, Exhausted, Invalid, Unavailable
from doonce.db.clock import ClockWatch, boottime_ns
from doonce.db.faults import (
    CommitUnknown,
    Contended,
    DatabaseFault,
    Disconnected,
    OutOfSpace,
    RefusedData,
    RolledBack,
    SchemaFault,
)
from doonce.db.mysql import MysqlDriver, MysqlSettings
from doonce.db.points import Points
from doonce.db.postgresql import PostgresqlDriver, PostgresqlSettings
from doonce.db.sqlite import SqliteDriver, SqliteSettings
from doonce.db.statement import DialectName
from doonce.db.transaction import FetchThenClock, Notify, ReadClock, Txn
from doonce.db.wakeups import Wakeups

T = TypeVar("T")
URLS = "use sqlite:///path/to/file.db, postgresql://user@host/name or mysql://user@host/name"


class Driver(Protocol):
    """What an engine's module offers."""

    dialect: DialectName

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T: ...
    async def listen(self, wake: Callable[[str], None]) -> None: ...
    async def close(self) -> None: ...


class Observer(Protocol):
    """Where a database reports what an operator looks for."""

    def rolled_back(self, operation: str, fault: str) -> None: ...
    def commit_unknown(self, operation: str) -> None: ...


class SilentObserver:
    """Reports to nobody."""

    def rolled_back(self, operation: str, fault: str) -> None:
        """Ignore it."""

    def commit_unknown(self, operation: str) -> None:
        """Ignore it."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How a proven rollback and an unknown commit are run again. Only the database is retried here, never a call out.

    `tries_max` pauses for at most three seconds in all, well below any lease; after it the caller hears `Unavailable`.
    `contended_tries_max` is lower, since each of those tries has already waited a whole lock time-out.
    """

    tries_max: int = 10
    contended_tries_max: int = 2
    base_ms: float = 5.0
    cap_ms: float = 800.0
    clock_tolerance_us: int = 5_000_000
    clock_hold_us: int = 60_000_000

    def pause_ms(self, tries: int, jitter: float) -> float:
        """The pause after so many tries: exponential with full jitter; `jitter` is uniform in [0, 1)."""
        return min(self.cap_ms, self.base_ms * 2.0 ** min(tries, 40)) * jitter


class Database:
    """One SQL database. Safe to share between tasks of one event loop."""

    def __init__(self, url: str, driver: Driver, settings: RetrySettings | None = None) -> None:
        self.url = url
        self.driver = driver
        self.dialect = driver.dialect
        self.settings = settings or RetrySettings()
        self.wakeups = Wakeups()
        self.observer: Observer = SilentObserver()
        self.points = Points()
        self.clock_watch = ClockWatch(self.settings.clock_tolerance_us, self.settings.clock_hold_us)
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def transact(self, operation: Callable[..., Txn[T]], *args: Any) -> T:
        """Commit `operation(*args)` once, whatever it takes, and return its result only then.

        The operation must be fenced and idempotent with these arguments: a proven rollback and an unknown commit are
        both answered by running it again (PROTOCOL T1, T5). Cancelling the caller does not cancel a flush under way
        (T6). Raises `Unavailable` when the database cannot be had and nothing happened, `Contended` when a lock was
        not had in time, `CommitUnknown` when even running it again could not settle the result, `RefusedData`,
        `Exhausted` (disk full), and what the operation itself raises.
        """
        if self._closed:
            raise Unavailable("the database is closed; nothing was written")
        task = asyncio.get_running_loop().create_task(self._transact(operation, args))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _transact(self, operation: Callable[..., Txn[T]], args: tuple[Any, ...]) -> T:
        unknown: CommitUnknown | None = None
        tries = contended = 0
        topics: list[str] = []

        def factory() -> Txn[T]:
            topics.clear()
            return self._observed(operation.__name__, operation(*args), topics)

        while True:
            tries += 1
            try:
                result = await self.driver.run(factory, readonly=False)
            except CommitUnknown as fault:
                unknown = fault
                self.observer.commit_unknown(operation.__name__)
                if tries >= self.settings.tries_max:
                    raise
            except RolledBack as fault:
                self.observer.rolled_back(operation.__name__, type(fault).__name__)
                contended += isinstance(fault, Contended)
                if tries >= self.settings.tries_max or contended >= self.settings.contended_tries_max:
                    raise self._give_up(fault, unknown) from fault
            except DatabaseFault as fault:
                # after an unknown commit even a refusal proves nothing: that commit may be what it collides with
                raise unknown or self._translate(fault) from fault
            else:
                self.points.reach(f"{operation.__name__}.after_commit")
                for topic in topics:
                    self.wakeups.wake(topic)
                return result
            await self._pause(tries)

    def _observed(self, name: str, transaction: Txn[T], topics: list[str]) -> Txn[T]:
        value: Any = None
        try:
            while True:
                try:
                    call = transaction.send(value)
                except StopIteration as stop:
                    result: T = stop.value
                    self.points.reach(f"{name}.before_commit")
                    return result
                if isinstance(call, ReadClock | FetchThenClock):
                    value = yield from self._timed(call)
                else:
                    value = yield call
                    if isinstance(call, Notify):
                        topics.extend(call.topics)
        finally:
            transaction.close()

    def _timed(self, call: ReadClock | FetchThenClock) -> Txn[Any]:
        before_us = boottime_ns() // 1000
        answer = yield call
        after_us = boottime_ns() // 1000
        rows, now_us = (None, answer) if isinstance(call, ReadClock) else answer
        self.clock_watch.observe(now_us, before_us, after_us)
        trusted_us = None if call.steady and not self.clock_watch.steady(after_us) else now_us
        return trusted_us if isinstance(call, ReadClock) else (rows, trusted_us)

    def steady(self) -> bool:
        """Whether the database's clock may pace work now, by what has been seen of it (PROTOCOL C1)."""
        return self.clock_watch.steady(boottime_ns() // 1000)

    async def read(self, operation: Callable[..., Txn[T]], *args: Any) -> T:
        """The result of a read-only transaction. A plain read never justifies a write (PROTOCOL T2)."""
        if self._closed:
            raise Unavailable("the database is closed")
        tries = 0
        while True:
            tries += 1
            try:
                return await self.driver.run(lambda: operation(*args), readonly=True)
            except RolledBack as fault:
                if tries >= self.settings.tries_max:
                    raise self._give_up(fault, None) from fault
            except DatabaseFault as fault:
                raise self._translate(fault) from fault
            await self._pause(tries)

    def _give_up(self, fault: RolledBack, unknown: CommitUnknown | None) -> Exception:
        if unknown is not None:
            return unknown
        if isinstance(fault, Contended):
            return fault
        if isinstance(fault, Disconnected):
            return Unavailable(
                "the database cannot be reached",
                hint=f"check that {safe_url(self.url)} is up and accepts this user; nothing was written",
            )
        said = f" (its error {fault.code})" if fault.code else ""
        return Unavailable(f"the database keeps rolling this transaction back{said}; nothing was written")

    def _translate(self, fault: DatabaseFault) -> Exception:
        if isinstance(fault, OutOfSpace):
            return Exhausted(
                "the database's disk is full; nothing was written", hint="free space, then try again"
            )
        if isinstance(fault, SchemaFault):
            return Unavailable(
                f"the database is not what this release needs: {fault}",
                hint=fault.hint or "run `doonce migrate` with this URL",
            )
        return fault

    async def _pause(self, tries: int) -> None:
        jitter = random.random()  # noqa: S311 (spreads retries; not a secret)
        await asyncio.sleep(self.settings.pause_ms(tries, jitter) / 1000)

    def rest(self) -> None:
        """Wait, on the loop's thread, until no other thread of this process is in a transaction.

        Who is stopped inside one on SQLite holds the file. True, but not what a stop at a named point is about.
        """
        if isinstance(self.driver, SqliteDriver):
            self.driver.rest()

    async def listen(self) -> None:
        """Hear other processes' wake-ups where the engine can carry them."""
        await self.driver.listen(self.wakeups.wake)

    async def close(self) -> None:
        """Finish the transactions under way, refuse new ones, and give the connections back."""
        self._closed = True
        try:
            if self._running:
                await asyncio.wait(set(self._running))
        finally:
            await self.driver.close()


def open_database(
    url: str,
    *,
    settings: RetrySettings | None = None,
    postgresql: PostgresqlSettings | None = None,
    sqlite: SqliteSettings | None = None,
    mysql: MysqlSettings | None = None,
) -> Database:
    """A database by URL, as `URLS` shows them. Nothing is opened yet. Raises `Invalid` for what is none."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise Invalid("this is not a database URL", hint=URLS) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise Invalid(
                "SQLite in memory cannot survive a crash", hint="give a file: sqlite:///var/doonce.db"
            )
        return Database(url, SqliteDriver(Path(parsed.database), sqlite or SqliteSettings()), settings)
    if backend in ("postgresql", "postgres"):
        plain = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
        return Database(url, PostgresqlDriver(plain, postgresql or PostgresqlSettings()), settings)
    if backend in ("mysql", "mariadb"):
        if not parsed.database:
            raise Invalid("this URL names no database", hint=URLS)
        return Database(url, MysqlDriver(url, mysql or MysqlSettings()), settings)
    raise Invalid(f"the engine {backend!r} is not supported", hint=URLS)


def safe_url(url: str) -> str:
    """The URL without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "the given URL"


__all__ = [
    "CommitUnknown",
    "Contended",
    "Database",
    "DoonceError",
    "RefusedData",
    "RetrySettings",
    "open_database",
    "safe_url",
]

"""A database whose driver fails on demand, by operation: lost answers to COMMIT, absence, slowness."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from tests.process.effects.worker import open_for_test

from doonce.db.database import Database, RetrySettings
from doonce.db.faults import CommitUnknown, Disconnected
from doonce.db.transaction import Txn

T = TypeVar("T")
Misfortune = Callable[[Awaitable[Any]], Awaitable[Any]]
CURRENT: ContextVar[str] = ContextVar("CURRENT", default="")


async def answer_lost(transaction: Awaitable[Any]) -> Any:
    """It commits, and nobody hears of it."""
    await transaction
    raise CommitUnknown("the connection was lost while committing")


async def away(transaction: Awaitable[Any]) -> Any:
    """The database cannot be reached; nothing happens."""
    asyncio.ensure_future(transaction).cancel()
    raise Disconnected("no connection to the database")


class LossyDriver:
    """Passes transactions on, unless their operation is to meet a misfortune."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.dialect = driver.dialect
        self.misfortunes: dict[str, Misfortune] = {}
        self.runs: Counter[str] = Counter()

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        """Run a transaction, in good or bad fortune."""
        operation = CURRENT.get()
        self.runs[operation] += 1
        transaction = self._driver.run(factory, readonly=readonly)
        misfortune = self.misfortunes.get(operation)
        result: T = await (transaction if misfortune is None or readonly else misfortune(transaction))
        return result

    async def listen(self, wake: Callable[[str], None]) -> None:
        """As the driver does."""
        await self._driver.listen(wake)

    async def close(self) -> None:
        """As the driver does."""
        await self._driver.close()


class LossyDatabase(Database):
    """Tells its driver which operation it runs."""

    def __init__(self, url: str) -> None:
        self.lossy = LossyDriver(open_for_test(url).driver)
        super().__init__(url, self.lossy, RetrySettings(tries_max=3))

    async def _transact(self, operation: Callable[..., Txn[T]], args: tuple[Any, ...]) -> T:
        CURRENT.set(operation.__name__)
        return await super()._transact(operation, args)

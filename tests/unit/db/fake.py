"""A database without an engine: tests say what each run of a transaction meets."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from doonce.db.database import Database, RetrySettings
from doonce.db.statement import DialectName
from doonce.db.transaction import Txn

T = TypeVar("T")
QUICK = RetrySettings(base_ms=0.01, cap_ms=0.1)


class FakeDriver:
    """Drives generators without carrying anything out. `runs` counts; `fault` may raise for a result, or None."""

    dialect = DialectName.SQLITE

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.answers: list[Any] = []
        self.fault: Callable[[Any], BaseException | None] = lambda result: None
        self.gate: asyncio.Event | None = None
        self.under_way = 0
        self.most_under_way = 0

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            transaction = factory()
            answers = iter(self.answers)
            value: Any = None
            while True:
                try:
                    transaction.send(value)
                except StopIteration as stop:
                    result: T = stop.value
                    break
                value = next(answers, None)
            if self.gate is not None:
                await self.gate.wait()
            fault = self.fault(result)
            self.runs.append(result if fault is None else type(fault).__name__)
            if fault is not None:
                raise fault
            await asyncio.sleep(0)
            return result
        finally:
            self.under_way -= 1

    async def listen(self, wake: Callable[[str], None]) -> None:
        self.wake = wake

    async def close(self) -> None:
        self.closed = True


def fake_database(settings: RetrySettings = QUICK) -> tuple[Database, FakeDriver]:
    driver = FakeDriver()
    return Database("sqlite:///fake.db", driver, settings), driver

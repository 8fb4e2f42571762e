"""The named points of a worker process under test: several armed at once, and every one that was reached kept."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.process.effects.settings import Armed

from doonce.db.database import Database
from doonce.db.points import ArmedPoint, PointAction, Points
from doonce.db.sqlite import SqliteDriver

CLAIMS = frozenset(
    {
        "claim_and_prepare",
        "claim_questions",
        "claim_completions",
        "claim_unread",
        "claim_hydrations",
        "claim_catch_ups",
    }
)
"""Transactions that mostly find nothing: only those that take something are worth dying in."""
BLOCK = "block"
"""What a test may arm besides: the thread that comes here stands still until the flag's file is taken away."""


class TestPoints(Points):
    """Reaches its points in all that is armed, and notes each name once in a file."""

    __test__ = False

    def __init__(self, armed: Sequence[Armed], watch: str | None, claims: frozenset[str] = CLAIMS) -> None:
        super().__init__()
        self._claims = claims
        self._stops = frozenset(point.name for point in armed if point.action == PointAction.STOP.value)
        self._blocks = {
            point.name: Path(point.flag) for point in armed if point.action == BLOCK and point.flag
        }
        self._database: Database | None = None
        self._each = [Points(_armed(point)) for point in armed if point.action != BLOCK]
        self._file = None if watch is None else os.open(watch, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._seen: set[str] = set()
        self.took: dict[str, bool] = {}

    def reach(self, name: str) -> None:
        """Pass on a visit, unless it is of a claim that took nothing."""
        if not self.took.get(name.partition(".")[0], True):
            return
        if self._file is not None and name not in self._seen:
            self._seen.add(name)
            os.write(self._file, f"{name}\n".encode())
        if name in self._stops:
            self._come_to_rest()
        if name in self._blocks:
            _block(self._blocks.pop(name), name)
        for points in self._each:
            points.reach(name)

    def install(self, database: Database) -> None:
        """Be the points of this database, and see what its claims take."""
        transact = database.transact
        self._database = database

        async def watched(operation: Callable[..., Any], *args: Any) -> Any:
            return await transact(
                self._told(operation) if operation.__name__ in self._claims else operation, *args
            )

        database.points = self
        database.transact = watched  # type: ignore[method-assign]  # the one seam that sees every result

    def _come_to_rest(self) -> None:
        """Wait until this process is in no transaction, as far as the thread that comes here can let it.

        Who is stopped inside one holds its locks, and on SQLite the file; on PostgreSQL no time-out ends one that has
        prepared a statement and not executed it. All true, and not what such a test is about.
        """
        database, thread = self._database, threading.current_thread()
        if database is None:
            return
        driver = database.driver if isinstance(database.driver, SqliteDriver) else None
        if thread is threading.main_thread():
            database.rest()  # nothing new is begun meanwhile: the loop waits here
        elif driver is None or thread is not driver._writer:
            while database._running:
                time.sleep(0.001)

    def _told(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(operation)
        def told(*args: Any) -> Any:
            result = yield from operation(*args)
            self.took[operation.__name__] = bool(result)
            return result

        return told


def _block(flag: Path, name: str) -> None:
    """Say so in the flag, and keep this thread, and no other, for as long as the file is there."""
    flag.write_text(name)
    while flag.exists():
        time.sleep(0.001)


def _armed(point: Armed) -> ArmedPoint:
    flag = None if point.flag is None else Path(point.flag)
    return ArmedPoint(point.name, PointAction(point.action), point.hit, flag)

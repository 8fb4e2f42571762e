"""The named points of a worker process under test: several armed at once, and every one that was reached kept."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.process.effects.settings import Armed

from doonce.db.database import Database
from doonce.db.points import ArmedPoint, PointAction, Points

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


class TestPoints(Points):
    """Reaches its points in all that is armed, and notes each name once in a file."""

    __test__ = False

    def __init__(self, armed: Iterable[Armed], watch: str | None, claims: frozenset[str] = CLAIMS) -> None:
        super().__init__()
        self._claims = claims
        self._each = [Points(_armed(point)) for point in armed]
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
        for points in self._each:
            points.reach(name)

    def install(self, database: Database) -> None:
        """Be the points of this database, and see what its claims take."""
        transact = database.transact

        async def watched(operation: Callable[..., Any], *args: Any) -> Any:
            return await transact(
                self._told(operation) if operation.__name__ in self._claims else operation, *args
            )

        database.points = self
        database.transact = watched  # type: ignore[method-assign]  # the one seam that sees every result

    def _told(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(operation)
        def told(*args: Any) -> Any:
            result = yield from operation(*args)
            self.took[operation.__name__] = bool(result)
            return result

        return told


def _armed(point: Armed) -> ArmedPoint:
    flag = None if point.flag is None else Path(point.flag)
    return ArmedPoint(point.name, PointAction(point.action), point.hit, flag)

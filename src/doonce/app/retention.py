"""Retention as a process runs it: short steps now and then, and a whole walk at once where somebody asks for one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from doonce.app.operate.model import Pruned
from doonce.base.errors import DoonceError, Invalid, Unavailable
from doonce.db.database import Database
from doonce.db.faults import DatabaseFault
from doonce.effects.retire import Retire, Retired, preview, retire

log = structlog.get_logger("doonce.retention")

KEPT_US_MIN = 3_600_000_000
"""An hour. A transaction whose commit was not answered is run again and looks for what it did in the working table;
that takes seconds, and minutes with a database that fails over meanwhile."""

DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """When ended work becomes history. Each is a line in docs/settings.md.

    `ended_kept_us` and `dead_kept_us` count from the end of an item. `rows` bounds one step, `steps_max` what one
    process does every `every_seconds`.
    """

    enabled: bool = True
    ended_kept_us: int = 7 * DAY_US
    dead_kept_us: int = 30 * DAY_US
    every_seconds: float = 15.0
    rows: int = 500
    steps_max: int = 100

    def check(self) -> None:
        """Raise `Invalid`, which names the setting, for a time that is too short to be safe."""
        for name in ("ended_kept_us", "dead_kept_us"):
            if getattr(self, name) < KEPT_US_MIN:
                raise Invalid(
                    f"retention.{name} must be at least {KEPT_US_MIN}, an hour",
                    hint="a step whose commit was not answered looks for its own work where work is; see "
                    "docs/operating.md",
                )

    def step(self, deployment: str, after: str | None = None) -> Retire:
        """One step under these settings."""
        return Retire(deployment, self.ended_kept_us, self.dead_kept_us, self.rows, after)


class RetentionObserver(Protocol):
    """Where the pass reports what it moved."""

    def retired(self, family: str, items: int) -> None: ...


class Retention:
    """The pass of one process. Any number of processes share one walk; each step goes on where the last one was."""

    def __init__(
        self, database: Database, deployment: str, settings: RetentionSettings, observer: RetentionObserver
    ) -> None:
        self._database = database
        self._deployment = deployment
        self._settings = settings
        self._observer = observer

    async def run(self) -> None:
        """Move what may go, every now and then, until cancelled. A database that fails is asked again later."""
        while True:
            await asyncio.sleep(self._settings.every_seconds)
            try:
                await self.tick()
            except (DoonceError, DatabaseFault) as error:
                log.warning("ended work could not be moved", error=str(error))

    async def tick(self) -> None:
        """Steps until this walk is at its end, or until it has been enough for now."""
        for _ in range(self._settings.steps_max):
            seen = await self._step(self._settings.step(self._deployment))
            if seen.passed == "":
                return

    async def prune(self, *, dry_run: bool, told: Callable[[Pruned], None] = lambda _: None) -> Pruned:
        """Walk over all of it now; `told` hears how far that has come after each step. Can be stopped at any time.

        `dry_run` moves nothing and says what would go. Raises `Unavailable` after a jump of the database's clock.
        """
        moved: Counter[str] = Counter()
        stays: Counter[str] = Counter()
        looked, after = 0, ""
        while True:
            asked = self._settings.step(self._deployment, after)
            seen = await (self._database.read(preview, asked) if dry_run else self._step(asked))
            if seen.paused:
                raise Unavailable(
                    "the database's clock has jumped, so nothing is moved for now",
                    hint="run it again in a minute; what was moved stays moved",
                )
            looked, after = looked + seen.looked, seen.passed
            moved.update(seen.moved)
            stays.update(seen.stays)
            so_far = Pruned(looked=looked, moved=dict(moved), stays=dict(stays), dry_run=dry_run)
            told(so_far)
            if after == "":
                return so_far

    async def _step(self, asked: Retire) -> Retired:
        seen = await self._database.transact(retire, asked)
        for family, items in seen.moved.items():
            self._observer.retired(family, items)
        return seen

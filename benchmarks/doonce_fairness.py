"""doonce: how many claims go by before one organization's single item is taken, while another has a backlog.

One worker, going round its scopes as ever. Counted are the claims that end after the item's insert has been committed,
from one that is under way then to the one that takes the item.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally
from benchmarks.crowd import SCOPE, Crowd, insert, make_crowd
from benchmarks.doonce_noop import Noop, make_worker, new_items
from doonce.db.database import open_database
from doonce.db.transaction import Txn
from doonce.work import store
from doonce.work.model import Claimed, Scope
from doonce.work.store import ClaimRequest

PATIENCE_SECONDS = 10


def prepare(setting: Setting) -> None:
    """Fill the database with one organization's items."""
    uvloop.run(make_crowd(setting.database, Crowd(plain=setting.options["pending"])))


def run(setting: Setting) -> Values:
    """Put single items of other organizations there, one after another."""
    return uvloop.run(_run(setting))


@dataclass(slots=True)
class Counting:
    """The kernel's claims, counted. `by`: the number of the claim that took an item which was not the backlog's."""

    begun: int = 0
    ended: int = 0
    by: int = 0
    taken: asyncio.Event = field(default_factory=asyncio.Event)

    def claim(self, request: ClaimRequest) -> Txn[list[Claimed]]:
        """One claim."""
        self.begun += 1
        number = self.begun
        claims = yield from store.claim(request)
        self.ended = number
        if any(claimed.item.scope != SCOPE for claimed in claims):
            self.by = number
            self.taken.set()
        return claims

    async def until_taken(self) -> None:
        """Wait for that claim; a starved item is a failure, not a figure."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.taken.wait()
        self.taken.clear()


async def _run(setting: Setting) -> Values:
    database = open_database(setting.database)
    others = [Scope(f"org{number}", "only") for number in range(1, setting.options["organizations"])]
    counting = Counting()
    worker = make_worker(
        database, Noop(Tally(setting.options["pending"] * 2)), setting.options["concurrency"], (SCOPE, *others),
        counting.claim,
    )  # fmt: skip
    working = asyncio.create_task(worker.run())
    delays: list[int] = []
    for _ in range(setting.options["looks"]):
        await asyncio.sleep(random.uniform(0, 0.02))  # at any moment of a turn
        other = random.choice(others)
        await insert(database, new_items(1, other))
        ended = counting.ended
        await counting.until_taken()
        delays.append(counting.by - ended)
    worker.begin_drain()
    await working
    await database.close()
    return {"claims_max": max(delays), "claims_mean": sum(delays) / len(delays)}

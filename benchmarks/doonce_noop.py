"""doonce: work items of a family whose handler does nothing: claimed, run, and settled under their fences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally, cpu_us, rss_mb
from benchmarks.crowd import FAMILY, SCOPE, insert
from benchmarks.doonce_schema import DEPLOYMENT, make_tables, own
from benchmarks.tidy import settle_down
from doonce.app.metrics import Metrics
from doonce.base.ids import new_id
from doonce.db.database import Database, open_database
from doonce.db.transaction import Txn
from doonce.work import store
from doonce.work.model import Claimed, Event, NewItem, Scope, Settled, Settlement
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings

ROWS_A_COMMIT = 2_000


def new_items(number: int, scope: Scope = SCOPE) -> list[NewItem]:
    """Items that nothing keeps waiting."""
    return [
        NewItem(new_id("wrk"), FAMILY, scope, "nothing", "nothing", "sha256:bench") for _ in range(number)
    ]


def scopes_of(organizations: int) -> Sequence[Scope]:
    """So many organizations of one installation each; one is the usual one."""
    return (SCOPE, *(Scope(f"org{number}", "only") for number in range(1, organizations)))


async def fill(database: Database, items: int, organizations: int = 1) -> None:
    """Put so many items there, shared by these, as acceptance does: in batches, through the kernel's own insert."""
    scopes = scopes_of(organizations)
    for start in range(0, items, ROWS_A_COMMIT):
        mixed = [
            new_items(1, scopes[at % len(scopes)])[0]
            for at in range(start, min(start + ROWS_A_COMMIT, items))
        ]
        await insert(database, mixed)


def prepare(setting: Setting) -> None:
    """Make the schema and put the items there."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    await make_filled(setting.database, setting.options["jobs"])


async def make_filled(url: str, items: int, organizations: int = 1) -> None:
    """A migrated database with so many items, vacuumed."""
    await make_tables(url)
    database = open_database(url)
    await own(database, FAMILY)
    await fill(database, items, organizations)
    await database.close()
    await settle_down(url)


def run(setting: Setting) -> Values:
    """Work them off."""
    return uvloop.run(_run(setting))


class Noop:
    """The handler. An item has ended when its settlement is durable."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.worker: Worker[Claimed] | None = None

    async def run(self, claimed: Claimed) -> None:
        """Do nothing, and say so."""
        assert self.worker is not None
        settled = await self.worker.settlements.submit(Settlement(claimed, Event.SUCCEED))
        assert settled is Settled.DONE
        self.tally.end()


def make_worker(
    database: Database,
    handler: Noop,
    concurrency: int,
    scopes: Sequence[Scope] = (SCOPE,),
    claim: Callable[[Any], Txn[list[Claimed]]] = store.claim,
    metrics: Metrics | None = None,
) -> Worker[Claimed]:
    """One worker of the family, wired as the engine wires its own: claims of `concurrency`, twice that in flight.

    The same as for pgqueuer, whose least allowance is twice its batch.
    """

    async def all_scopes() -> Sequence[Scope]:
        return scopes

    metrics = metrics or Metrics()
    database.observer = metrics
    work = FamilyWork(FAMILY, lambda request: request, claim, lambda claimed: claimed, handler.run)
    worker = Worker(
        database,
        work,
        Identity(DEPLOYMENT, new_id("prc")),
        all_scopes,
        WorkerSettings(concurrency=2 * concurrency),
        metrics,
        ProcessGate(),
    )
    handler.worker = worker
    return worker


async def _run(setting: Setting) -> Values:
    database = open_database(setting.database)
    tally = Tally(setting.options["jobs"])
    worker = make_worker(database, Noop(tally), setting.options["concurrency"])
    began_us = cpu_us()
    tally.begin()  # the first claim's beginning, opening of connections included
    working = asyncio.create_task(worker.run())
    await tally.done.wait()
    used_us = cpu_us() - began_us
    worker.begin_drain()
    await working
    await database.close()
    return {"per_s": tally.per_s(), "cpu_us": used_us / tally.ended, "rss_mb": rss_mb()}

"""doonce: what a claim costs with little and with much waiting, asked of two databases in turn by one process.

Each look claims a batch, and then, off the clock, settles it and puts as many new items of the same kinds there, so
that the backlog stays what it is. Both databases hold the same kinds in the same shares: see `crowd`.
"""

from __future__ import annotations

import asyncio
import statistics
import time

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.crowd import FAMILY, SCOPE, Crowd, again, crowd_of, insert, make_crowd
from benchmarks.doonce_schema import DEPLOYMENT
from doonce.base.ids import new_id, new_token
from doonce.db.database import Database, open_database
from doonce.db.transaction import Txn
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, Settled, Settlement
from doonce.work.store import ClaimRequest

WARM_UP = 20


def prepare(setting: Setting) -> None:
    """Fill the first database with few items and the second with many."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    for url, items in zip(setting.databases, setting.options["items"], strict=True):
        await make_crowd(url, crowd_of(items) if setting.options["crowded"] else Crowd(plain=items))


def run(setting: Setting) -> Values:
    """Look at both in turn."""
    return uvloop.run(_run(setting))


class Claimer:
    """One process's claims on one database."""

    def __init__(self, database: Database, rows: int) -> None:
        self.database = database
        self.rows = rows
        self.owner = new_id("prc")
        self.took_us: list[float] = []
        self.in_lanes = 0

    async def look(self) -> None:
        """Claim a batch on the clock, and restore the backlog off it."""
        request = ClaimRequest(
            family=FAMILY, scopes=(SCOPE,), deployment=DEPLOYMENT, owner=self.owner, token=new_token(),
            rows_max=self.rows, lease_us=30_000_000, expiries_max=5,
        )  # fmt: skip
        began_s = time.perf_counter()
        claims = await self.database.transact(store.claim, request)
        self.took_us.append((time.perf_counter() - began_s) * 1e6)
        assert len(claims) == self.rows
        await self.database.transact(_end, claims)
        await insert(self.database, [again(claimed) for claimed in claims])
        self.in_lanes += sum(claimed.item.target_lane is not None for claimed in claims)

    def median_us(self) -> float:
        """Of the looks since the last answer."""
        median_us = statistics.median(self.took_us)
        self.took_us.clear()
        return median_us


def _end(claims: list[Claimed]) -> Txn[list[Settled]]:
    return settle.settle([Settlement(claimed, Event.SUCCEED) for claimed in claims], DEPLOYMENT)


async def _run(setting: Setting) -> Values:
    few, many = (Claimer(open_database(url), setting.options["rows"]) for url in setting.databases)
    for claimer in (few, many):
        for _ in range(WARM_UP):
            await claimer.look()
        claimer.took_us.clear()
        assert bool(claimer.in_lanes) is setting.options["crowded"], "a claim takes some of each kind"
    series: list[tuple[float, float]] = []
    for _ in range(setting.options["series"]):
        for _ in range(setting.options["looks"]):
            await few.look()
            await many.look()
        series.append((few.median_us(), many.median_us()))
    await asyncio.gather(few.database.close(), many.database.close())
    return {
        "few_us": statistics.median(few_us for few_us, _ in series),
        "many_us": statistics.median(many_us for _, many_us in series),
        "ratio": statistics.median(many_us / few_us for few_us, many_us in series),
    }

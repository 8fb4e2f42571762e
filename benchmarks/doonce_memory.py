"""doonce: whether a worker grows: its resident memory after many no-op items ÷ after it has warmed up."""

from __future__ import annotations

import asyncio
import statistics

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally, rss_mb
from benchmarks.crowd import Crowd, make_crowd
from benchmarks.doonce_noop import Noop, make_worker
from doonce.db.database import open_database

LOOK_SECONDS = 0.05


def prepare(setting: Setting) -> None:
    """Fill the database."""
    uvloop.run(make_crowd(setting.database, Crowd(plain=setting.options["jobs"])))


def run(setting: Setting) -> Values:
    """Work them off, looking at the memory all the time."""
    return uvloop.run(_run(setting))


async def _run(setting: Setting) -> Values:
    """Each end of the ratio is a median, over as many items as the worker has to warm up: one look may meet a peak."""
    jobs, warm = setting.options["jobs"], setting.options["warm"]
    database = open_database(setting.database)
    tally = Tally(jobs)
    worker = make_worker(database, Noop(tally), setting.options["concurrency"])
    tally.begin()
    working = asyncio.create_task(worker.run())
    looks: list[tuple[int, float]] = []
    while tally.ended < jobs:
        await asyncio.sleep(LOOK_SECONDS)
        looks.append((tally.ended, rss_mb()))
    worker.begin_drain()
    await working
    await database.close()
    early = statistics.median(rss for ended, rss in looks if warm <= ended < 2 * warm)
    late = statistics.median(rss for ended, rss in looks if ended >= jobs - warm)
    return {"early_mb": early, "late_mb": late, "growth": late / early, "per_s": tally.per_s()}

"""pgqueuer: a no-op job, and a job that makes one call. asyncpg driver, batches of `concurrency`, twice that in flight.

Twice is the least that it accepts for a batch size. Its jobs are deleted in buffered batches; the clock stops at the
last job's end and does not wait for that, which is in its favour.
"""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally, cpu_us, rss_mb
from benchmarks.peer_call import Caller
from benchmarks.tidy import settle_down
from benchmarks.workload import check_arrivals, make_contacts

ROWS_A_CALL = 1_000


async def _queries(url: str) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(url)))


def prepare(setting: Setting) -> None:
    """Install its schema and put the jobs there."""
    uvloop.run(_prepare(setting))
    uvloop.run(settle_down(setting.database))


async def _prepare(setting: Setting) -> None:
    queries = await _queries(setting.database)
    await queries.install()
    jobs: int = setting.options["jobs"]
    payloads: list[bytes | None] = [b""] * jobs
    if setting.simulator_url:
        payloads = [contact.encode() for contact in make_contacts(setting.control_url, jobs)]
    for start in range(0, jobs, ROWS_A_CALL):
        rows = payloads[start : start + ROWS_A_CALL]
        await queries.enqueue(["job"] * len(rows), rows, [0] * len(rows))


def run(setting: Setting) -> Values:
    """Work them off."""
    values = uvloop.run(_run(setting))
    if setting.simulator_url:
        check_arrivals(setting.control_url, setting.options["jobs"])
    return values


async def _run(setting: Setting) -> Values:
    concurrency: int = setting.options["concurrency"]
    tally = Tally(setting.options["jobs"])
    caller = Caller(setting.simulator_url, 2 * concurrency)
    queuer = PgQueuer(AsyncpgDriver(await asyncpg.connect(setting.database)))

    @queuer.entrypoint("job")
    async def job(work: Any) -> None:
        tally.begin()
        if setting.simulator_url:
            await caller.patch(work.payload.decode())
        tally.end()

    began_us = cpu_us()
    worker = asyncio.create_task(queuer.run(batch_size=concurrency, max_concurrent_tasks=2 * concurrency))
    done = asyncio.create_task(tally.done.wait())
    await asyncio.wait({worker, done}, return_when=asyncio.FIRST_COMPLETED)
    used_us = cpu_us() - began_us
    queuer.shutdown.set()
    await worker
    await caller.close()
    return {"per_s": tally.per_s(), "cpu_us": used_us / tally.ended, "rss_mb": rss_mb()}

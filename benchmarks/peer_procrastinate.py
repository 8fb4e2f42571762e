"""procrastinate: a no-op task, and a task that makes one call. psycopg driver, one worker."""

from __future__ import annotations

import asyncio
import contextlib

import procrastinate
import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally, cpu_us, rss_mb
from benchmarks.peer_call import Caller
from benchmarks.tidy import settle_down
from benchmarks.workload import check_arrivals, make_contacts

ROWS_A_CALL = 1_000


class Adapter:
    """Its application object, with the one task."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.tally = Tally(setting.options["jobs"])
        self.caller = Caller(setting.simulator_url, setting.options["concurrency"])
        connector = procrastinate.PsycopgConnector(conninfo=setting.database, min_size=2, max_size=20)
        self.app = procrastinate.App(connector=connector)
        self.task = self.app.task(name="job", queue="jobs")(self._job)

    async def _job(self, contact: str) -> None:
        self.tally.begin()
        if contact:
            await self.caller.patch(contact)
        self.tally.end()


def prepare(setting: Setting) -> None:
    """Install its schema and put the jobs there."""
    uvloop.run(_prepare(setting))
    uvloop.run(settle_down(setting.database))


async def _prepare(setting: Setting) -> None:
    adapter = Adapter(setting)
    jobs: int = setting.options["jobs"]
    contacts = make_contacts(setting.control_url, jobs) if setting.simulator_url else [""] * jobs
    async with adapter.app.open_async():
        await adapter.app.schema_manager.apply_schema_async()
        for start in range(0, jobs, ROWS_A_CALL):
            rows = [{"contact": contact} for contact in contacts[start : start + ROWS_A_CALL]]
            await adapter.task.batch_defer_async(*rows)


def run(setting: Setting) -> Values:
    """Work them off."""
    values = uvloop.run(_run(setting))
    if setting.simulator_url:
        check_arrivals(setting.control_url, setting.options["jobs"])
    return values


async def _run(setting: Setting) -> Values:
    adapter = Adapter(setting)
    async with adapter.app.open_async():
        began_us = cpu_us()
        worker = asyncio.create_task(
            adapter.app.run_worker_async(
                concurrency=setting.options["concurrency"],
                install_signal_handlers=False,
                shutdown_graceful_timeout=5,
            )
        )
        done = asyncio.create_task(adapter.tally.done.wait())
        await asyncio.wait({worker, done}, return_when=asyncio.FIRST_COMPLETED)
        used_us = cpu_us() - began_us
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
        await adapter.caller.close()
    tally = adapter.tally
    return {"per_s": tally.per_s(), "cpu_us": used_us / tally.ended, "rss_mb": rss_mb()}

"""DBOS: a workflow of one step that makes one call, on a queue whose poll is set to 10 ms (its default is a second)."""

from __future__ import annotations

import asyncio

import dbos
import sqlalchemy as sa
import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import Tally, cpu_us, rss_mb
from benchmarks.peer_call import Caller
from benchmarks.tidy import settle_down
from benchmarks.workload import check_arrivals, make_contacts

POLL_SECONDS = 0.01
QUEUE = "calls"
WORKFLOW = "call"


class Adapter:
    """Its process-wide object, with the one workflow and its one step."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.url = setting.database.replace("postgresql://", "postgresql+psycopg://")
        self.tally = Tally(setting.options["jobs"])
        self.caller = Caller(setting.simulator_url, setting.options["concurrency"])
        self.loop = asyncio.get_running_loop()
        dbos.DBOS(
            config={
                "name": "bench", "system_database_url": self.url, "log_level": "ERROR", "sys_db_pool_size": 20,
            }
        )  # fmt: skip

        @dbos.DBOS.step(name="patch")
        async def patch(contact: str) -> str:
            return str((await self.caller.patch(contact))["id"])

        @dbos.DBOS.workflow(name=WORKFLOW)
        async def call(contact: str) -> str:
            self.loop.call_soon_threadsafe(self.tally.begin)
            answer = await patch(contact)
            self.loop.call_soon_threadsafe(self.tally.end)
            return answer

    def client(self) -> dbos.DBOSClient:
        """A client that enqueues."""
        return dbos.DBOSClient(system_database_url=self.url)


def prepare(setting: Setting) -> None:
    """Make its tables and enqueue the workflows; it has no bulk call, so many share a transaction."""
    uvloop.run(_prepare(setting))
    uvloop.run(settle_down(setting.database))


async def _prepare(setting: Setting) -> None:
    adapter = Adapter(setting)
    contacts = make_contacts(setting.control_url, setting.options["jobs"])
    await asyncio.to_thread(dbos.DBOS.launch)
    await asyncio.to_thread(dbos.DBOS.destroy)

    def enqueue() -> None:
        client = adapter.client()
        with sa.create_engine(adapter.url).begin() as connection:
            for contact in contacts:
                client.enqueue_in_transaction(
                    connection, {"queue_name": QUEUE, "workflow_name": WORKFLOW}, contact
                )

    await asyncio.to_thread(enqueue)


def run(setting: Setting) -> Values:
    """Work them off."""
    values = uvloop.run(_run(setting))
    check_arrivals(setting.control_url, setting.options["jobs"])
    return values


async def _run(setting: Setting) -> Values:
    adapter = Adapter(setting)
    concurrency: int = setting.options["concurrency"]

    def launch() -> (
        None
    ):  # the queue is registered first: without its limit it would start everything at once
        adapter.client().register_queue(
            QUEUE,
            worker_concurrency=concurrency,
            polling_interval_sec=POLL_SECONDS,
            on_conflict="always_update",
        )
        dbos.DBOS.listen_queues([QUEUE])
        dbos.DBOS.launch()

    began_us = cpu_us()
    await asyncio.to_thread(launch)
    await adapter.tally.done.wait()
    used_us = cpu_us() - began_us
    tally = adapter.tally
    return {"per_s": tally.per_s(), "cpu_us": used_us / tally.ended, "rss_mb": rss_mb()}

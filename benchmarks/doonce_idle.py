"""doonce, idle: from asking for acceptance until the request's first byte has arrived at the simulator.

One process accepts and works, as `doonce up` does. Start: this process's clock before `accept`. End: the arrival time
in the simulator's ledger, by the same host's clock.
"""

from __future__ import annotations

import asyncio
import random
import time

import uvloop

from benchmarks.case import Setting, Values
from benchmarks.clocking import percentile
from benchmarks.doonce_schema import make_tables
from benchmarks.doonce_world import identity, make_engine, make_view, make_world, request_for
from benchmarks.tidy import settle_down
from benchmarks.workload import arrivals, control, make_contacts, target_of
from doonce.app.metrics import Metrics

WARM_UP = 20
GAP_SECONDS = (0.02, 0.08)


def prepare(setting: Setting) -> None:
    """Make the world, with nothing to do in it."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    contacts = make_contacts(setting.control_url, setting.options["jobs"] + WARM_UP)
    await make_tables(setting.database)
    engine = make_engine(setting, Metrics(), 1)
    await make_world(engine, make_view(setting.simulator_url), contacts)
    await engine.stop()
    await settle_down(setting.database)


def run(setting: Setting) -> Values:
    """Accept one at a time, with pauses."""
    asked_us = uvloop.run(_run(setting))
    arrived_us = {entry["target"]: entry["at_us"] for entry in arrivals(setting.control_url)}
    waits_ms = [(arrived_us[target] - at_us) / 1000 for target, at_us in asked_us.items()]
    return {"p50_ms": percentile(waits_ms, 0.5), "p99_ms": percentile(waits_ms, 0.99)}


async def _run(setting: Setting) -> dict[str, int]:
    watch = Metrics()
    engine = make_engine(setting, watch, 64)
    view = await engine.views.latest(*_scope())
    engine.start()
    contacts = await asyncio.to_thread(_contact_ids, setting)
    asked_us: dict[str, int] = {}
    for number, contact in enumerate(contacts):
        request = request_for(view, contact)
        at_us = time.time_ns() // 1000
        await engine.acceptor.accept_one(identity(), request)
        if number >= WARM_UP:
            asked_us[target_of(contact)] = at_us
        await asyncio.sleep(random.uniform(*GAP_SECONDS))
    await _wait_for_arrivals(setting, len(contacts))
    await engine.stop()
    return asked_us


def _scope() -> tuple[str, str, str]:
    return "bench", "only", "contacts"


def _contact_ids(setting: Setting) -> list[str]:
    shown = control(setting.control_url, "GET", "contacts")["results"]
    return [contact["id"] for contact in shown]


async def _wait_for_arrivals(setting: Setting, expected: int) -> None:
    async with asyncio.timeout(30):
        while len(await asyncio.to_thread(arrivals, setting.control_url)) < expected:
            await asyncio.sleep(0.05)

"""PROTOCOL C1 on a cluster: each node has a clock of its own, and moving to another node is a jump like any other."""

from __future__ import annotations

import asyncio
import time

import pytest
import sqlalchemy as sa
from tests.galera.cluster import do
from tests.galera.test_drills import migrated
from tests.process.effects.proxy import proxied

from doonce.base.errors import Unavailable
from doonce.db.database import Database, RetrySettings, open_database
from doonce.db.durability import Durability
from doonce.db.faults import DatabaseFault
from doonce.db.transaction import clock, steady_clock

pytestmark = [pytest.mark.process, pytest.mark.timeout(240)]

AHEAD_S = 600
HOLD_S = 3.0
WAIT_S = 60.0


async def seen_ahead(database: Database) -> float:
    """How far the clock is ahead of this host's, at whatever node the database is reached now."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                return (await database.transact(clock)) / 1e6 - time.time()
            except (Unavailable, DatabaseFault):
                await asyncio.sleep(0.1)


async def test_c1_moving_to_a_node_with_another_clock_stops_claims_for_the_hold(
    galera_nodes: list[str],
) -> None:
    first, second = (sa.make_url(url) for url in galera_nodes[:2])
    await migrated(galera_nodes[0])
    await do("stop", 2)
    await do("start", 2, ahead="+10m")
    settings = RetrySettings(clock_tolerance_us=1_000_000, clock_hold_us=int(HOLD_S * 1e6))
    try:
        with proxied(first.host or "", first.port or 3306) as proxy:
            url = first.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
            database = open_database(url, settings=settings)
            durability = Durability(database)
            await durability.check()
            assert abs(await seen_ahead(database)) < 60
            assert database.steady()
            proxy.cut()
            proxy.lead_to(second.host or "", second.port or 3306)
            proxy.restore()
            moved_s = time.monotonic()
            assert abs(await seen_ahead(database) - AHEAD_S) < 60
            assert database.clock_watch.jumps == 1
            assert await database.transact(steady_clock) is None, "what is paced by this time stands still"
            async with asyncio.timeout(WAIT_S):
                while await database.transact(steady_clock) is None:
                    await asyncio.sleep(0.1)
            assert time.monotonic() - moved_s >= HOLD_S
            await durability.check()
            assert durability.gate.open, durability.gate.reason
            assert database.clock_watch.jumps == 1
            await database.close()
    finally:
        await do("stop", 2)
        await do("start", 2)

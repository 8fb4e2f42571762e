"""The claimer's loop: whatever the database refuses, it looks again; only an order ends it."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.store.work.kernel import EFFECT, HERE, SCOPE, Kernel

from doonce.app.metrics import Metrics
from doonce.base.errors import Unavailable
from doonce.work.model import Claimed, Event, Scope, Settlement
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings
from doonce.work.store import claim


@pytest.mark.parametrize("refusals", [1, 3])
async def test_a_worker_outlasts_a_database_that_is_away_when_it_asks_for_its_scopes(
    kernel: Kernel, refusals: int
) -> None:
    await kernel.insert(kernel.new("one"))
    left = refusals
    ran = asyncio.Event()

    async def scopes() -> Sequence[Scope]:
        nonlocal left
        if left:
            left -= 1
            raise Unavailable("the database cannot be reached")
        return [SCOPE]

    async def run(claimed: Claimed) -> None:
        await worker.settlements.submit(Settlement(claimed, Event.SUCCEED))
        ran.set()

    worker: Worker[Claimed] = Worker(
        kernel.database,
        FamilyWork(EFFECT, lambda request: request, claim, lambda claimed: claimed, run),
        Identity(HERE, "prc_1"),
        scopes,
        WorkerSettings(poll_seconds=0.01),
        Metrics(),
        ProcessGate(),
    )
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        await ran.wait()
    worker.begin_drain()
    await working
    assert left == 0

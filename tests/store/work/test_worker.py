"""The claimer's loop: whatever the database refuses, it looks again; only an order ends it."""

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.store.work.kernel import EFFECT, HERE, SCOPE, Kernel, Places

from doonce.app.metrics import Metrics
from doonce.base.errors import Unavailable
from doonce.db.database import open_database
from doonce.db.transaction import Txn
from doonce.work.model import Claimed, Event, Scope, Settled, Settlement, State
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings
from doonce.work.store import ClaimRequest, claim


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


async def test_a_worker_keeps_its_floors_from_claim_to_claim(kernel: Kernel) -> None:
    """Or each of its looks would begin at the front, however long that takes."""
    asked: list[ClaimRequest] = []

    def claiming(request: ClaimRequest) -> Txn[list[Claimed]]:
        asked.append(request)
        if len(asked) == 2:
            worker.begin_drain()
        return (yield from claim(request))

    async def run(claimed: Claimed) -> None:
        raise AssertionError("there is nothing to run")

    worker: Worker[Claimed] = Worker(
        kernel.database,
        FamilyWork(EFFECT, lambda request: request, claiming, lambda claimed: claimed, run),
        Identity(HERE, "prc_1"),
        all_scopes,
        WorkerSettings(poll_seconds=0.01),
        Metrics(),
        ProcessGate(),
    )
    async with asyncio.timeout(30):
        await worker.run()
    assert asked[0].floors is not None
    assert asked[0].floors is asked[1].floors


async def all_scopes() -> Sequence[Scope]:
    return [SCOPE]


async def test_a_worker_whose_loop_stands_still_loses_its_lease_and_is_told_so(server_places: Places) -> None:
    """Nobody renews for it meanwhile, though its process and its threads live."""
    blocked, go_on = threading.Event(), threading.Event()
    settled: list[Settled] = []

    async def works(url: str) -> None:
        database = open_database(url)

        async def run(claimed: Claimed) -> None:
            blocked.set()
            assert go_on.wait(60)  # of the thread, so the loop stands still
            settled.append(await worker.settlements.submit(Settlement(claimed, Event.SUCCEED)))
            worker.begin_drain()

        worker: Worker[Claimed] = Worker(
            database,
            FamilyWork(EFFECT, lambda request: request, claim, lambda claimed: claimed, run),
            Identity(HERE, "prc_blocked"),
            all_scopes,
            WorkerSettings(lease_us=300_000, poll_seconds=0.01),
            Metrics(),
            ProcessGate(),
        )
        await worker.run()
        await database.close()

    async with server_places.kernel() as kernel:
        await kernel.insert(kernel.new("one"))
        thread = threading.Thread(target=lambda: asyncio.run(works(kernel.url)), daemon=True)
        thread.start()
        assert await asyncio.to_thread(blocked.wait, 30)
        async with asyncio.timeout(30):
            while not (taken := await kernel.claim(owner="prc_other")):
                await asyncio.sleep(0.02)
        go_on.set()
        await asyncio.to_thread(thread.join, 30)
        assert settled == [Settled.STALE]
        item = await kernel.item("one")
        assert (item.state, item.lease_token, item.expiries) == (State.PROCESSING, taken[0].token, 1)
        assert await kernel.settle(taken[0], Event.SUCCEED) is Settled.DONE

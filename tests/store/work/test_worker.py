"""The claimer's loop: whatever the database refuses, it looks again; only an order ends it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest
from tests.store.work.kernel import EFFECT, HERE, SCOPE, Kernel, Places

from doonce.app.metrics import Metrics
from doonce.base.errors import Unavailable
from doonce.db.database import Database, open_database
from doonce.db.transaction import Txn
from doonce.work import pauses
from doonce.work.model import Claimed, Event, Scope, Settled, Settlement, State
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings
from doonce.work.store import ClaimRequest, claim


async def all_scopes() -> Sequence[Scope]:
    return [SCOPE]


def worker_of(
    database: Database,
    run: Callable[[Claimed], Coroutine[Any, Any, None]],
    *,
    claiming: Callable[[ClaimRequest], Txn[list[Claimed]]] = claim,
    scopes: Callable[[], Awaitable[Sequence[Scope]]] = all_scopes,
    lease_us: int = WorkerSettings().lease_us,
    owner: str = "prc_1",
    may_claim: Callable[[], bool] = lambda: True,
) -> Worker[Claimed]:
    """A worker of effects that looks often; what it claims is run as it is."""
    return Worker(
        database,
        FamilyWork(EFFECT, lambda request: request, claiming, lambda claimed: claimed, run),
        Identity(HERE, owner),
        scopes,
        WorkerSettings(lease_us=lease_us, poll_seconds=0.01),
        Metrics(),
        ProcessGate(),
        may_claim,
    )


@pytest.mark.parametrize("refusals", [1, 3])
async def test_a_worker_outlasts_a_database_that_is_away_when_it_asks_for_its_scopes(
    kernel: Kernel, refusals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kernel.insert(kernel.new("one"))
    left = refusals
    sat_out: list[float] = []

    def sit_out(poll_seconds: float) -> float:
        sat_out.append(poll_seconds)
        return 0.0

    monkeypatch.setattr(pauses, "after_failure", sit_out)
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

    worker = worker_of(kernel.database, run, scopes=scopes)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        await ran.wait()
    worker.begin_drain()
    await working
    assert left == 0
    assert sat_out == [0.01] * refusals, "each time as long as no other process"


async def test_c1_a_worker_asks_for_nothing_while_the_databases_clock_is_not_trusted(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("one"))
    watch = kernel.database.clock_watch
    watch._hold_until_us = 2**62
    looks: list[bool] = []
    asked: list[bool] = []

    def may_claim() -> bool:
        looks.append(kernel.database.steady())
        if len(looks) == 3:
            watch._hold_until_us = 0
        return True

    def claiming(request: ClaimRequest) -> Txn[list[Claimed]]:
        asked.append(kernel.database.steady())
        return (yield from claim(request))

    async def run(claimed: Claimed) -> None:
        await worker.settlements.submit(Settlement(claimed, Event.SUCCEED))
        worker.begin_drain()

    worker = worker_of(kernel.database, run, claiming=claiming, may_claim=may_claim)
    async with asyncio.timeout(30):
        await worker.run()
    assert looks[:3] == [False] * 3
    assert asked
    assert all(asked), "what it asks before is asked in vain"


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

    worker = worker_of(kernel.database, run, claiming=claiming)
    async with asyncio.timeout(30):
        await worker.run()
    assert asked[0].floors is not None
    assert asked[0].floors is asked[1].floors


async def test_a_worker_that_cannot_renew_its_leases_ends_with_the_reason(kernel: Kernel) -> None:
    async def failing() -> None:
        raise ZeroDivisionError

    async def run(claimed: Claimed) -> None:
        await asyncio.Event().wait()

    await kernel.insert(kernel.new("one"))
    worker = worker_of(kernel.database, run)
    worker.leases.run = failing  # type: ignore[method-assign]  # a fault that is not the database's
    async with asyncio.timeout(30):
        with pytest.raises(ZeroDivisionError):
            await worker.run()
    assert worker.running == 0


async def test_a_worker_that_is_cancelled_has_ended_what_it_ran(kernel: Kernel) -> None:
    began = asyncio.Event()
    ended: list[str] = []

    async def run(claimed: Claimed) -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)  # as closing a connection takes
            ended.append(claimed.item.id)

    await kernel.insert(kernel.new("one"))
    worker = worker_of(kernel.database, run)
    working = asyncio.create_task(worker.run())
    async with asyncio.timeout(30):
        await began.wait()
        working.cancel()
        await asyncio.wait([working])
    assert working.cancelled()
    assert len(ended) == 1


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

        worker = worker_of(database, run, lease_us=300_000, owner="prc_blocked")
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

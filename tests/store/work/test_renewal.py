"""C3 and T3: a renewal strictly advances, and none comes after the lease has run out, however long it waited."""

import asyncio

import asyncpg
import pytest
from tests.store.work.kernel import EXPIRED_US, LONG_US, Kernel, Places

from doonce.work.model import Event, Settled


async def test_c3_a_renewal_strictly_advances_even_by_less_than_it_has(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    claimed = await kernel.claim_one(lease_us=LONG_US)
    first = await kernel.renew(claimed, lease_us=1)
    assert first == claimed.lease_until + 1
    second = await kernel.renew(claimed, lease_us=2 * LONG_US)
    assert second is not None
    assert second > first
    assert (await kernel.item("a")).lease_until == second


async def test_c3_an_expired_lease_is_neither_renewed_nor_settled_though_nobody_took_it(
    kernel: Kernel,
) -> None:
    await kernel.insert(kernel.new("a"))
    claimed = await kernel.claim_one(lease_us=EXPIRED_US)
    assert await kernel.renew(claimed) is None
    assert await kernel.settle(claimed, Event.SUCCEED) is Settled.STALE
    assert (await kernel.item("a")).lease_until == claimed.lease_until


@pytest.mark.parametrize("beyond_us", [0, 1])
async def test_c3_at_exact_equality_the_lease_lives_and_cannot_be_reclaimed(
    sqlite_places: Places, beyond_us: int
) -> None:
    """Each question to a database of its own: its clock moves on with every transaction, so only one meets the end."""
    for settles in (True, False):
        async with sqlite_places.kernel() as kernel:
            await kernel.insert(kernel.new("a"))
            claimed = await kernel.claim_one(lease_us=LONG_US)
            kernel.host.now_us = claimed.lease_until + beyond_us
            if settles:
                expected = Settled.STALE if beyond_us else Settled.DONE
                assert await kernel.settle(claimed, Event.SUCCEED) is expected
            else:
                assert len(await kernel.claim()) == beyond_us


@pytest.mark.postgresql
async def test_t3_a_renewal_that_waited_behind_a_lock_beyond_its_lease_fails(postgres_places: Places) -> None:
    async with postgres_places.kernel() as kernel:
        await kernel.insert(kernel.new("a"))
        lease_us = 300_000
        claimed = await kernel.claim_one(lease_us=lease_us)
        blocker: asyncpg.Connection = await asyncpg.connect(kernel.url)
        async with blocker.transaction():
            await blocker.execute("SELECT id FROM work_item FOR UPDATE")
            renewal = asyncio.create_task(kernel.renew(claimed))
            while not await blocker.fetchval(
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint > $1", claimed.lease_until
            ):
                assert not renewal.done()
        assert await renewal is None
        assert (await kernel.item("a")).lease_until == claimed.lease_until
        await blocker.close()


@pytest.mark.postgresql
async def test_t3_the_lock_time_out_is_far_below_a_lease(postgres_places: Places) -> None:
    async with postgres_places.kernel() as kernel:
        assert kernel.database.driver.settings.lock_timeout_ms * 1_000 * 5 <= 30_000_000

"""S3, D2: the owner of a family is fenced for as long as a transaction runs that relies on it."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.store.work.kernel import HERE, Kernel, Places
from tests.store.work.stepper import lock_waits

from doonce.db.transaction import Txn, fetch, lock_exclusive
from doonce.ownership import store as ownership
from doonce.ownership.model import Family, Ownership, OwnershipState
from doonce.ownership.tables import work_ownership
from doonce.work.model import Event, Settled


async def test_a_fresh_database_gets_epoch_one_of_every_family_and_only_once(kernel: Kernel) -> None:
    owners = await kernel.database.transact(ownership.install, "elsewhere", "sha256:other", "op_2")
    assert {owner.family for owner in owners} == {family.value for family in Family}
    assert {(owner.deployment, owner.epoch, owner.operation_id, owner.state) for owner in owners} == {
        (HERE, 1, "op_1", OwnershipState.ACTIVE)
    }
    assert await kernel.database.read(ownership.read_all) == owners


async def test_a_fence_tells_the_owners_of_what_was_asked_and_of_nothing_else(kernel: Kernel) -> None:
    owners = await kernel.database.transact(ownership.fence, ["effect", "unheard_of", "effect"])
    assert set(owners) == {"effect"}
    assert await kernel.database.transact(ownership.fence, []) == {}


@pytest.mark.parametrize("state", OwnershipState)
def test_who_may_claim_and_who_may_finish(state: OwnershipState) -> None:
    owner = Ownership("effect", HERE, "sha256:release", 2, "op_1", state)
    assert owner.admits(HERE) == (state is OwnershipState.ACTIVE)
    assert not owner.admits("elsewhere")
    assert owner.lets_finish(HERE, 2) == (state is not OwnershipState.FENCED)
    assert not owner.lets_finish(HERE, 1)
    assert not owner.lets_finish(HERE, 3)
    assert not owner.lets_finish("elsewhere", 2)


async def test_d2_a_transfer_waits_for_transactions_that_rely_on_the_owner_and_is_seen_by_the_next(
    server_places: Places,
) -> None:
    async with server_places.kernel() as kernel:
        await kernel.insert(kernel.new("a"))
        claimed = await kernel.claim_one()
        fenced, may_end = asyncio.Event(), asyncio.Event()
        order: list[str] = []

        def effect() -> Txn[str]:
            owners = yield from ownership.fence(["effect"])
            fenced.set()
            while not may_end.is_set():
                yield from fetch(ownership.READ_ALL)
            order.append("effect")
            return owners["effect"].deployment

        def transfer() -> Txn[None]:
            yield from lock_exclusive(ownership.lock_names(["effect"]))
            order.append("transfer")

        acting = asyncio.create_task(kernel.database.transact(effect))
        await fenced.wait()
        moving = asyncio.create_task(kernel.database.transact(transfer))
        while not await asyncio.to_thread(waiting_for_names, kernel):
            assert not moving.done()
        may_end.set()
        assert await acting == HERE
        await moving
        assert order == ["effect", "transfer"]
        await kernel.execute(work_ownership.update().values(deployment="elsewhere", epoch=2))
        assert await kernel.settle(claimed, Event.SUCCEED) is Settled.STALE


def waiting_for_names(kernel: Kernel) -> int:
    """How many transactions wait for a named lock."""
    if kernel.on_mariadb:
        fence = f"`{kernel.schema}`.`doonce_fence`"
        return sum(fence in block for block in lock_waits(kernel.engine))
    with kernel.connect() as connection:
        text = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(connection.scalar(text) or 0)

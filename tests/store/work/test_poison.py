"""W2: an item that kills its worker again and again is found alone, and nobody else is convicted with it."""

from tests.store.work.kernel import EFFECT, EXPIRED_US, Kernel, name_of

from doonce.work.model import Claimed, Event, Settled, Shelf
from doonce.work.store import suspects_wait
from doonce.work.tables import work_item, work_lease, work_ready

POISON = "poison"


async def crash(kernel: Kernel, **fields: object) -> list[Claimed]:
    """Claim everything and die of it: every lease runs out unreported."""
    return await kernel.claim(500, lease_us=EXPIRED_US, **fields)


async def test_w2_a_crash_loop_convicts_only_the_item_that_dies_alone(kernel: Kernel) -> None:
    names = [f"innocent{number:02}" for number in range(40)]
    await kernel.insert(*[kernel.new(name) for name in [*names, POISON]])
    for _ in range(3):
        await crash(kernel)
    assert await crash(kernel) == [], "at the bound nothing is taken together any more"
    assert await kernel.database.transact(suspects_wait, EFFECT)

    for _ in range(len(names) + 1):
        (alone,) = await kernel.claim(500, alone=True)
        if name_of(alone) == POISON:
            assert not alone.poison, "dying with others is no proof"
            await expire(kernel, alone)
        else:
            assert await kernel.settle(alone, Event.SUCCEED) is Settled.DONE
    assert await kernel.claim(alone=True) == []

    (convicted,) = await kernel.claim()
    assert (name_of(convicted), convicted.poison) == (POISON, True)
    assert await kernel.settle(convicted, Event.DIE, failure_class="poison") is Settled.DONE
    states = await kernel.states()
    assert states.pop(POISON) == "dead"
    assert set(states.values()) == {"succeeded"}
    assert (await kernel.item(POISON)).attempts == 0


async def expire(kernel: Kernel, claimed: Claimed) -> None:
    """The process dies: its lease runs out."""
    assert await kernel.renew(claimed, lease_us=0) is not None
    await kernel.execute(
        work_item.update().where(work_item.c.id == claimed.item.id).values(lease_until=1),
        work_lease.update().where(work_lease.c.token == claimed.token).values(due=2),
    )


async def test_w2_a_reported_end_starts_the_count_again(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    for _ in range(2):
        await crash(kernel)
    assert await kernel.settle(await kernel.claim_one(), Event.RETRY) is Settled.DONE
    assert (await kernel.item("a")).expiries == 0
    for _ in range(3):
        assert len(await crash(kernel)) == 1
    assert await crash(kernel) == []


async def test_w2_going_back_unstarted_reports_no_end(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    for _ in range(2):
        await crash(kernel)
    await kernel.settle(await kernel.claim_one(), Event.HAND_BACK)
    assert (await kernel.item("a")).expiries == 2
    assert len(await crash(kernel)) == 1
    assert await crash(kernel) == []


async def test_w2_an_innocent_that_ran_alone_is_an_ordinary_item_again(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    for _ in range(4):
        await crash(kernel)
    (alone,) = await kernel.claim(alone=True)
    assert await kernel.settle(alone, Event.RETRY) is Settled.DONE
    item = await kernel.item("a")
    assert (item.alone, item.expiries) == (False, 0)
    assert len(await crash(kernel)) == 1
    assert not (await kernel.claim_one()).poison


async def test_w2_a_suspect_handed_back_is_still_a_suspect(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    for _ in range(4):
        await crash(kernel)
    (alone,) = await kernel.claim(alone=True)
    assert await kernel.settle(alone, Event.HAND_BACK) is Settled.DONE
    assert await kernel.claim() == []
    assert [name_of(claimed) for claimed in await kernel.claim(alone=True)] == ["a"]


async def test_w2_shelving_again_and_again_keeps_one_hint(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    for _ in range(4):
        await crash(kernel)
    for _ in range(3):
        await kernel.sweep()
        assert await kernel.claim() == []
    rows = await kernel.rows(work_ready)
    assert [(row["item_id"], row["shelf"]) for row in rows] == [("wrk_a", Shelf.ALONE.value)]

"""W7: ready rows are derived. Deleted, they come back; doubled or invented, they lose the compare-and-swap."""

import random

import pytest
import sqlalchemy as sa
from tests.store.work.kernel import EFFECT, EXPIRED_US, LONG_US, SCOPE, Kernel, blocking, name_of, passing

from doonce.work import store
from doonce.work.model import Event
from doonce.work.tables import work_claimer, work_item, work_ready


async def some_of_everything(kernel: Kernel) -> None:
    await kernel.insert(
        kernel.new("free"),
        kernel.new("late", delay_us=LONG_US),
        kernel.new("t1a", target_lane="t1"),
        kernel.new("t1b", target_lane="t1"),
        kernel.new("s1a", **blocking("s1"), target_lane="t2"),
        kernel.new("s1b", **blocking("s1"), target_lane="t2"),
        kernel.new("s2a", **passing("s2")),
        kernel.new("s2b", **passing("s2"), target_lane="t1"),
    )


async def invent(kernel: Kernel, seed: int) -> None:
    """Up to two hints for everything, due long ago, with what its lanes are."""
    dice = random.Random(seed)
    items = [item for item in await kernel.rows(work_item) for _ in range(dice.randint(0, 2))]
    rows = [
        {
            "family": EFFECT, "shelf": 0, "org": SCOPE.org, "installation": SCOPE.installation,
            "due": dice.randrange(10**9), "item_id": item["id"], "source_lane": item["source_lane"],
            "target_lane": item["target_lane"],
        }
        for item in items
    ]  # fmt: skip
    if rows:
        await kernel.execute(sa.insert(work_ready).values(rows))


async def work_through(kernel: Kernel, seed: int) -> list[str]:
    """Claim and settle in any manner until all has ended; checks order and exclusion on the way."""
    dice = random.Random(seed)
    ran: list[str] = []
    running = []
    for _ in range(200):
        await invent(kernel, dice.randrange(10**6))
        if dice.random() < 0.5:
            await kernel.lose_hints()
            await kernel.sweep()
        running += await kernel.claim(dice.randint(1, 4))
        lanes = [
            lane for c in running for lane in (c.item.source_lane, c.item.target_lane) if lane is not None
        ]
        assert len(lanes) == len(set(lanes)), "two in one lane"
        if running:
            claimed = running.pop(dice.randrange(len(running)))
            again = dice.random() < 0.3
            await kernel.settle(claimed, Event.RETRY if again else Event.SUCCEED)
            if not again:
                ran.append(name_of(claimed))
        elif all(state == "succeeded" for name, state in (await kernel.states()).items() if name != "late"):
            return ran
    raise AssertionError("work does not end")


@pytest.mark.parametrize("seed", range(5))
async def test_w7_hints_deleted_and_invented_at_will_change_neither_order_nor_the_end(
    kernel: Kernel, seed: int
) -> None:
    await some_of_everything(kernel)
    ran = await work_through(kernel, seed)
    assert sorted(ran) == sorted(["free", "t1a", "t1b", "s1a", "s1b", "s2a", "s2b"])
    assert ran.index("s1a") < ran.index("s1b")
    assert ran.index("s2a") < ran.index("s2b")
    assert (await kernel.states())["late"] == "pending"


async def test_w7_all_hints_deleted_the_sweep_restores_what_an_undisturbed_kernel_has(kernel: Kernel) -> None:
    await some_of_everything(kernel)
    before = await kernel.rows(work_ready)
    await kernel.lose_hints()
    assert await kernel.claim() == []
    await kernel.sweep()
    assert sorted(map(str, await kernel.rows(work_ready))) == sorted(map(str, before))


async def test_w7_the_sweep_finds_a_crashed_holders_items(kernel: Kernel) -> None:
    await some_of_everything(kernel)
    crashed = await kernel.claim(lease_us=EXPIRED_US)
    await kernel.lose_hints()
    await kernel.sweep()
    assert [c.item.id for c in await kernel.claim()] == [c.item.id for c in crashed]


async def test_w7_a_hint_that_lost_its_lanes_takes_nothing_out_of_turn(kernel: Kernel) -> None:
    await some_of_everything(kernel)
    await kernel.execute(work_ready.update().values(source_lane=None, target_lane=None))
    assert await kernel.names() == ["free"]
    await kernel.sweep()
    assert await kernel.names() == ["s1a", "s2a", "t1a"]


async def test_w7_spare_hints_of_ended_items_are_dropped_as_they_are_met(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.settle(await kernel.claim_one(), Event.SUCCEED)
    await invent(kernel, 3)
    assert await kernel.claim() == []
    assert await kernel.rows(work_ready) == []


async def test_the_sweep_goes_on_where_it_was_told_to_and_says_when_it_is_through(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "abcde"])
    await kernel.lose_hints()
    after = await kernel.database.transact(store.sweep, "", 2)
    assert after == "wrk_b"
    assert await kernel.names() == ["a", "b"]
    assert await kernel.database.transact(store.sweep, "wrk_d", 2) == ""
    assert await kernel.names() == ["e"]


async def test_the_sweep_forgets_the_last_claims_of_long_gone_processes(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"), kernel.new("b"))
    await kernel.claim(1, owner="prc_old")
    await kernel.execute(work_claimer.update().values(claimed_at=1))
    await kernel.claim(1, owner="prc_new")
    await kernel.sweep()
    assert [row["owner"] for row in await kernel.rows(work_claimer)] == ["prc_new"]

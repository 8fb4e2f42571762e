"""L1, L4: a target lane excludes: one item of a remote object at a time, and none while an attempt is unresolved."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.store.work.kernel import EXPIRED_US, LONG_US, Kernel, blocking, name_of

from doonce.db.transaction import Txn, clock
from doonce.work import lanes as lane_store
from doonce.work import store
from doonce.work.model import Event, NewItem, Settled
from doonce.work.tables import work_lane, work_ready


async def test_l1_one_item_of_a_target_lane_is_processed_at_a_time(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name, target_lane="t") for name in "abc"])
    for name in "abc":
        (claimed,) = await kernel.claim()
        assert name_of(claimed) == name
        assert await kernel.claim() == []
        await kernel.settle(claimed, Event.SUCCEED)
    assert await kernel.claim() == []


async def test_l1_exclusion_holds_under_concurrency(kernel: Kernel) -> None:
    running: set[str] = set()
    ended = 0

    async def consume(owner: str) -> None:
        nonlocal ended
        while ended < 30:
            for claimed in await kernel.claim(4, owner=owner):
                lane = claimed.item.target_lane
                assert lane is not None
                assert lane not in running
                running.add(lane)
                await asyncio.sleep(0)
                running.remove(lane)
                assert await kernel.settle(claimed, Event.SUCCEED) is Settled.DONE
                ended += 1

    await kernel.insert(*[kernel.new(target_lane=f"t{number % 3}") for number in range(30)])
    async with asyncio.timeout(60):
        await asyncio.gather(*[consume(f"prc_{number}") for number in range(3)])


@pytest.mark.parametrize("event", [Event.RETRY, Event.DEFER])
async def test_l4_an_item_that_waits_holds_no_target_lane(kernel: Kernel, event: Event) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"), kernel.new("b", target_lane="t"))
    await kernel.settle(await kernel.claim_one(), event, delay_us=LONG_US)
    assert await kernel.names() == ["b"]


async def test_the_item_due_first_goes_first(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("late", target_lane="t", delay_us=LONG_US))
    await kernel.insert(kernel.new("now", target_lane="t"))
    claimed = await kernel.claim_one()
    assert name_of(claimed) == "now"
    await kernel.insert(kernel.new("meanwhile", target_lane="t"))
    await kernel.settle(claimed, Event.RETRY, delay_us=2 * LONG_US)
    claimed = await kernel.claim_one()
    assert name_of(claimed) == "meanwhile"
    await kernel.settle(claimed, Event.SUCCEED)
    assert await kernel.claim() == []
    ready = {row["item_id"] for row in await kernel.rows(work_ready)}
    assert "wrk_late" in ready


async def test_l1_a_crashed_holder_keeps_its_lane_until_it_is_reclaimed(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"), kernel.new("b", target_lane="t"))
    await kernel.claim(lease_us=EXPIRED_US)
    again = await kernel.claim()
    assert [name_of(claimed) for claimed in again] == ["a"]
    await kernel.settle(again[0], Event.SUCCEED)
    assert await kernel.names() == ["b"]


async def test_both_lanes_an_item_waits_for_its_line_and_for_its_object(kernel: Kernel) -> None:
    await kernel.insert(
        kernel.new("holder", target_lane="t"),
        kernel.new("head", **blocking("s")),
        kernel.new("both", **blocking("s"), target_lane="t"),
        kernel.new("other", target_lane="t"),
    )
    claims = {name_of(claimed): claimed for claimed in await kernel.claim()}
    assert sorted(claims) == ["head", "holder"]
    await kernel.settle(claims["head"], Event.SUCCEED)
    assert await kernel.claim() == []
    await kernel.settle(claims["holder"], Event.SUCCEED)
    (first,) = await kernel.claim()
    await kernel.settle(first, Event.SUCCEED)
    (second,) = await kernel.claim()
    assert {name_of(first), name_of(second)} == {"both", "other"}


async def test_l4_a_lane_held_for_an_attempt_admits_nobody_but_its_successor(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("unknown", target_lane="t"), kernel.new("behind", target_lane="t"))
    claimed = await kernel.claim_one()
    await kernel.settle(claimed, Event.DIE, failure_class="outcome_unknown", hold_lane_for="att_1")
    assert (await kernel.rows(work_lane))[0]["holder"] == "att_1"
    await kernel.insert(kernel.new("later", target_lane="t"))
    await kernel.sweep()
    assert await kernel.claim() == []

    successor = kernel.new(
        "successor", target_lane="t", predecessor="wrk_unknown", target_position=claimed.item.target_position
    )
    await kernel.database.transact(hand_on, "t", successor)
    (first,) = await kernel.claim()
    assert name_of(first) == "successor"
    await kernel.settle(first, Event.SUCCEED)
    assert await kernel.drain() == ["behind", "later"]


def hand_on(lane: str, successor: NewItem) -> Txn[None]:
    """As a disposition does it: the hold passes to the successor, in the transaction that makes it (L5)."""
    held = yield from lane_store.lock([lane])
    held[lane].hold(successor.id)
    yield from store.insert([successor], held)
    yield from lane_store.save(held.values())


async def test_l5_a_successor_that_is_cancelled_while_it_waits_frees_the_lane(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("unknown", target_lane="t"), kernel.new("behind", target_lane="t"))
    await kernel.settle(await kernel.claim_one(), Event.DIE, hold_lane_for="att_1")
    await kernel.database.transact(
        hand_on, "t", kernel.new("successor", target_lane="t", predecessor="wrk_unknown", delay_us=LONG_US)
    )
    assert await kernel.claim() == []
    await kernel.cancel("successor")
    assert await kernel.names() == ["behind"]


def free(lane: str, hold_us: int) -> Txn[int]:
    """As a conclusion does it: nobody holds the lane any more, but it opens only at the horizon (H3, L4)."""
    held = yield from lane_store.lock([lane])
    now_us = yield from clock()
    held[lane].hold(None, now_us + hold_us)
    yield from lane_store.promote(held, set(), {lane}, now_us)
    yield from lane_store.save(held.values())
    return now_us + hold_us


async def test_l4_a_lane_stays_closed_until_its_horizon(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("unknown", target_lane="t"), kernel.new("behind", target_lane="t"))
    await kernel.settle(await kernel.claim_one(), Event.DIE, hold_lane_for="att_1")
    horizon = await kernel.database.transact(free, "t", LONG_US)
    await kernel.insert(kernel.new("later", target_lane="t"))
    assert await kernel.claim() == []
    early = sa.update(work_ready).values(due=1)
    await kernel.execute(early)
    assert await kernel.claim() == [], "a hint that comes too early does not open the lane"
    assert horizon in {row["due"] for row in await kernel.rows(work_ready)}
    await kernel.execute(sa.update(work_lane).values(hold_until=0), early)
    assert await kernel.drain() == ["behind", "later"]


async def test_promotion_is_idempotent_and_rebuilds_a_lane(kernel: Kernel) -> None:
    await kernel.insert(
        *[kernel.new(name, **blocking("s"), target_lane="t") for name in "ab"],
        kernel.new("c", target_lane="t"),
    )
    before = await kernel.tables()
    for _ in range(2):
        await kernel.sweep()
        assert await kernel.tables() == before or kernel.on_sqlite
    await kernel.lose_hints()
    await kernel.execute(work_lane.update().values(nominee=None, nominee_due=0))
    await kernel.sweep()
    assert await kernel.drain() == ["a", "b", "c"]

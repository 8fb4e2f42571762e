"""L1–L3: a source lane is a line. Its head alone runs, and the one behind it comes when the head has ended."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.store.work.kernel import EXPIRED_US, LONG_US, SCOPE, Kernel, blocking, name_of, passing

from doonce.db.transaction import Txn
from doonce.work import lanes as lane_store
from doonce.work import settle, store
from doonce.work.items import lock_items_then_clock
from doonce.work.model import Event, LanePolicy, Settled, Settlement
from doonce.work.tables import work_lane, work_lane_entry


async def test_l1_first_in_first_out_whatever_the_batches(kernel: Kernel) -> None:
    names = [f"{number:03}" for number in range(30)]
    for start in range(0, 30, 7):
        await kernel.insert(*[kernel.new(name, **blocking("s")) for name in names[start : start + 7]])
    assert await kernel.drain() == names


async def test_l1_first_in_first_out_under_concurrent_inserts_claims_and_settlements(kernel: Kernel) -> None:
    lanes, length = 4, 12
    order: dict[str, list[int]] = {f"s{lane}": [] for lane in range(lanes)}

    async def produce(lane: str) -> None:
        for number in range(length):
            await kernel.insert(kernel.new(f"{lane}_{number:02}", **blocking(lane)))

    async def consume(owner: str) -> None:
        while sum(map(len, order.values())) < lanes * length:
            for claimed in await kernel.claim(3, owner=owner):
                assert claimed.item.source_lane is not None
                order[claimed.item.source_lane].append(int(name_of(claimed)[-2:]))
                assert await kernel.settle(claimed, Event.SUCCEED) is Settled.DONE

    async with asyncio.timeout(60):
        await asyncio.gather(*[produce(lane) for lane in order], consume("prc_1"), consume("prc_2"))
    assert order == {lane: list(range(length)) for lane in order}


async def test_l2_positions_are_drawn_in_the_order_of_the_lanes_lock(kernel: Kernel) -> None:
    await asyncio.gather(*[kernel.insert(kernel.new(**blocking("s"))) for _ in range(20)])
    entries = await kernel.rows(work_lane_entry)
    assert sorted(row["position"] for row in entries) == list(range(1, 21))
    assert (await kernel.rows(work_lane))[0]["tail"] == 20


@pytest.mark.parametrize("event", [Event.RETRY, Event.DEFER, Event.HAND_BACK])
async def test_l1_a_head_that_comes_back_is_still_the_head(kernel: Kernel, event: Event) -> None:
    await kernel.insert(kernel.new("a", **blocking("s")), kernel.new("b", **blocking("s")))
    delay = {} if event is Event.HAND_BACK else {"delay_us": LONG_US}
    assert await kernel.settle(await kernel.claim_one(), event, **delay) is Settled.DONE
    assert await kernel.names() == (["a"] if event is Event.HAND_BACK else [])


async def test_l1_a_crashed_head_is_reclaimed_before_anybody_behind_it(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", **blocking("s")), kernel.new("b", **blocking("s")))
    assert await kernel.names(lease_us=EXPIRED_US) == ["a"]
    assert await kernel.names() == ["a"]


async def test_l1_a_later_head_waits_for_its_own_time(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", **blocking("s"), delay_us=LONG_US), kernel.new("b", **blocking("s")))
    assert await kernel.names() == []


@pytest.mark.parametrize("policy", LanePolicy)
async def test_l3_a_dead_head_blocks_or_lets_pass_as_its_lane_was_declared(
    kernel: Kernel, policy: LanePolicy
) -> None:
    lane = {"source_lane": "s", "source_policy": policy}
    await kernel.insert(kernel.new("a", **lane), kernel.new("b", **lane))
    await kernel.settle(await kernel.claim_one(), Event.DIE, failure_class="test")
    assert await kernel.names() == (["b"] if policy is LanePolicy.PASS else [])
    await kernel.sweep()
    assert await kernel.names() == []


async def test_l3_a_lane_keeps_the_policy_it_was_made_with(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", **blocking("s")))
    await kernel.insert(kernel.new("b", **passing("s")))
    await kernel.settle(await kernel.claim_one(), Event.DIE)
    assert await kernel.names() == []


async def test_l3_an_operator_releases_a_dead_head_once(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name, **blocking("s")) for name in "abc"])
    await kernel.settle(await kernel.claim_one(), Event.DIE)
    release = kernel.database.transact
    assert not await release(settle.release_head, "s", "wrk_b"), "it is not the head, and has not ended"
    assert not await release(settle.release_head, "other", "wrk_a")
    assert await release(settle.release_head, "s", "wrk_a")
    assert await kernel.names() == ["b"]
    assert await release(settle.release_head, "s", "wrk_a"), "asked for again, it is still so"
    assert await kernel.names() == []


async def test_l2_a_successor_takes_its_dead_predecessors_place(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name, **blocking("s")) for name in "ab"])
    dead = await kernel.claim_one()
    await kernel.settle(dead, Event.DIE)
    await kernel.insert(
        kernel.new("c", **blocking("s"), predecessor="wrk_a", source_position=dead.item.source_position)
    )
    assert await kernel.drain() == ["c", "b"]


@pytest.mark.parametrize("policy", [blocking, passing])
async def test_l2_a_successor_takes_the_place_that_its_predecessor_left_it(
    kernel: Kernel, policy: Callable[[str], dict[str, Any]]
) -> None:
    await kernel.insert(*[kernel.new(name, **policy("s")) for name in "ab"])
    first = await kernel.claim_one()

    def passed_on() -> Txn[None]:
        held = yield from lane_store.lock(["s"])
        items, now_us = yield from lock_items_then_clock([first.item.id])
        done = Settlement(first, Event.SUCCEED, leaves_place=True)
        assert (yield from settle.apply([done], items, held, now_us)) == [Settled.DONE]
        position = first.item.source_position
        yield from store.insert(
            [kernel.new("c", **policy("s"), predecessor="wrk_a", source_position=position)], held
        )
        yield from lane_store.save(held.values())

    await kernel.database.transact(passed_on)
    assert await kernel.drain() == ["c", "b"]
    assert (await kernel.item("c")).source_position == 1


async def test_l2_a_successor_after_the_lane_went_on_goes_to_its_end(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name, **blocking("s"), target_lane="t") for name in "abc"])
    dead = await kernel.claim_one()
    await kernel.settle(dead, Event.DIE)
    await kernel.database.transact(settle.release_head, "s", "wrk_a")
    await kernel.insert(
        kernel.new(
            "d",
            **blocking("s"),
            target_lane="t",
            predecessor="wrk_a",
            source_position=dead.item.source_position,
            target_position=dead.item.target_position,
        )
    )
    assert await kernel.drain() == ["b", "c", "d"]


async def test_l2_a_successor_in_a_passing_lane_goes_to_its_end(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name, **passing("s")) for name in "ab"])
    dead = await kernel.claim_one()
    await kernel.settle(dead, Event.DIE)
    await kernel.insert(
        kernel.new("c", **passing("s"), predecessor="wrk_a", source_position=dead.item.source_position)
    )
    assert await kernel.drain() == ["b", "c"]


async def test_l1_bringing_forward_does_not_bring_out_of_line(kernel: Kernel) -> None:
    late = {"subject_id": "cmd_late", "delay_us": LONG_US}
    await kernel.insert(
        kernel.new("head", **blocking("s")),
        kernel.new("behind", **blocking("s"), **late, target_lane="t"),
        kernel.new("free", **late),
        kernel.new("target", **late, target_lane="t2"),
    )
    assert await kernel.database.transact(settle.bring_forward, "cmd_late", "effect")
    claims = {name_of(claimed): claimed for claimed in await kernel.claim()}
    assert sorted(claims) == ["free", "head", "target"]
    await kernel.settle(claims["head"], Event.SUCCEED)
    assert await kernel.names() == ["behind"]
    assert not await kernel.database.transact(settle.bring_forward, "cmd_nobody", "effect")


async def test_l1_an_item_brought_forward_out_of_turn_does_not_keep_its_target_lane_from_others(
    kernel: Kernel,
) -> None:
    await kernel.insert(
        kernel.new("head", **blocking("s"), delay_us=LONG_US),
        kernel.new("behind", **blocking("s"), target_lane="t", delay_us=LONG_US, subject_id="cmd_late"),
        kernel.new("holder", target_lane="t"),
    )
    holder = await kernel.claim_one()
    await kernel.database.transact(settle.bring_forward, "cmd_late", "effect")
    await kernel.insert(kernel.new("other", target_lane="t"))
    await kernel.settle(holder, Event.SUCCEED)
    assert await kernel.names() == ["other"]


async def test_lanes_of_other_names_do_not_wait_for_each_other(kernel: Kernel) -> None:
    await kernel.insert(
        *[kernel.new(f"{lane}{number}", **blocking(lane)) for lane in "xyz" for number in range(2)]
    )
    assert await kernel.names() == ["x0", "y0", "z0"]


async def test_an_insert_run_again_inserts_nothing_twice(kernel: Kernel) -> None:
    items = [kernel.new("a", **blocking("s")), kernel.new("b", **blocking("s"), scope=SCOPE)]
    await kernel.insert(*items)
    before = await kernel.tables()
    await kernel.insert(*items)
    after = await kernel.tables()
    assert after == before
    await kernel.database.transact(store.enqueue, [])

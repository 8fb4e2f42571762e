"""W5: what waits is cancelled at once, what runs is asked, what has ended stays as it is."""

import pytest
from tests.store.work.kernel import LONG_US, Kernel, blocking, name_of

from doonce.work.model import Event, Settled
from doonce.work.settle import Cancelled
from doonce.work.tables import work_item, work_lane_entry


async def test_w5_pending_and_retry_are_cancelled_at_once(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("retry"))
    await kernel.settle(await kernel.claim_one(), Event.RETRY, delay_us=LONG_US)
    await kernel.insert(kernel.new("pending"))
    assert await kernel.cancel("pending", "retry") == {
        "wrk_pending": Cancelled.CANCELLED,
        "wrk_retry": Cancelled.CANCELLED,
    }
    assert set((await kernel.states()).values()) == {"cancelled"}
    assert await kernel.claim() == []
    assert all(row["finished_at"] is not None for row in await kernel.rows(work_item))


async def test_w5_a_running_item_is_asked_and_its_holder_acknowledges(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"))
    claimed = await kernel.claim_one()
    assert await kernel.settle(claimed, Event.ACK_CANCEL) is Settled.STALE, "nobody asked"
    assert await kernel.cancel("a") == {"wrk_a": Cancelled.REQUESTED}
    assert (await kernel.item("a")).cancel_requested
    assert (await kernel.states())["a"] == "processing"
    assert await kernel.settle(claimed, Event.ACK_CANCEL) is Settled.DONE
    assert (await kernel.states())["a"] == "cancelled"


@pytest.mark.parametrize("event", [Event.SUCCEED, Event.SKIP, Event.DIE, Event.RETRY])
async def test_w5_the_outcome_wins_over_a_request(kernel: Kernel, event: Event) -> None:
    await kernel.insert(kernel.new("a"))
    claimed = await kernel.claim_one()
    await kernel.cancel("a")
    assert await kernel.settle(claimed, event) is Settled.DONE
    if event is Event.RETRY:
        assert (await kernel.claim_one()).item.cancel_requested, "the next holder learns of the request"
    else:
        assert await kernel.cancel("a") == {"wrk_a": Cancelled.ENDED}


async def test_w5_cancelling_twice_is_cancelling_once(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.cancel("a")
    before = await kernel.item("a")
    assert await kernel.cancel("a") == {"wrk_a": Cancelled.CANCELLED}
    assert await kernel.item("a") == before


async def test_w5_a_cancelled_head_lets_the_next_one_go(kernel: Kernel) -> None:
    await kernel.insert(
        kernel.new("head", **blocking("s"), target_lane="t"),
        kernel.new("middle", **blocking("s")),
        kernel.new("next", **blocking("s"), target_lane="t"),
    )
    await kernel.cancel("middle", "head")
    assert {row["item_id"] for row in await kernel.rows(work_lane_entry)} == {"wrk_next"}
    assert [name_of(claimed) for claimed in await kernel.claim()] == ["next"]


async def test_w5_a_cancelled_nominee_lets_the_lanes_next_one_go(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"), kernel.new("b", target_lane="t"))
    await kernel.cancel("a")
    assert await kernel.names() == ["b"]


async def test_w5_a_missing_item_is_not_in_the_answer(kernel: Kernel) -> None:
    assert await kernel.cancel("nobody") == {}

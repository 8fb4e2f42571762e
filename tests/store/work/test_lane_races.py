"""L1: whatever two transactions do to one lane, statement by statement, no successor is stranded and no two run."""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.store.work.kernel import HERE, LONG_US, Kernel, Places, blocking, cancel_items, name_of
from tests.store.work.stepper import interleaver, orders

from doonce.db.transaction import Txn
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, Settlement, State
from doonce.work.tables import work_item, work_lease, work_ready

Race = tuple[Callable[[], Txn[Any]], Callable[[], Txn[Any]]]
STEPS = 13
"""As many as the longest of these transactions takes; more would only repeat orders."""


def finish(kernel: Kernel, claimed: Any, event: Event = Event.SUCCEED) -> Callable[[], Txn[Any]]:
    return lambda: settle.settle([Settlement(claimed, event)], HERE)


def insert(kernel: Kernel, **fields: Any) -> Callable[[], Txn[Any]]:
    item = kernel.new("next", **fields)
    return lambda: store.enqueue([item])


def claim(kernel: Kernel, owner: str, rows_max: int = 100) -> Callable[[], Txn[Any]]:
    request = kernel.request(rows_max, owner=owner)
    return lambda: store.claim(request)


async def finish_and_accept_in_a_source_lane(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("head", **blocking("s")))
    return finish(kernel, await kernel.claim_one()), insert(kernel, **blocking("s"))


async def finish_and_accept_in_a_target_lane(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("head", target_lane="t"))
    return finish(kernel, await kernel.claim_one()), insert(kernel, target_lane="t")


async def two_first_accepts_in_a_lane(kernel: Kernel) -> Race:
    other = kernel.new("other", **blocking("s"), target_lane="t")
    return (lambda: store.enqueue([other])), insert(kernel, **blocking("s"), target_lane="t")


async def both_lanes_of_an_item_freed_at_once(kernel: Kernel) -> Race:
    await kernel.insert(
        kernel.new("head", **blocking("s"), target_lane="t1"),
        kernel.new("holder", target_lane="t2"),
        kernel.new("behind_both", **blocking("s"), target_lane="t2"),
    )
    head, holder = sorted(await kernel.claim(), key=name_of)
    return finish(kernel, head), finish(kernel, holder)


async def two_claims_of_one_target_lane(kernel: Kernel) -> Race:
    await kernel.insert(
        kernel.new("head", **blocking("s"), target_lane="t"), kernel.new("other", target_lane="t")
    )
    await kernel.sweep()
    return claim(kernel, "prc_1"), claim(kernel, "prc_2")


async def claim_and_release_of_a_target_lane(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("holder", target_lane="t"))
    holder = await kernel.claim_one()
    await kernel.insert(
        kernel.new("early", target_lane="t"), kernel.new("head", **blocking("s"), target_lane="t")
    )
    return claim(kernel, "prc_1"), finish(kernel, holder)


async def claim_and_cancel(kernel: Kernel) -> Race:
    await kernel.insert(
        kernel.new("head", **blocking("s"), target_lane="t"), kernel.new("behind", **blocking("s"))
    )
    return claim(kernel, "prc_1"), lambda: cancel_items(["wrk_head"])


async def claim_of_a_due_hint_and_finish_of_the_renewed_item(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("head", target_lane="t"))
    claimed = await kernel.claim_one()
    await kernel.execute(work_lease.update().values(due=1))  # as when the lease has been renewed since
    return claim(kernel, "prc_2"), finish(kernel, claimed)


async def release_and_accept(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("head", **blocking("s")))
    await kernel.settle(await kernel.claim_one(), Event.DIE, failure_class="test")
    return (lambda: settle.release_head("s", "wrk_head")), insert(kernel, **blocking("s"))


async def retry_and_accept_in_a_target_lane(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("head", target_lane="t"))
    return finish(kernel, await kernel.claim_one(), Event.RETRY), insert(kernel, target_lane="t")


async def bring_forward_and_finish(kernel: Kernel) -> Race:
    await kernel.insert(
        kernel.new("head", **blocking("s"), target_lane="t"),
        kernel.new("late", **blocking("s"), target_lane="t", delay_us=3_600_000_000, subject_id="cmd_late"),
    )
    head = await kernel.claim_one()
    return (lambda: settle.bring_forward("cmd_late", "effect")), finish(kernel, head)


async def two_claims_by_two_hints_of_one_item(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("a"))
    (hint,) = await kernel.rows(work_ready)
    await kernel.execute(work_ready.insert().values({**hint, "due": 1}))
    return claim(kernel, "prc_1", rows_max=1), claim(kernel, "prc_2", rows_max=1)


async def claim_and_cancel_without_a_lane(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("a"))
    return claim(kernel, "prc_1"), lambda: cancel_items(["wrk_a"])


async def settle_and_renew(kernel: Kernel) -> Race:
    await kernel.insert(kernel.new("a"))
    claimed = await kernel.claim_one()
    return finish(kernel, claimed), lambda: store.renew([store.RenewRequest(claimed, HERE, 2 * LONG_US)])


RACES: list[Callable[[Kernel], Awaitable[Race]]] = [
    finish_and_accept_in_a_source_lane,
    finish_and_accept_in_a_target_lane,
    two_first_accepts_in_a_lane,
    both_lanes_of_an_item_freed_at_once,
    two_claims_of_one_target_lane,
    claim_and_release_of_a_target_lane,
    claim_and_cancel,
    claim_of_a_due_hint_and_finish_of_the_renewed_item,
    release_and_accept,
    retry_and_accept_in_a_target_lane,
    bring_forward_and_finish,
    two_claims_by_two_hints_of_one_item,
    claim_and_cancel_without_a_lane,
    settle_and_renew,
]


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
async def test_l1_no_order_of_statements_strands_an_item_or_runs_two_in_a_lane(
    server_places: Places, race: Callable[[Kernel], Awaitable[Race]]
) -> None:
    async with server_places.kernel() as kernel, interleaver(kernel.database.driver) as pairs:
        for order in orders(STEPS, STEPS):
            await kernel.clear()
            pair = await race(kernel)
            results = await pairs.run([one() for one in pair], order)
            await check_claims(kernel, results, order)
            await check_exclusion(kernel, order)
            await end_all(kernel)
            assert set((await kernel.states()).values()) <= {"succeeded", "cancelled", "dead"}, order


async def check_claims(kernel: Kernel, results: list[Any], order: list[int]) -> None:
    """Whatever a claim returned is its own: no other claim has it, and its row says so; an ended row stays ended."""
    taken = [
        one for result in results if isinstance(result, list) for one in result if isinstance(one, Claimed)
    ]
    assert len({claimed.item.id for claimed in taken}) == len(taken), order
    rows = {row["id"]: row for row in await kernel.rows(work_item)}
    for claimed in taken:
        row = rows[claimed.item.id]
        assert (row["state"], row["lease_token"]) == ("processing", claimed.token), order
    for row in rows.values():
        assert row["finished_at"] is None or row["updated_at"] == row["finished_at"], order


async def check_exclusion(kernel: Kernel, order: list[int]) -> None:
    running = [row for row in await kernel.rows(work_item) if row["state"] == State.PROCESSING.value]
    for lane in ("source_lane", "target_lane"):
        counts = Counter(row[lane] for row in running if row[lane] is not None)
        assert all(count == 1 for count in counts.values()), (order, counts)


async def end_all(kernel: Kernel) -> None:
    """Finish what runs, and then whatever becomes ready without help from the sweep."""
    for row in await kernel.rows(work_item):
        if row["state"] == State.PROCESSING.value:
            assert await kernel.finish_row(row["id"])
    await kernel.drain()

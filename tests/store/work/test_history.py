"""History beside the kernel: in whatever order two transactions go, an item is in one place, and nobody is stuck."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.store.work.kernel import EXPIRED_US, HERE, LONG_US, SCOPE, Kernel, Places, blocking
from tests.store.work.stepper import interleaver, orders

from doonce.base.errors import Conflict
from doonce.db.transaction import Txn
from doonce.effects.retire import Retire, Retired, Stays, retire
from doonce.ownership.model import Family
from doonce.work import settle, store
from doonce.work.model import Event, Settlement, Shelf
from doonce.work.store import Replay
from doonce.work.tables import work_item, work_item_history, work_ready

PUSH = Family.PUSH.value
STEPS = 14
SPARE = 1
"""When a hint is due that nobody took away."""
NOW = Retire(HERE, 0, 0, 100, after="")
"""Everything that has ended is old enough; each pass begins at the first item."""

Race = tuple[Callable[[], Txn[Any]], Callable[[], Txn[Any]]]


def new(kernel: Kernel, name: str = "", **fields: Any) -> Any:
    """Work about an event: history asks nothing of other owners about it. Its id is an old one."""
    return kernel.new(f"00{name}", **{"family": PUSH, "subject_kind": "event", **fields})


def passing_by() -> Txn[Retired]:
    return retire(NOW)


async def dead(kernel: Kernel, name: str = "a", **fields: Any) -> str:
    item = new(kernel, name, **fields)
    await kernel.insert(item)
    await kernel.settle(await kernel.claim_one(family=PUSH), Event.DIE)
    return str(item.id)


async def move_all(kernel: Kernel) -> Retired:
    return await kernel.database.transact(passing_by)


async def where(kernel: Kernel) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """What works and what is history, by id; no id is both."""
    here = {row["id"]: row for row in await kernel.rows(work_item)}
    there = {row["id"]: row for row in await kernel.rows(work_item_history)}
    assert not here.keys() & there.keys()
    return here, there


def replaying(item_id: str, successor: str) -> Callable[[], Txn[Any]]:
    def asked() -> Txn[Any]:
        try:
            return (yield from store.replay(Replay(item_id, f"wrk_00{successor}")))
        except Conflict as refused:
            return refused

    return asked


async def a_replay_and_the_pass(kernel: Kernel) -> Race:
    return replaying(await dead(kernel), "b"), passing_by


async def a_replay_of_what_blocks_its_lane_and_the_pass(kernel: Kernel) -> Race:
    return replaying(await dead(kernel, **blocking("s")), "b"), passing_by


async def a_release_and_the_pass(kernel: Kernel) -> Race:
    head = await dead(kernel, **blocking("s"))
    return (lambda: settle.release(head, "a test")), passing_by


async def an_end_and_the_pass(kernel: Kernel) -> Race:
    await kernel.insert(new(kernel, "a"))
    claimed = await kernel.claim_one(family=PUSH)
    return (lambda: settle.settle([Settlement(claimed, Event.SUCCEED)], HERE)), passing_by


async def two_passes(kernel: Kernel) -> Race:
    await dead(kernel)
    await dead(kernel, "b")
    return passing_by, passing_by


async def two_replays_of_history(kernel: Kernel) -> Race:
    item_id = await dead(kernel)
    await move_all(kernel)
    return replaying(item_id, "b"), replaying(item_id, "c")


async def a_claim_by_a_spare_hint_and_the_pass(kernel: Kernel) -> Race:
    await dead(kernel)
    await kernel.execute(hint("wrk_00a"))
    await kernel.insert(new(kernel, "b"))
    request = kernel.request(family=PUSH)
    return (lambda: store.claim(request)), passing_by


RACES = [
    a_replay_and_the_pass,
    a_replay_of_what_blocks_its_lane_and_the_pass,
    a_release_and_the_pass,
    an_end_and_the_pass,
    two_passes,
    two_replays_of_history,
    a_claim_by_a_spare_hint_and_the_pass,
]


def hint(item_id: str) -> Any:
    """A hint that nobody took away."""
    return work_ready.insert().values(
        family=PUSH,
        shelf=Shelf.OPEN.value,
        org=SCOPE.org,
        installation=SCOPE.installation,
        due=SPARE,
        item_id=item_id,
    )


@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
async def test_no_order_of_statements_loses_or_doubles_an_item(
    server_places: Places, race: Callable[[Kernel], Awaitable[Race]]
) -> None:
    async with server_places.kernel() as kernel, interleaver(kernel.database.driver) as pairs:
        for order in orders(STEPS, STEPS):
            await kernel.clear()
            pair = await race(kernel)
            before = {*(await where(kernel))[0], *(await where(kernel))[1]}
            await pairs.run([one() for one in pair], order)
            here, there = await where(kernel)
            assert before <= here.keys() | there.keys(), order
            followed = Counter(row["predecessor"] for row in [*here.values(), *there.values()])
            assert all(count == 1 for item_id, count in followed.items() if item_id is not None), order
            if "replay" in race.__name__:
                assert followed["wrk_00a"] == 1, order
            await end_all(kernel)
            told = await move_all(kernel)
            here, there = await where(kernel)
            assert not here, (order, told)
            spare = [row for row in await kernel.rows(work_ready) if row["due"] == SPARE]
            assert not spare, "a hint of an item that is gone is taken away"


async def end_all(kernel: Kernel) -> None:
    for row in await kernel.rows(work_item):
        if row["state"] == "processing":
            assert await kernel.finish_row(row["id"])
        elif row["state"] == "dead":
            await kernel.database.transact(settle.release, row["id"], "")
    while claims := await kernel.claim(family=PUSH):
        for claimed in claims:
            await kernel.settle(claimed, Event.SUCCEED)


async def test_hints_of_items_that_have_moved_stand_in_nobodys_way(kernel: Kernel) -> None:
    """More of them than one claim looks at: each claim takes some away, and then finds the work behind them."""
    gone = [await dead(kernel, str(number)) for number in range(6)]
    assert (await move_all(kernel)).moved == {PUSH: 6}
    await kernel.execute(*[hint(item_id) for item_id in gone])
    await kernel.insert(new(kernel, "live"))
    taken = [await kernel.claim(3, family=PUSH) for _ in range(3)]
    assert [[one.item.id for one in claims] for claims in taken] == [[], [], ["wrk_00live"]]
    assert await kernel.rows(work_ready) == []


async def test_an_item_that_somebody_holds_is_left_for_the_next_walk(server_places: Places) -> None:
    async with server_places.kernel() as kernel:
        item_id = await dead(kernel)
        with kernel.connect() as other:
            other.execute(work_item.select().where(work_item.c.id == item_id).with_for_update())
            seen = await move_all(kernel)
            assert (seen.moved, seen.stays) == ({}, {Stays.BUSY.value: 1})
        assert (await move_all(kernel)).moved == {PUSH: 1}


async def test_what_has_not_ended_never_moves_whatever_its_lease(kernel: Kernel) -> None:
    await kernel.insert(
        *[new(kernel, name) for name in ("a", "b", "c", "d")], new(kernel, "e", delay_us=LONG_US)
    )
    claims = {one.item.id: one for one in await kernel.claim(2, family=PUSH)}
    first, second = sorted(claims)
    await kernel.settle(claims[first], Event.RETRY, delay_us=LONG_US, failed=True)
    await kernel.settle(claims[second], Event.DEFER, delay_us=LONG_US)
    await kernel.claim(1, family=PUSH, lease_us=EXPIRED_US)
    seen = await move_all(kernel)
    assert (seen.moved, seen.stays) == ({}, {Stays.WORKING.value: 5})


async def test_what_is_about_the_same_thing_goes_when_all_of_it_has_ended(kernel: Kernel) -> None:
    await kernel.insert(new(kernel, "a", subject_id="evt_1"), new(kernel, "b", subject_id="evt_1"))
    first, second = await kernel.claim(family=PUSH)
    await kernel.settle(first, Event.SUCCEED)
    assert (await move_all(kernel)).stays == {Stays.SUBJECT.value: 1, Stays.WORKING.value: 1}
    await kernel.settle(second, Event.SKIP)
    assert (await move_all(kernel)).moved == {PUSH: 2}


async def test_t5_an_insert_that_is_run_again_finds_its_item_in_history(kernel: Kernel) -> None:
    item = new(kernel, "a")
    await kernel.insert(item)
    await kernel.settle(await kernel.claim_one(family=PUSH), Event.SUCCEED)
    await move_all(kernel)
    await kernel.insert(item)
    assert await kernel.claim(family=PUSH) == []
    assert not (await where(kernel))[0]


async def test_a_claim_costs_the_same_with_history_and_with_ended_work_beside_it(kernel: Kernel) -> None:
    """Statements and rows, not milliseconds; the plans are in test_plans."""
    calls = kernel.watch()

    async def cost() -> list[str]:
        await kernel.insert(*[new(kernel, f"{len(calls)}_{number}") for number in range(3)])
        calls.clear()
        claims = await kernel.claim(2, family=PUSH)
        alone = list(calls)
        for claimed in [*claims, *await kernel.claim(family=PUSH)]:
            await kernel.settle(claimed, Event.SUCCEED)
        return alone

    await cost()
    first = await cost()
    for part in range(2):
        await kernel.insert(*[new(kernel, f"old{part}{number:03}") for number in range(300)])
        while claims := await kernel.claim(family=PUSH):
            done = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
            await kernel.database.transact(settle.settle, done, HERE)
        if part == 0:
            while sum((await kernel.database.transact(passing_by)).moved.values()):
                pass
    here, there = await where(kernel)
    assert (len(here) >= 300, len(there) >= 300) == (True, True)
    assert await cost() == first


async def test_many_passes_beside_working_claimers_lose_nothing(kernel: Kernel) -> None:
    await kernel.insert(*[new(kernel, f"{number:03}") for number in range(60)])

    async def work(owner: str) -> None:
        while claims := await kernel.claim(4, family=PUSH, owner=owner):
            done = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
            await kernel.database.transact(settle.settle, done, HERE)

    async def move() -> None:
        for _ in range(8):
            await move_all(kernel)

    await asyncio.gather(*(work(f"prc_{number}") for number in range(3)), move(), move())
    await work("prc_last")
    await move_all(kernel)
    here, there = await where(kernel)
    assert (len(here), len(there)) == (0, 60)
    assert {row["state"] for row in there.values()} == {"succeeded"}

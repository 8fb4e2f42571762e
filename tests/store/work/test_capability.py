"""What needs a later engine waits, and no older worker ever runs it, whatever puts its hint back."""

import pytest
from tests.store.work.kernel import EFFECT, EXPIRED_US, SCOPE, Kernel, name_of

from doonce.work.items import ready_row
from doonce.work.leases import recall
from doonce.work.model import ENGINE, Event, Scope, Settled
from doonce.work.tables import work_ready

LATER = ENGINE + 1


async def shelves(kernel: Kernel) -> dict[str, int]:
    return {row["item_id"][4:]: row["shelf"] for row in await kernel.rows(work_ready)}


async def test_an_older_worker_leaves_what_needs_a_later_engine_and_a_later_one_runs_both(
    kernel: Kernel,
) -> None:
    await kernel.insert(kernel.new("old"), kernel.new("new", capability_version=LATER))
    assert await kernel.names() == ["old"]
    assert await kernel.names() == []
    assert (await kernel.item("new")).claims == 0
    await kernel.insert(kernel.new("older"))
    assert await kernel.names(engine=LATER) == ["new", "older"]


async def test_any_number_of_them_costs_an_older_claim_nothing(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(f"new{n:03}", capability_version=LATER) for n in range(200)])
    await kernel.insert(kernel.new("old"))
    assert await kernel.names(1) == ["old"], "the first look already finds what it may run"


@pytest.mark.parametrize("back", ["sweep", "lease over", "lane", "hand back", "retry"])
async def test_whatever_puts_its_hint_back_leaves_it_to_a_later_worker(kernel: Kernel, back: str) -> None:
    lanes = {"source_lane": "s", "target_lane": "t"} if back == "lane" else {}
    if back == "lane":
        await kernel.insert(kernel.new("first", **lanes))
    await kernel.insert(kernel.new("new", capability_version=LATER, **lanes))
    match back:
        case "sweep":
            await kernel.lose_hints()
            await kernel.sweep()
        case "lease over":
            assert len(await kernel.claim(engine=LATER, lease_us=EXPIRED_US)) == 1
            await kernel.database.transact(recall, EFFECT)
        case "lane":
            assert await kernel.settle(await kernel.claim_one(), Event.SUCCEED) is Settled.DONE
        case _:
            event = Event.RETRY if back == "retry" else Event.HAND_BACK
            claimed = await kernel.claim_one(engine=LATER)
            assert await kernel.settle(claimed, event) is Settled.DONE
    assert await shelves(kernel) == {"new": LATER}
    assert await kernel.names() == []
    assert await kernel.names(engine=LATER) == ["new"]


async def test_a_hint_on_the_wrong_shelf_is_put_right_by_the_item(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("new", capability_version=LATER))
    item = await kernel.item("new")
    wrong = dict(zip(work_ready.c.keys(), ready_row(item, item.run_after), strict=True)) | {"shelf": 0}
    await kernel.execute(work_ready.delete(), work_ready.insert().values(wrong))
    assert await kernel.names() == []
    assert await shelves(kernel) == {"new": LATER}


async def test_an_item_that_a_later_worker_died_of_is_not_taken_by_an_older_one(kernel: Kernel) -> None:
    """Also from the shelf of suspects, where a worker runs them alone."""
    await kernel.insert(kernel.new("new", capability_version=LATER))
    for _ in range(3):
        assert len(await kernel.claim(engine=LATER, lease_us=EXPIRED_US)) == 1
    assert await kernel.claim(engine=LATER) == [], "it is a suspect now"
    assert await kernel.claim(alone=True) == []
    assert await kernel.claim(engine=LATER) == [], "still a suspect"
    assert [name_of(one) for one in await kernel.claim(alone=True, engine=LATER)] == ["new"]


async def test_a_hint_does_not_widen_a_claims_scope(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("theirs", scope=Scope("other", "main")))
    item = await kernel.item("theirs")
    wrong = dict(zip(work_ready.c.keys(), ready_row(item, item.run_after), strict=True))
    wrong |= {"org": SCOPE.org, "installation": SCOPE.installation}
    await kernel.execute(work_ready.delete(), work_ready.insert().values(wrong))
    assert await kernel.claim() == []
    assert (await kernel.item("theirs")).claims == 0
    await kernel.sweep()
    assert await kernel.names(scopes=(Scope("other", "main"),)) == ["theirs"]

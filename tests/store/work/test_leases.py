"""What becomes of a lease that is over: a hint for each item that still runs under it, and nothing for the others."""

import json

import sqlalchemy as sa
from tests.store.work.kernel import EFFECT, EXPIRED_US, LONG_US, Kernel, name_of

from doonce.work import leases
from doonce.work.model import Event, Settled
from doonce.work.tables import work_item, work_lease, work_ready


async def over(kernel: Kernel) -> None:
    """Time passes, and the leases were given to the end of it."""
    await kernel.execute(work_lease.update().values(due=1))


async def recall(kernel: Kernel) -> None:
    await kernel.database.transact(leases.recall, EFFECT)


async def hints(kernel: Kernel) -> dict[str, int]:
    return {row["item_id"]: row["due"] for row in await kernel.rows(work_ready)}


async def test_an_item_under_a_lease_has_one_row_with_the_others_of_its_claim(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "abc"])
    claims = await kernel.claim()
    assert await hints(kernel) == {}
    (lease,) = await kernel.rows(work_lease)
    assert sorted(json.loads(lease["items"])) == ["wrk_a", "wrk_b", "wrk_c"]
    assert {claimed.lease_until + 1 for claimed in claims} == {lease["due"]}
    assert lease["token"] == claims[0].token


async def test_a_lease_that_is_not_over_is_left_alone(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.claim()
    await recall(kernel)
    assert len(await kernel.rows(work_lease)) == 1
    assert await hints(kernel) == {}


async def test_ended_work_leaves_nothing_when_its_lease_is_over(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "ab"])
    for claimed in await kernel.claim():
        assert await kernel.settle(claimed, Event.SUCCEED) is Settled.DONE
    await over(kernel)
    await recall(kernel)
    assert await kernel.rows(work_lease) == []
    assert await hints(kernel) == {}


async def test_what_still_runs_gets_a_hint_at_the_end_of_its_own_lease(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "abc"])
    a, b, _ = sorted(await kernel.claim(), key=name_of)
    await kernel.settle(a, Event.RETRY, delay_us=LONG_US)
    later_us = await kernel.renew(b, 2 * LONG_US)
    assert later_us is not None
    retry_us = (await hints(kernel))["wrk_a"]
    await kernel.execute(work_item.update().where(work_item.c.id == "wrk_c").values(lease_until=1))
    await over(kernel)
    await recall(kernel)
    assert await hints(kernel) == {"wrk_a": retry_us, "wrk_b": later_us + 1, "wrk_c": 2}
    assert await kernel.names(owner="prc_2") == ["c"], "b is still its holder's"
    assert await kernel.settle(b, Event.SUCCEED) is Settled.DONE
    await kernel.execute(work_ready.update().where(work_ready.c.item_id == "wrk_b").values(due=1))
    assert await kernel.claim() == []
    assert "wrk_b" not in await hints(kernel), "a hint of an ended item goes when it is met"


async def test_an_item_that_was_taken_over_is_no_longer_the_first_leases(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.claim(lease_us=EXPIRED_US)
    (again,) = await kernel.claim(owner="prc_2")
    await kernel.execute(sa.insert(work_lease).values(token="first", family=EFFECT, due=1, items='["wrk_a"]'))
    await recall(kernel)
    assert await hints(kernel) == {}
    assert [row["token"] for row in await kernel.rows(work_lease)] == [again.token]


async def test_a_recall_takes_a_bounded_number_the_oldest_first(kernel: Kernel) -> None:
    rows = [
        {"token": f"t{number:03}", "family": EFFECT, "due": number + 1, "items": "[]"}
        for number in range(leases.LEASES_MAX + 2)
    ]
    await kernel.execute(sa.insert(work_lease).values(rows))
    await recall(kernel)
    left = sorted(row["token"] for row in await kernel.rows(work_lease))
    assert left == [row["token"] for row in rows[leases.LEASES_MAX :]]


async def test_a_claim_that_does_not_recall_leaves_leases_to_one_that_does(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.claim(lease_us=EXPIRED_US)
    assert await kernel.claim(owner="prc_2", recalls=False) == []
    assert await kernel.names(owner="prc_2") == ["a"]


async def test_leases_of_another_family_are_left_alone(kernel: Kernel) -> None:
    await kernel.execute(sa.insert(work_lease).values(token="other", family="completion", due=1, items="[]"))
    await recall(kernel)
    assert len(await kernel.rows(work_lease)) == 1

"""Claims: one winner, whoever dies when, and never before the time (PROTOCOL C3, T5, W1, W7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from doonce.base.ids import new_id
from doonce.conformance.cases.case import Case
from doonce.conformance.jobs import ClaimJob, Place
from doonce.conformance.model import expect, expect_equal
from doonce.conformance.stage import LONG_US, SHORT_US, Stage, until
from doonce.db.transaction import Txn, clock
from doonce.work.items import add_ready, ready_row
from doonce.work.model import Claimed, Item, State

CLAIMERS: Final = 3
ITEMS: Final = 60
DELAY_US: Final = 700_000


def hint(items: Sequence[Item]) -> Txn[None]:
    """Hints that these items are due now, whether that is so or not: hints may be doubled or wrong (PROTOCOL W7)."""
    now_us = yield from clock()
    yield from add_ready(ready_row(item, now_us) for item in items)


async def one_winner(stage: Stage) -> None:
    items = await stage.insert(ITEMS)
    await stage.database.transact(hint, [await stage.item(item_id) for item_id in items])
    jobs = [claim_job(stage, items, rows_max=7) for _ in range(CLAIMERS)]
    processes = await stage.spawn_together(jobs)
    results = [await process.result() for process in processes]
    wins = Counter(took.item for result in results for took in result.took)
    expect_equal(sorted(wins), sorted(items), "the items that were claimed")
    expect(wins.total() == ITEMS, f"{wins.total() - ITEMS} items were claimed by more than one process")


async def spare_hints(stage: Stage) -> None:
    (item_id,) = await stage.insert(1)
    claimed = await stage.claim_one()
    await stage.database.transact(hint, [await stage.item(item_id)])
    expect_equal(await stage.claim(), [], "what a second claimer gets of an item that is held")
    await held(stage, claimed)


async def held(stage: Stage, claimed: Claimed) -> None:
    """The claim is still the one that the row knows."""
    item = await stage.item(claimed.item.id)
    expect_equal(
        (item.state, item.lease_token), (State.PROCESSING, claimed.token), "the state and token of a claim"
    )


async def kill_before_claim(stage: Stage) -> None:
    items = await stage.insert(1)
    job = claim_job(stage, items)
    process = await stage.spawn(msgspec.structs.replace(job, place=killed_at(stage, "claim.before_commit")))
    await process.begin()
    await process.wait_killed()
    item = await stage.item(items[0])
    expect_equal(
        (item.state, item.claims), (State.PENDING, 0), "the state and claims after a claim without commit"
    )
    claimed = await stage.claim_one()
    expect_equal(claimed.item.expiries, 0, "the leases that ran out before the first commit")


async def kill_after_claim(stage: Stage) -> None:
    items = await stage.insert(1)
    job = claim_job(stage, items, lease_us=SHORT_US)
    process = await stage.spawn(msgspec.structs.replace(job, place=killed_at(stage, "claim.after_commit")))
    await process.begin()
    await process.wait_killed()
    dead = await stage.item(items[0])
    expect_equal(
        (dead.state, dead.claims), (State.PROCESSING, 1), "the state and claims after a committed claim"
    )
    await taken_over(stage, dead)


async def expiry_reclaim(stage: Stage) -> None:
    await stage.insert(1)
    first = await stage.claim_one(lease_us=SHORT_US)
    await stage.database.transact(hint, [await stage.item(first.item.id)])
    await taken_over(stage, await stage.item(first.item.id))


async def taken_over(stage: Stage, before: Item) -> None:
    """Another claimer gets the item, after its lease has run out and not before, under another token."""
    second = await stage.claim_one()
    claimed_at = second.lease_until - LONG_US
    expect_equal(second.item.id, before.id, "the item that was reclaimed")
    expect(
        claimed_at > before.lease_until,
        f"a lease until {before.lease_until} was taken over at {claimed_at}, before it had run out",
    )
    expect(second.token != before.lease_token, "a reclaim kept the token of the claim before")
    expect_equal((await stage.item(before.id)).expiries, 1, "the leases that ran out")


async def run_after(stage: Stage) -> None:
    (item_id,) = await stage.insert(1, delay_us=DELAY_US)
    item = await stage.item(item_id)
    await stage.database.transact(hint, [item])
    claimed = await stage.claim_one()
    claimed_at = claimed.lease_until - LONG_US
    expect(claimed_at >= item.run_after, f"an item due at {item.run_after} was claimed at {claimed_at}")


async def many_processes(stage: Stage) -> None:
    tenant = await stage.tenant()
    commands = [await tenant.accept(f"k{number}") for number in range(24)]
    doomed = await stage.run_engine(tenant, kill_at="finish.before_commit")
    others = [await stage.run_engine(tenant) for _ in range(CLAIMERS - 1)]
    await doomed.wait_killed()
    operator = stage.operator(tenant)

    async def decided() -> list[str] | None:
        views = [await operator.command(command) for command in commands]
        return None if any(view.state.value in ("waiting", "running") for view in views) else []

    await until(decided, "an outcome, or an honest unknown, of every command")
    for process in others:
        await process.stop()
    again = [command for command in commands if stage.witness.count(command) > 1]
    expect_equal(again, [], "commands that reached the provider more than once")
    lost = [command for command in commands if stage.witness.count(command) == 0]
    states = {command: (await operator.command(command)).state.value for command in lost}
    expect("accepted" not in states.values(), f"accepted without a call: {states}")


def claim_job(
    stage: Stage, items: tuple[str, ...], *, rows_max: int = 10, lease_us: int = LONG_US
) -> ClaimJob:
    """Claims of one process, until all the items are taken."""
    return ClaimJob(place=stage.place, owner=new_id("prc"), items=items, rows_max=rows_max, lease_us=lease_us)


def killed_at(stage: Stage, point: str) -> Place:
    """The same place, for a process that kills itself at a named point."""
    return msgspec.structs.replace(stage.place, kill_at=point)


CASES: Final = (
    Case("one-winner", "Of processes that claim at once, exactly one gets each item", one_winner),
    Case("spare-hints", "A hint that is doubled or wrong gives nobody an item that is held", spare_hints),
    Case(
        "kill-before-claim",
        "A process that dies before its claim commits leaves nothing behind",
        kill_before_claim,
        paced=False,
    ),
    Case(
        "kill-after-claim",
        "The claim of a dead process lasts to the end of its lease, and no longer",
        kill_after_claim,
    ),
    Case(
        "expiry-reclaim",
        "A lease that ran out is taken over under another token, never earlier",
        expiry_reclaim,
    ),
    Case("run-after", "Nothing is claimed before its time", run_after),
    Case("many-processes", "Processes share a database, one dies, and no call is made twice", many_processes),
)

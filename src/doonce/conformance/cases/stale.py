"""A claimant whose lease ran out can do nothing more, whether or not somebody else has the item (PROTOCOL D2)."""

from __future__ import annotations

from typing import Final

from doonce.catalog.model import Outcome
from doonce.conformance.cases.case import Case
from doonce.conformance.cases.steps import claim_effect, finish, mark, take_over
from doonce.conformance.model import expect, expect_equal
from doonce.conformance.scratch import DEPLOYMENT
from doonce.conformance.stage import LONG_US, SHORT_US, Stage, until
from doonce.db.transaction import clock
from doonce.effects.finish import Finished
from doonce.effects.model import Marked, RefusedMark
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, Settled, Settlement, State

ENDS: Final = (Event.SUCCEED, Event.RETRY, Event.DEFER, Event.DIE, Event.HAND_BACK)


async def stale_renew(stage: Stage) -> None:
    await stage.insert(1)
    first = await stage.claim_one(lease_us=SHORT_US)
    renewed = await _renew(stage, await _renewed_once(stage, first))
    expect_equal(renewed, None, "the renewal of a lease that ran out")
    second = await stage.claim_one()
    expect_equal(await _renew(stage, first), None, "the renewal of an item that another process holds")
    item = await stage.item(first.item.id)
    expect_equal((item.lease_token, item.lease_until), (second.token, second.lease_until), "the newer claim")


async def _renewed_once(stage: Stage, claimed: Claimed) -> Claimed:
    """Renew while it is live, see it advance, and let it run out."""
    until_us = await _renew(stage, claimed)
    if until_us is not None:  # a slow machine may have been too late, which is no fault
        expect(
            until_us > claimed.lease_until,
            f"a renewal moved a lease from {claimed.lease_until} to {until_us}",
        )
    await ran_out(stage, claimed.item.id)
    return claimed


async def _renew(stage: Stage, claimed: Claimed) -> int | None:
    request = store.RenewRequest(claimed, DEPLOYMENT, SHORT_US)
    return (await stage.database.transact(store.renew, [request]))[0]


async def ran_out(stage: Stage, item_id: str) -> None:
    """Wait until the database's own clock is past the item's lease."""

    async def passed() -> bool | None:
        now_us = await stage.database.transact(clock)
        return True if now_us > (await stage.item(item_id)).lease_until else None

    await until(passed, "the end of a lease")


async def stale_settle(stage: Stage) -> None:
    await stage.insert(1)
    first = await stage.claim_one(lease_us=SHORT_US)
    await ran_out(stage, first.item.id)
    for event in ENDS:
        expect_equal(
            await _settle(stage, first, event), Settled.STALE, f"{event.value} after the lease ran out"
        )
    second = await stage.claim_one()
    for event in ENDS:
        expect_equal(
            await _settle(stage, first, event), Settled.STALE, f"{event.value} by the claimant before"
        )
    item = await stage.item(first.item.id)
    expect_equal((item.state, item.lease_token), (State.PROCESSING, second.token), "the newer claim")


async def _settle(stage: Stage, claimed: Claimed, event: Event) -> Settled:
    return (await stage.database.transact(settle.settle, [Settlement(claimed, event)], DEPLOYMENT))[0]


async def stale_mark(stage: Stage) -> None:
    tenant = await stage.tenant()
    await tenant.accept("k1")
    first = await claim_effect(stage, SHORT_US)
    await ran_out(stage, first.claimed.item.id)
    expect_equal(
        await mark(stage, first), RefusedMark.LEASE, "the mark of a dispatch after the lease ran out"
    )
    second = await take_over(stage, first)
    expect_equal(await mark(stage, first), RefusedMark.LEASE, "the mark of a dispatch by the claimant before")
    expect(isinstance(await mark(stage, second), Marked), "the live claimant cannot mark its dispatch")


async def stale_finish(stage: Stage) -> None:
    tenant = await stage.tenant()
    command = await tenant.accept("k1")
    first = await claim_effect(stage, SHORT_US)
    await ran_out(stage, first.claimed.item.id)
    expect_equal(
        await finish(stage, first, Outcome.ACCEPTED), Finished.STALE, "an end after the lease ran out"
    )
    second = await take_over(stage, first)
    for outcome in (
        Outcome.ACCEPTED,
        Outcome.REJECTED,
        Outcome.OUTCOME_UNKNOWN,
        Outcome.RETRYABLE_PRE_DISPATCH,
    ):
        found = await finish(stage, first, outcome)
        expect_equal(found, Finished.STALE, f"the end {outcome.value} by the claimant before")
    state = (await stage.operator(tenant).command(command)).state.value
    expect_equal(state, "running", "the state of the command")
    expect(isinstance(await mark(stage, second, lease_us=LONG_US), Marked), "the live claimant cannot go on")
    expect_equal(await finish(stage, second, Outcome.ACCEPTED), Finished.DONE, "the end by the live claimant")


CASES: Final = (
    Case("stale-renew", "A lease that ran out cannot be renewed; a renewal strictly advances", stale_renew),
    Case(
        "stale-settle",
        "A stale claimant can neither complete, retry, defer, kill nor hand back",
        stale_settle,
    ),
    Case("stale-mark", "A stale claimant cannot dispatch", stale_mark),
    Case("stale-finish", "A stale claimant cannot finalize an attempt, whatever its outcome", stale_finish),
)

"""Dead work is done once more only on an operator's word, within the operator's scope, as new work (authority §10)."""

from __future__ import annotations

from typing import Final

from doonce.base.errors import Conflict, MissingOrDenied
from doonce.base.ids import new_id, new_token
from doonce.conformance.cases.case import Case
from doonce.conformance.model import Broken, expect, expect_equal
from doonce.conformance.scratch import DEPLOYMENT
from doonce.conformance.stage import LONG_US, Stage, Tenant
from doonce.ownership.model import Family
from doonce.work import settle, store
from doonce.work.model import Claimed, Event, NewItem, Settlement, State


async def dead_replay(stage: Stage) -> None:
    tenant, stranger = await stage.tenant(), await stage.tenant(org=f"{stage.place.org}-stranger")
    command = await tenant.accept("k1")
    dead = await _die(stage, tenant, await _insert(stage, tenant, command))
    expect_equal(await _claim(stage, tenant), [], "what may be claimed when the only item is dead")
    before = await stage.item(dead)
    try:
        await stage.operator(tenant).replay(dead, stranger.scope)
    except MissingOrDenied:
        pass
    else:
        raise Broken("an operator of another organization had dead work done again")
    expect_equal(await _claim(stage, tenant), [], "what may be claimed after a replay that was refused")
    replayed = await stage.operator(tenant).replay(dead, tenant.scope)
    again = await stage.operator(tenant).replay(dead, tenant.scope)
    expect_equal(again.work_id, replayed.work_id, "the new item when it is asked for twice")
    expect(await stage.item(dead) == before, "a replay edited the item that is dead")
    (claimed,) = await _claim(stage, tenant)
    expect_equal(claimed.item.id, replayed.work_id, "what may be claimed after a replay")
    expect_equal(claimed.item.predecessor, dead, "what the new item names as its predecessor")
    await _settle(stage, claimed, Event.SUCCEED)
    await _refused(stage, tenant, dead, "work whose replay is done")


async def effect_replay(stage: Stage) -> None:
    tenant = await stage.tenant()
    await tenant.accept("k1")
    claimed = await stage.claim_one()
    await _refused(stage, tenant, claimed.item.id, "an effect that is under way")
    await _settle(stage, claimed, Event.DIE)
    await _refused(stage, tenant, claimed.item.id, "an effect that is dead")
    expect_equal(await stage.claim(), [], "the effects that may be claimed when the only one is dead")


async def _refused(stage: Stage, tenant: Tenant, item_id: str, what: str) -> None:
    try:
        await stage.operator(tenant).replay(item_id, tenant.scope)
    except Conflict:
        return
    raise Broken(f"a replay was made of {what}")


async def _insert(stage: Stage, tenant: Tenant, command: str) -> str:
    """A work item that may be repeated, about a command."""
    item = NewItem(
        id=new_id("wrk"),
        family=Family.COMPLETION.value,
        scope=tenant.scope,
        subject_kind="command",
        subject_id=command,
        view_digest=tenant.view.digest,
    )
    await stage.database.transact(store.enqueue, [item])
    return item.id


async def _claim(stage: Stage, tenant: Tenant) -> list[Claimed]:
    request = store.ClaimRequest(
        family=Family.COMPLETION.value,
        scopes=(tenant.scope,),
        deployment=DEPLOYMENT,
        owner=new_id("prc"),
        token=new_token(),
        rows_max=10,
        lease_us=LONG_US,
        expiries_max=5,
    )
    return await stage.database.transact(store.claim, request)


async def _die(stage: Stage, tenant: Tenant, item_id: str) -> str:
    (claimed,) = await _claim(stage, tenant)
    await _settle(stage, claimed, Event.DIE)
    expect_equal((await stage.item(item_id)).state, State.DEAD, "the state of an item that was given up")
    return item_id


async def _settle(stage: Stage, claimed: Claimed, event: Event) -> None:
    await stage.database.transact(settle.settle, [Settlement(claimed, event)], DEPLOYMENT)


CASES: Final = (
    Case(
        "dead-replay",
        "Dead work is done again only by an operator of its scope, once, as new work that names it",
        dead_replay,
    ),
    Case("effect-replay", "No effect is ever replayed, under way or dead", effect_replay),
)

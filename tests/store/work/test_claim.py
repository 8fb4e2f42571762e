"""Who may claim what, once: scope, ownership, leases, hand-back."""

import asyncio

from msgspec.structs import replace
from tests.store.work.kernel import EXPIRED_US, HERE, LONG_US, SCOPE, Kernel, name_of

from doonce.db.clock import boottime_ns
from doonce.db.transaction import Txn, clock
from doonce.ownership.model import OwnershipState
from doonce.ownership.tables import work_ownership
from doonce.work import settle, store
from doonce.work.model import Event, Scope, Settled, Settlement
from doonce.work.tables import work_ready


async def test_scope_an_empty_scope_claims_nothing(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    assert await kernel.claim(scopes=()) == []


async def test_scope_nothing_of_another_org_or_installation_is_claimed(kernel: Kernel) -> None:
    await kernel.insert(
        kernel.new("mine"),
        kernel.new("other_org", scope=Scope("other", SCOPE.installation)),
        kernel.new("other_installation", scope=Scope(SCOPE.org, "other")),
        kernel.new("swapped", scope=Scope(SCOPE.installation, SCOPE.org)),
    )
    assert await kernel.names() == ["mine"]
    assert await kernel.names(scopes=(Scope("other", SCOPE.installation), SCOPE)) == ["other_org"]


async def test_scope_rows_max_bounds_the_claim_over_all_scopes_and_each_has_its_share(kernel: Kernel) -> None:
    scopes = tuple(Scope("acme", f"i{number}") for number in range(3))
    await kernel.insert(*[kernel.new(scope=scope) for scope in scopes for _ in range(3)])
    claims = await kernel.claim(5, scopes=scopes)
    taken = [claimed.item.scope for claimed in claims]
    assert [taken.count(scope) for scope in scopes] == [2, 2, 1]
    assert await kernel.claim(0) == []


async def test_only_due_items_of_the_family_are_claimed_oldest_first(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("late", delay_us=LONG_US), kernel.new("other", family="completion"))
    await kernel.insert(kernel.new("first"))
    kernel.host.now_us += 1_000
    await kernel.insert(kernel.new("second"))
    assert await kernel.names(1) == ["first"]
    assert await kernel.names() == ["second"]


async def test_ownership_only_the_active_owner_claims(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    assert await kernel.claim(deployment="elsewhere") == []
    for state in (OwnershipState.DRAINING, OwnershipState.FENCED):
        await kernel.execute(work_ownership.update().values(state=state.value))
        assert await kernel.claim() == []
    await kernel.execute(work_ownership.delete())
    assert await kernel.claim() == []


async def test_ownership_a_draining_owner_finishes_and_a_fenced_or_later_one_does_not(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"), kernel.new("b"))
    first, second = await kernel.claim()
    await kernel.execute(work_ownership.update().values(state="draining"))
    assert await kernel.renew(first) is not None
    assert await kernel.settle(first, Event.SUCCEED) is Settled.DONE
    for change in ({"state": "fenced"}, {"state": "active", "epoch": 2}):
        await kernel.execute(work_ownership.update().values(**change))
        assert await kernel.renew(second) is None
        assert await kernel.settle(second, Event.SUCCEED) is Settled.STALE
    await kernel.execute(work_ownership.update().values(state="active", epoch=1, deployment="elsewhere"))
    assert await kernel.settle(second, Event.SUCCEED) is Settled.STALE
    assert (await kernel.states())["b"] == "processing"


async def test_one_winner_among_concurrent_claims(kernel: Kernel) -> None:
    await kernel.insert(
        *[kernel.new(target_lane=f"t{number % 7}" if number % 2 else None) for number in range(60)]
    )
    taken = await asyncio.gather(*[kernel.claim(20, owner=f"prc_{number}") for number in range(6)])
    ids = [claimed.item.id for claims in taken for claimed in claims]
    assert len(ids) == len(set(ids))
    assert set(ids) <= {f"wrk_{name}" for name in await kernel.states()}


async def test_w1_a_hand_back_undoes_the_claims_count_and_is_claimed_again(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"))
    claimed = await kernel.claim_one()
    assert (await kernel.item("a")).claims == 1
    assert await kernel.settle(claimed, Event.HAND_BACK) is Settled.DONE
    item = await kernel.item("a")
    assert (item.state.value, item.claims, item.attempts) == ("pending", 0, 0)
    again = await kernel.claim_one()
    assert again.token != claimed.token
    assert (await kernel.item("a")).claims == 1
    assert await kernel.settle(claimed, Event.SUCCEED) is Settled.STALE


async def test_w1_a_reclaim_installs_a_new_token_and_the_old_holder_is_stale(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    old = await kernel.claim_one(lease_us=EXPIRED_US)
    new = await kernel.claim_one()
    assert new.token != old.token
    assert (await kernel.item("a")).lease_token == new.token
    before = await kernel.tables()
    assert await kernel.renew(old) is None
    for event in (Event.SUCCEED, Event.RETRY, Event.DEFER, Event.DIE, Event.SKIP, Event.HAND_BACK):
        assert await kernel.settle(old, event) is Settled.STALE
    assert await kernel.tables() == before or kernel.on_sqlite
    assert await kernel.settle(new, Event.SUCCEED) is Settled.DONE


async def test_a_stale_claim_changes_nothing_whichever_of_its_facts_is_wrong(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"), kernel.new("b"))
    claimed, _ = await kernel.claim()
    missing = replace(claimed, item=replace(claimed.item, id="wrk_missing"))
    for wrong in (replace(claimed, token="0" * 32), replace(claimed, epoch=2), missing):
        for event in (Event.SUCCEED, Event.RETRY, Event.DIE):
            assert await kernel.settle(wrong, event) is Settled.STALE
        assert await kernel.renew(wrong) is None
    assert set((await kernel.states()).values()) == {"processing"}


async def test_one_stale_row_of_a_batch_does_not_hold_up_the_others(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "abc"])
    claims = await kernel.claim()
    batch = [Settlement(replace(claims[0], token="wrong"), Event.SUCCEED)]
    batch += [Settlement(claimed, Event.SUCCEED) for claimed in claims[1:]]
    settled = await kernel.database.transact(settle.settle, batch, HERE)
    assert settled == [Settled.STALE, Settled.DONE, Settled.DONE]
    assert (await kernel.states())[name_of(claims[0])] == "processing"


async def test_a_settlement_run_again_after_it_was_committed_says_so(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", target_lane="t"))
    claimed = await kernel.claim_one()
    assert await kernel.settle(claimed, Event.RETRY, delay_us=5, failed=True) is Settled.DONE
    before = await kernel.item("a")
    assert await kernel.settle(claimed, Event.RETRY, delay_us=5, failed=True) is Settled.REPEATED
    assert await kernel.item("a") == before
    assert before.failures == 1


async def test_counts_a_failure_a_deferral_and_a_dispatch_have_each_their_own(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    await kernel.settle(await kernel.claim_one(), Event.DEFER)
    deferred = await kernel.item("a")
    assert (deferred.deferrals, deferred.failures, deferred.attempts) == (1, 0, 0)
    assert deferred.first_deferred_at is not None
    assert deferred.first_failed_at is None
    await kernel.settle(await kernel.claim_one(), Event.RETRY, failed=True)
    await kernel.settle(await kernel.claim_one(), Event.RETRY, failed=True)
    await kernel.settle(await kernel.claim_one(), Event.DEFER)
    failed = await kernel.item("a")
    assert (failed.deferrals, failed.failures, failed.attempts, failed.claims) == (2, 2, 0, 4)
    assert failed.first_deferred_at == deferred.first_deferred_at
    assert failed.first_failed_at is not None


async def test_c1_no_claim_while_the_databases_clock_is_not_trusted(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"), kernel.new("b"))
    crashed = await kernel.claim(1, lease_us=EXPIRED_US)
    watch = kernel.database.clock_watch
    now_us = boottime_ns() // 1000
    watch.observe(0, now_us, now_us)
    before = await kernel.tables()
    assert await kernel.claim() == []
    assert not kernel.database.steady()
    assert (await kernel.tables())["work_item"] == before["work_item"]
    watch._hold_until_us = 0
    assert len(await kernel.claim()) == 2
    assert len(crashed) == 1


async def test_the_first_claim_after_a_jump_already_takes_nothing(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"))
    watch = kernel.database.clock_watch
    watch._offset_min_us = watch._offset_max_us = 0  # as if the database's time had moved since the last look
    assert await kernel.claim() == []
    assert watch.jumps == 1
    assert (await kernel.states())["a"] == "pending"


async def test_a_claim_moves_a_hint_that_came_too_early(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a", delay_us=LONG_US))
    due = (await kernel.rows(work_ready))[0]["due"]
    await kernel.execute(work_ready.update().values(due=1))
    assert await kernel.claim() == []
    assert [row["due"] for row in await kernel.rows(work_ready)] == [due]


async def test_w3_a_dispatch_is_counted_by_its_mark_and_sets_the_leases_end(kernel: Kernel) -> None:
    await kernel.insert(kernel.new("a"), kernel.new("b"))
    claims = await kernel.claim()

    def mark() -> Txn[int]:
        items = yield from store.lock_items(claimed.item.id for claimed in claims)
        now_us = yield from clock()
        yield from settle.count_dispatch([(item_id, now_us + 5 * LONG_US) for item_id in items], now_us)
        yield from settle.count_dispatch([], now_us)
        return now_us

    marked_us = await kernel.database.transact(mark)
    for name in "ab":
        item = await kernel.item(name)
        assert (item.attempts, item.claims, item.failures) == (1, 1, 0)
        assert item.lease_until == marked_us + 5 * LONG_US
    assert await kernel.settle(claims[0], Event.RETRY) is Settled.DONE
    assert (await kernel.item(name_of(claims[0]))).attempts == 1

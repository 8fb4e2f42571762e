"""W6: dead work that may be repeated is worked once more as a new item; the old one stays, and an effect never is."""

import asyncio

import pytest
from tests.store.work.kernel import HERE, Kernel
from tests.store.work.test_rerun import Interruption, interrupted

from doonce.base.errors import Conflict, MissingOrDenied
from doonce.ownership.model import Family
from doonce.work import store
from doonce.work.model import Claimed, Event, Settled
from doonce.work.store import Replay
from doonce.work.tables import work_item

COMPLETION = Family.COMPLETION.value


async def ended(
    kernel: Kernel, event: Event = Event.DIE, *, family: str = COMPLETION, name: str = "old"
) -> None:
    """An item that was tried, failed a few times, and ended."""
    await kernel.insert(kernel.new(name, family=family))
    for _ in range(3):
        claimed = await kernel.claim_one(family=family)
        assert await kernel.settle(claimed, Event.RETRY, failed=True) is Settled.DONE
    claimed = await kernel.claim_one(family=family)
    assert await kernel.settle(claimed, event, failure_class="not_delivered") is Settled.DONE


async def replay(kernel: Kernel, name: str = "old", successor: str = "new") -> str:
    return await kernel.database.transact(store.replay, Replay(f"wrk_{name}", f"wrk_{successor}"))


async def row(kernel: Kernel, name: str) -> dict[str, object]:
    (found,) = [one for one in await kernel.rows(work_item) if one["id"] == f"wrk_{name}"]
    return found


@pytest.mark.parametrize("family", [COMPLETION, Family.RECONCILE.value])
async def test_w6_a_replay_is_a_new_item_that_names_the_dead_one(kernel: Kernel, family: str) -> None:
    await ended(kernel, family=family)
    before = await row(kernel, "old")
    assert await replay(kernel) == "wrk_new"
    assert await row(kernel, "old") == before, "history is not edited"
    new = await row(kernel, "new")
    assert (new["replay_of"], new["predecessor"]) == ("wrk_old", "wrk_old")
    for same in (
        "family",
        "org",
        "installation",
        "subject_kind",
        "subject_id",
        "view_digest",
        "capability_version",
    ):
        assert new[same] == before[same]
    (claimed,) = await kernel.claim(family=family)
    assert claimed.item.id == "wrk_new"
    assert (claimed.item.failures, claimed.item.first_failed_at) == (0, None), "it has the whole policy again"
    assert await kernel.settle(claimed, Event.SUCCEED) is Settled.DONE


async def test_w6_an_effect_is_never_replayed(kernel: Kernel) -> None:
    await ended(kernel, family=Family.EFFECT.value)
    with pytest.raises(Conflict) as refused:
        await replay(kernel)
    assert "emit a new intent" in refused.value.hint
    assert await kernel.claim() == []


async def test_w6_only_what_has_died_is_replayed(kernel: Kernel) -> None:
    await ended(kernel, Event.SUCCEED, name="done")
    await ended(kernel, Event.SKIP, name="skipped")
    await kernel.insert(kernel.new("waiting", family=COMPLETION))
    for name in ("done", "skipped", "waiting"):
        with pytest.raises(Conflict, match="only dead work"):
            await replay(kernel, name)
    await kernel.claim_one(family=COMPLETION)
    with pytest.raises(Conflict, match="this work is processing"):
        await replay(kernel, "waiting")
    with pytest.raises(MissingOrDenied):
        await replay(kernel, "nothing")


async def test_w6_asked_again_it_names_the_successor_until_that_has_ended(kernel: Kernel) -> None:
    await ended(kernel)
    assert await replay(kernel, successor="new") == "wrk_new"
    assert await replay(kernel, successor="other") == "wrk_new"
    await kernel.settle(await kernel.claim_one(family=COMPLETION), Event.DIE)
    assert await replay(kernel, successor="new") == "wrk_new", (
        "the same run again, after an unknown commit (T5)"
    )
    with pytest.raises(Conflict, match="replayed as wrk_new, which is dead") as refused:
        await replay(kernel, successor="other")
    assert refused.value.hint == "replay that one"
    assert await replay(kernel, "new", "newer") == "wrk_newer"
    assert sorted(await kernel.states()) == ["new", "newer", "old"]


async def test_w6_many_replays_at_once_make_one_successor(kernel: Kernel) -> None:
    await ended(kernel)
    named = await asyncio.gather(*(replay(kernel, successor=f"new{number}") for number in range(8)))
    assert len(set(named)) == 1
    claims: list[Claimed] = await kernel.claim(family=COMPLETION)
    assert [claimed.item.id for claimed in claims] == [named[0]]


async def test_t1_a_replay_rolled_back_after_any_statement_is_the_same_run_again(kernel: Kernel) -> None:
    await ended(kernel)
    before = await kernel.tables()
    asked = Replay("wrk_old", "wrk_new")
    for after in range(1, 100):
        seen: list[int] = []
        try:
            await kernel.database.driver.run(
                lambda after=after, seen=seen: interrupted(store.replay(asked), after, seen), readonly=False
            )
        except Interruption:
            assert await kernel.tables() == before, f"statement {after} left something behind"
        else:
            break
    assert after > 3
    assert await kernel.database.transact(store.replay, asked) == "wrk_new"
    assert len(await kernel.claim(family=COMPLETION, deployment=HERE)) == 1

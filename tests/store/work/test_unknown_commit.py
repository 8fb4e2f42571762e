"""T5: a commit that was not answered is settled by the same transaction again, and has one effect."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from tests.store.work.kernel import HERE, LONG_US, Kernel, Places, blocking, cancel_items, name_of
from tests.store.work.test_rerun import SCENARIOS

from doonce.db.faults import CommitUnknown, RefusedData, RolledBack
from doonce.db.statement import DialectName
from doonce.db.transaction import Txn
from doonce.work import settle, store
from doonce.work.model import Event, Settled, Settlement

T = TypeVar("T")


class Unanswering:
    """A driver whose next commits are not answered: they happened, or they did not."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.script: list[str] = []

    @property
    def dialect(self) -> DialectName:
        return self.inner.dialect

    async def run(self, factory: Callable[[], Txn[T]], *, readonly: bool) -> T:
        what = self.script.pop(0) if self.script else "answered"
        if what == "lost":
            raise CommitUnknown("a test lost this commit before it happened")
        if what == "rolled back":
            raise RolledBack("a test rolled this back")
        result = await self.inner.run(factory, readonly=readonly)
        if what == "happened":
            raise CommitUnknown("a test lost the answer of this commit")
        return result

    async def listen(self, wake: Callable[[str], None]) -> None:
        await self.inner.listen(wake)

    async def close(self) -> None:
        await self.inner.close()


SCRIPTS = [["happened"], ["lost"], ["lost", "happened"], ["happened", "lost", "rolled back", "happened"]]


@pytest.mark.parametrize("script", SCRIPTS, ids="+".join)
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in ("renew", "install")])
async def test_t5_an_unanswered_commit_has_one_effect(places: Places, name: str, script: list[str]) -> None:
    async with places.kernel() as answered, places.kernel(wrap=Unanswering) as unanswered:
        operation, args = await SCENARIOS[name](answered)
        expected = await answered.database.transact(operation, *args)
        operation, args = await SCENARIOS[name](unanswered)
        unanswered.database.driver.script[:] = script
        result = await unanswered.database.transact(operation, *args)

        assert unanswered.database.driver.script == []
        assert without_times(await unanswered.tables()) == without_times(await answered.tables())
        assert as_answered(result, repeated="happened" in script) == as_answered(expected, repeated=False)


def as_answered(result: Any, *, repeated: bool) -> Any:
    """What a caller learns, told apart only by what a rerun may tell differently: *done* and *done before*."""
    if not isinstance(result, list):
        return result
    if any(isinstance(one, Settled) for one in result):
        assert not repeated or Settled.DONE not in result
        return [Settled.DONE if one is Settled.REPEATED else one for one in result]
    return [one.item.id for one in result]


def without_times(tables: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted(re.sub(r"\b\d{15,}\b", "T", row) for row in rows) for name, rows in tables.items()}


async def test_t5_a_claim_whose_commit_was_not_answered_returns_what_it_took(places: Places) -> None:
    async with places.kernel(wrap=Unanswering) as kernel:
        await kernel.insert(*[kernel.new(name) for name in "abcdef"])
        kernel.database.driver.script[:] = ["happened", "happened"]
        claims = await kernel.claim(2)
        assert [name_of(claimed) for claimed in claims] == ["a", "b"]
        assert [(await kernel.item(name)).claims for name in "abc"] == [1, 1, 0]
        for claimed in claims:
            assert await kernel.settle(claimed, Event.SUCCEED) is Settled.DONE
        kernel.database.driver.script[:] = ["lost"]
        assert await kernel.names(2) == ["c", "d"]
        assert await kernel.names(2, owner="prc_2") == ["e", "f"]


async def test_t5_a_claim_run_again_does_not_return_what_has_ended_meanwhile(kernel: Kernel) -> None:
    await kernel.insert(*[kernel.new(name) for name in "ab"])
    request = kernel.request()
    first, second = await kernel.database.transact(store.claim, request)
    await kernel.settle(first, Event.SUCCEED)
    again = await kernel.database.transact(store.claim, request)
    assert [claimed.item.id for claimed in again] == [second.item.id]
    assert (again[0].token, again[0].epoch, again[0].poison) == (second.token, second.epoch, second.poison)
    assert await kernel.settle(again[0], Event.SUCCEED) is Settled.DONE


async def test_t5_a_renewal_run_again_only_lengthens_the_lease(places: Places) -> None:
    async with places.kernel(wrap=Unanswering) as kernel:
        await kernel.insert(kernel.new("a"))
        claimed = await kernel.claim_one()
        kernel.database.driver.script[:] = ["happened", "lost"]
        until_us = await kernel.renew(claimed, 2 * LONG_US)
        assert until_us == (await kernel.item("a")).lease_until
        assert until_us > claimed.lease_until


async def test_t5_a_refusal_after_an_unknown_commit_proves_nothing(places: Places) -> None:
    """An insert that is not idempotent by itself collides with its own first commit: that must not read as refused."""
    async with places.kernel(wrap=Unanswering) as kernel:
        item = kernel.new("a")
        kernel.database.driver.script[:] = ["happened"]
        with pytest.raises(CommitUnknown):
            await kernel.database.transact(store.insert, [item])
        assert await kernel.states() == {"a": "pending"}
        with pytest.raises(RefusedData):
            await kernel.database.transact(store.insert, [item])


async def test_t5_a_commit_that_stays_unknown_is_said_to_be(places: Places) -> None:
    async with places.kernel(wrap=Unanswering) as kernel:
        await kernel.insert(kernel.new("a", **blocking("s")))
        claimed = await kernel.claim_one()
        kernel.database.settings = type(kernel.database.settings)(tries_max=3, base_ms=0.1)
        for end in ("lost", "rolled back"):
            kernel.database.driver.script[:] = ["lost", "lost", end]
            with pytest.raises(CommitUnknown):
                await kernel.database.transact(settle.settle, [Settlement(claimed, Event.SUCCEED)], HERE)
        assert (await kernel.states())["a"] == "processing"
        assert await kernel.database.transact(cancel_items, []) == {}

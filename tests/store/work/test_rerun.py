"""T1: a transaction rolled back after any of its statements leaves nothing, and run again it is the same run."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.store.work.kernel import (
    EXPIRED_US,
    HERE,
    LONG_US,
    Kernel,
    Places,
    blocking,
    cancel_items,
    passing,
)

from doonce.db.transaction import Txn
from doonce.ownership import store as ownership
from doonce.work import settle, store
from doonce.work.model import Event, Settlement

Scenario = tuple[Callable[..., Txn[Any]], tuple[Any, ...]]


async def inserting(kernel: Kernel) -> Scenario:
    await kernel.insert(kernel.new("old", **blocking("s1"), target_lane="t1"))
    items = [
        kernel.new("plain"),
        kernel.new("late", delay_us=LONG_US),
        kernel.new("behind", **blocking("s1"), target_lane="t2"),
        kernel.new("head", **passing("s2"), target_lane="t1"),
        kernel.new("alone", target_lane="t3"),
    ]
    return store.enqueue, (items,)


async def several_waiting(kernel: Kernel) -> None:
    await kernel.insert(
        kernel.new("a"),
        kernel.new("b", target_lane="t1"),
        kernel.new("c", target_lane="t1"),
        kernel.new("d", **blocking("s1"), target_lane="t2"),
        kernel.new("e", **blocking("s1")),
        kernel.new("f", **passing("s2")),
    )


async def claiming(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    return store.claim, (kernel.request(token="second"),)


async def claiming_again(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    await kernel.claim(2, token="first", lease_us=EXPIRED_US)
    return store.claim, (kernel.request(token="second"),)


async def renewing(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    claims = await kernel.claim(token="first")
    return store.renew, ([store.RenewRequest(claimed, HERE, 2 * LONG_US) for claimed in claims],)


def settling(event: Event, **fields: Any) -> Callable[[Kernel], Awaitable[Scenario]]:
    async def scenario(kernel: Kernel) -> Scenario:
        await several_waiting(kernel)
        claims = await kernel.claim(token="first")
        if event is Event.ACK_CANCEL:
            await kernel.cancel("a", "b", "d", "f")
        return settle.settle, ([Settlement(claimed, event, **fields) for claimed in claims], HERE)

    return scenario


async def cancelling(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    await kernel.claim(1, token="first")
    return cancel_items, ([f"wrk_{name}" for name in "abcd"],)


async def bringing_forward(kernel: Kernel) -> Scenario:
    late = {"subject_id": "cmd_x", "delay_us": LONG_US}
    await kernel.insert(
        kernel.new("a", **late),
        kernel.new("b", **late, target_lane="t1"),
        kernel.new("c", **late, **blocking("s1"), target_lane="t2"),
        kernel.new("d", **late, **blocking("s1"), target_lane="t1"),
    )
    return settle.bring_forward, ("cmd_x", "effect")


async def releasing(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    claims = {claimed.item.id: claimed for claimed in await kernel.claim(token="first")}
    await kernel.settle(claims["wrk_d"], Event.DIE, failure_class="test")
    return settle.release_head, ("s1", "wrk_d")


async def sweeping(kernel: Kernel) -> Scenario:
    await several_waiting(kernel)
    await kernel.claim(2, token="first")
    await kernel.lose_hints()
    return store.sweep, ("", 50)


async def installing(kernel: Kernel) -> Scenario:
    return ownership.install, ("elsewhere", "sha256:other", "op_2")


SCENARIOS = {
    "insert": inserting,
    "claim": claiming,
    "reclaim": claiming_again,
    "renew": renewing,
    "hand_back": settling(Event.HAND_BACK),
    "retry": settling(Event.RETRY, delay_us=LONG_US, failed=True, failure_class="refused"),
    "defer": settling(Event.DEFER, delay_us=LONG_US),
    "succeed": settling(Event.SUCCEED, summary="done"),
    "skip": settling(Event.SKIP),
    "die": settling(Event.DIE, failure_class="test", hold_lane_for="att_1"),
    "ack_cancel": settling(Event.ACK_CANCEL),
    "cancel": cancelling,
    "bring_forward": bringing_forward,
    "release_head": releasing,
    "sweep": sweeping,
    "install": installing,
}


class Interruption(Exception):
    """A test stops a transaction."""


def interrupted(transaction: Txn[Any], after: int | None, seen: list[int]) -> Txn[Any]:
    """The same transaction, broken off after so many statements; `seen` gets how many there were."""
    value: Any = None
    for count in range(1, 1_000):
        try:
            call = transaction.send(value)
        except StopIteration as stop:
            seen.append(count - 1)
            return stop.value
        value = yield call
        if count == after:
            raise Interruption
    raise AssertionError("a transaction of a thousand statements")


@pytest.mark.parametrize("name", SCENARIOS)
async def test_t1_a_transaction_rolled_back_after_any_statement_is_the_same_run_again(
    places: Places, name: str
) -> None:
    async with places.kernel() as undisturbed, places.kernel() as disturbed:
        operation, args = await SCENARIOS[name](undisturbed)
        statements: list[int] = []
        expected = await undisturbed.database.driver.run(
            lambda: interrupted(operation(*args), None, statements), readonly=False
        )

        operation, args = await SCENARIOS[name](disturbed)
        before = await disturbed.tables()
        for after in range(1, statements[0] + 1):
            with pytest.raises(Interruption):
                await disturbed.database.driver.run(
                    lambda after=after: interrupted(operation(*args), after, []), readonly=False
                )
            assert await disturbed.tables() == before, f"statement {after} left something behind"
        result = await disturbed.database.transact(operation, *args)

        assert statements[0] >= 3
        assert disturbed.comparable(result) == undisturbed.comparable(expected)
        assert await disturbed.tables() == await undisturbed.tables()

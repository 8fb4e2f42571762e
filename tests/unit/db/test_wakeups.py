"""Hints of new work: given before or during a wait they are heard; without one the wait ends by itself."""

import asyncio

from doonce.db.wakeups import Wakeups


async def test_a_hint_given_before_the_wait_counts_once() -> None:
    wakeups = Wakeups()
    wakeups.wake("work")
    assert await wakeups.wait("work", 10)
    assert not await wakeups.wait("work", 0)


async def test_a_hint_is_heard_by_everybody_who_waits() -> None:
    wakeups = Wakeups()
    waits = [asyncio.create_task(wakeups.wait("work", 10)) for _ in range(3)]
    await asyncio.sleep(0)
    wakeups.wake("work")
    assert await asyncio.gather(*waits) == [True, True, True]


async def test_a_hint_given_while_the_waiters_wake_up_is_for_the_next_wait() -> None:
    wakeups = Wakeups()
    woken: list[bool] = []

    async def wait(again: bool) -> None:
        woken.append(await wakeups.wait("work", 10))
        if again:
            wakeups.wake("work")

    await asyncio.gather(
        wait(again=True), wait(again=False), asyncio.to_thread(lambda: None), wake_soon(wakeups)
    )
    assert woken == [True, True]
    assert await wakeups.wait("work", 0)


async def wake_soon(wakeups: Wakeups) -> None:
    await asyncio.sleep(0)
    wakeups.wake("work")


async def test_topics_are_apart() -> None:
    wakeups = Wakeups()
    wakeups.wake("other")
    assert not await wakeups.wait("work", 0)

"""Who is served when others have more than enough: bounds in claims and statements, never in time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.store.work.kernel import EFFECT, HERE, LONG_US, Kernel

from doonce.app.metrics import Metrics
from doonce.db.transaction import Call
from doonce.work import store
from doonce.work.fairness import Room, Turns
from doonce.work.model import Claimed, Event, NewItem, Scope, Settlement, shelves_of
from doonce.work.service import FamilyWork, Identity, ProcessGate, Worker, WorkerSettings

BIG, SMALL, THIRD = Scope("big", "main"), Scope("small", "main"), Scope("third", "main")
OPEN = shelves_of(1, alone=False)
WORKER = WorkerSettings(concurrency=8, poll_seconds=0.02, suspects_seconds=3600)


def many(kernel: Kernel, scope: Scope, count: int, **fields: Any) -> list[NewItem]:
    return [kernel.new(scope=scope, **fields) for _ in range(count)]


def taken(claims: Iterable[Claimed]) -> Counter[Scope]:
    return Counter(claimed.item.scope for claimed in claims)


# --- claims -------------------------------------------------------------------------------------------------------


async def test_a_backlog_delays_the_single_item_of_another_by_no_claim(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 500))
    await kernel.insert(kernel.new("single", scope=SMALL))
    for scopes in ((BIG, SMALL), (SMALL, BIG)):
        claims = await kernel.claim(32, scopes=scopes)
        assert len(claims) == 32
        assert taken(claims)[SMALL] == (1 if scopes[0] == BIG else 0)


async def test_with_less_rows_than_scopes_each_has_its_turn(kernel: Kernel) -> None:
    scopes = [Scope(f"org{number}", "main") for number in range(7)]
    turns = Turns({})
    turns.know(scopes)
    for scope in scopes[:-1]:
        await kernel.insert(*many(kernel, scope, 20))
    await kernel.insert(kernel.new("single", scope=scopes[-1]))
    found: Counter[Scope] = Counter()
    for _ in range(4):  # seven scopes, two rows a claim
        claims = await kernel.claim(2, scopes=turns.in_turn(scopes), room=Room())
        turns.served(taken(claims))
        found += taken(claims)
    assert set(found) == set(scopes)


async def test_rows_are_shared_by_weight(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 40), *many(kernel, SMALL, 40))
    claims = await kernel.claim(32, scopes=(BIG, SMALL), room=Room(weights={"big": 3}))
    assert taken(claims) == {BIG: 24, SMALL: 8}


async def test_what_nobody_else_has_work_for_is_not_left(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 40), *many(kernel, SMALL, 2), *many(kernel, THIRD, 5))
    claims = await kernel.claim(32, scopes=(SMALL, THIRD, BIG))
    assert taken(claims) == {BIG: 25, SMALL: 2, THIRD: 5}
    assert len({claimed.item.id for claimed in claims}) == 32, "what was found twice is taken once"


async def test_oldest_first_within_a_share_and_a_rerun_takes_nothing_more(kernel: Kernel) -> None:
    for name in ("first", "second", "third"):
        await kernel.insert(kernel.new(name, scope=BIG), kernel.new(f"s_{name}", scope=SMALL))
        kernel.host.now_us += 1_000
    request = kernel.request(2, scopes=(BIG, SMALL))
    claims = await kernel.database.transact(store.claim, request)
    again = await kernel.database.transact(store.claim, request)
    assert sorted(claimed.item.id for claimed in claims) == sorted(claimed.item.id for claimed in again)
    if kernel.on_sqlite:  # the others' clock is their own, and may tell one time for three
        assert {claimed.item.id for claimed in claims} == {"wrk_first", "wrk_s_first"}


# --- statements ---------------------------------------------------------------------------------------------------


def statements_of(kernel: Kernel) -> list[str]:
    """The names of the statements that every later transaction carries out."""
    return kernel.watch(lambda call, _: name_of_call(call))


def name_of_call(call: Call) -> str:
    statement = getattr(call, "statement", None)
    return statement.name if statement is not None else type(call).__name__


async def test_a_claim_of_one_scope_asks_nothing_more_than_for_its_candidates(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 40))
    names = statements_of(kernel)
    assert len(await kernel.claim(32, scopes=(BIG,))) == 32
    looked = [name for name in names if name in ("work.waiting", "work.candidates", "work.next_hint")]
    assert looked == ["work.candidates"]


@pytest.mark.parametrize("idle", [1, 300])
async def test_idle_scopes_cost_a_claim_one_statement_however_many_they_are(
    kernel: Kernel, idle: int
) -> None:
    scopes = [Scope(f"idle{number:03}", "main") for number in range(idle)]
    await kernel.insert(*many(kernel, THIRD, 40))
    await kernel.insert(*[item for scope in scopes[:20] for item in many(kernel, scope, 1, delay_us=LONG_US)])
    names = statements_of(kernel)
    assert len(await kernel.claim(32, scopes=(*scopes, THIRD))) == 32
    looked = [name for name in names if name in ("work.waiting", "work.candidates", "work.next_hint")]
    assert looked == ["work.waiting", "work.candidates"]


async def test_among_ten_thousand_idle_scopes_the_one_with_work_is_found_by_two_questions(
    kernel: Kernel,
) -> None:
    scopes = sorted((Scope(f"org{number:05}", "main") for number in range(10_000)), key=lambda one: one.org)
    await kernel.insert(kernel.new(scope=scopes[7_777]))
    names = statements_of(kernel)
    for start in (0, 7_777, 7_778, 9_999):
        names.clear()
        asked = store.Look(EFFECT, OPEN, scopes, start, 512)
        seen = await kernel.database.read(store.look, asked)
        assert seen.due == (scopes[7_777],)
        assert (start + seen.passed - 1) % len(scopes) in range(7_777, 7_777 + 512)
        assert len(names) <= 3  # one more where the look goes around the end
    names.clear()
    seen = await kernel.database.read(store.look, store.Look("completion", OPEN, scopes, 5_000, 512))
    assert (seen.due, seen.passed) == ((), len(scopes))
    assert len(names) == 2


async def test_what_needs_a_later_engine_is_looked_for_by_a_worker_that_has_it_alone(kernel: Kernel) -> None:
    scopes = [Scope(f"org{number}", "main") for number in range(4)]
    await kernel.insert(
        kernel.new("old", scope=scopes[3]), kernel.new("new", scope=scopes[1], capability_version=2)
    )
    for engine, there, where in ((1, "old", scopes[3]), (2, "new", scopes[1])):
        asked = store.Look(EFFECT, shelves_of(engine, alone=False), scopes, 0, 4)
        seen = await kernel.database.read(store.look, asked)
        assert seen.due == (where,)
        assert await kernel.names(scopes=tuple(scopes), engine=engine) == [there]


async def test_a_look_goes_once_around_and_sees_every_scope_that_has_something_due(kernel: Kernel) -> None:
    scopes = [Scope(f"org{number:02}", f"i{number % 3}") for number in range(23)]
    stranger = Scope("org11", "not ours")
    due, later = set(scopes[::5]), scopes[1::5]
    await kernel.insert(*[kernel.new(scope=scope) for scope in due])
    await kernel.insert(*[kernel.new(scope=scope, delay_us=LONG_US) for scope in later])
    await kernel.insert(kernel.new(scope=stranger))
    for start in range(len(scopes)):
        for at_once in (1, 4, 22):
            position, left, found = start, len(scopes), set()
            while left > 0:
                seen = await kernel.database.read(
                    store.look, store.Look(EFFECT, OPEN, scopes, position, at_once)
                )
                assert len(seen.due) <= at_once
                found |= set(seen.due)
                position, left = (position + seen.passed) % len(scopes), left - seen.passed
            assert found == due


# --- workers ------------------------------------------------------------------------------------------------------


class Calls:
    """What a worker's units do: those of slow scopes never end by themselves, the others end at once."""

    def __init__(self, slow: Iterable[Scope]) -> None:
        self._slow = set(slow)
        self._over = asyncio.Event()
        self.worker: Worker[Claimed] | None = None
        self.under_way: Counter[Scope] = Counter()
        self.most: Counter[Scope] = Counter()
        self.done: Counter[Scope] = Counter()

    def end(self) -> None:
        """From now on nobody is slow."""
        self._over.set()

    async def run(self, claimed: Claimed) -> None:
        scope = claimed.item.scope
        self.under_way[scope] += 1
        self.most[scope] = max(self.most[scope], self.under_way[scope])
        if scope in self._slow:
            await self._over.wait()
        assert self.worker is not None
        await self.worker.settlements.submit(Settlement(claimed, Event.SUCCEED))
        self.under_way[scope] -= 1
        self.done[scope] += 1


@asynccontextmanager
async def working(
    kernel: Kernel,
    scopes: Sequence[Scope],
    slow: Iterable[Scope] = (),
    settings: WorkerSettings = WORKER,
    weights: Mapping[str, int] | None = None,
    family: str = EFFECT,
) -> AsyncIterator[Calls]:
    """A worker for these scopes; at the end it is drained, so nothing that it took is lost."""
    calls = Calls(slow)

    async def given() -> Sequence[Scope]:
        return scopes

    calls.worker = Worker(
        kernel.database,
        FamilyWork(family, lambda request: request, store.claim, lambda claimed: claimed, calls.run),
        Identity(HERE, "prc_1"),
        given,
        settings,
        Metrics(),
        ProcessGate(weights or {}),
    )
    task = asyncio.create_task(calls.worker.run())
    try:
        yield calls
    finally:
        calls.end()
        calls.worker.begin_drain()
        await task


async def until(fact: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(60):
            while not fact():
                await asyncio.sleep(0.005)
    except TimeoutError:
        pytest.fail(f"not in time: {what}")


async def test_calls_that_never_end_leave_slots_to_another_that_comes_later(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 20))
    async with working(kernel, [BIG, SMALL], slow=[BIG]) as calls:
        await until(lambda: calls.under_way[BIG] == 7, "seven slots of eight are the slow one's")
        await kernel.insert(*many(kernel, SMALL, 50))
        await until(lambda: calls.done[SMALL] == 50, "all of the quick one's work")
        assert (calls.done[BIG], calls.most[BIG]) == (0, 7)


async def test_many_whose_calls_never_end_leave_slots_too(kernel: Kernel) -> None:
    slow = [Scope(f"slow{number}", "main") for number in range(4)]
    for scope in slow:
        await kernel.insert(*many(kernel, scope, 40))
    settings = WorkerSettings(concurrency=64, poll_seconds=0.02, suspects_seconds=3600)
    async with working(kernel, [*slow, SMALL], slow=slow, settings=settings) as calls:
        await until(
            lambda: min(calls.under_way[scope] for scope in slow) >= 14, "each of the slow ones has its share"
        )
        await kernel.insert(*many(kernel, SMALL, 20))
        await until(lambda: calls.done[SMALL] == 20, "all of the quick one's work")
        assert sum(calls.done[scope] for scope in slow) == 0


async def test_from_the_start_both_have_half_while_both_have_work(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 20), *many(kernel, SMALL, 20))
    async with working(kernel, [BIG, SMALL], slow=[BIG, SMALL]) as calls:
        await until(lambda: calls.under_way.total() >= 7, "as many as the limit lets")
        assert abs(calls.under_way[BIG] - calls.under_way[SMALL]) <= 1


async def test_a_scope_alone_has_all_slots(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 20))
    async with working(kernel, [BIG], slow=[BIG]) as calls:
        await until(lambda: calls.under_way[BIG] == 8, "all slots are in use")


async def test_slow_calls_of_one_family_take_no_slot_of_another(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 20), *many(kernel, BIG, 20, family="completion"))
    async with (
        working(kernel, [BIG], slow=[BIG]) as effects,
        working(kernel, [BIG], family="completion") as completions,
    ):
        await until(lambda: effects.under_way[BIG] == 8, "all slots of the one family are in use")
        await until(lambda: completions.done[BIG] == 20, "all work of the other")
        assert (effects.most[BIG], effects.done[BIG]) == (8, 0)


async def test_slots_are_shared_by_weight(kernel: Kernel) -> None:
    await kernel.insert(*many(kernel, BIG, 60), *many(kernel, SMALL, 60))
    settings = WorkerSettings(concurrency=32, poll_seconds=0.02, suspects_seconds=3600)
    async with working(kernel, [BIG, SMALL], [BIG, SMALL], settings, {"big": 3}) as calls:
        await until(lambda: calls.under_way.total() >= 28, "nearly all slots are in use")
        assert calls.under_way[SMALL] * 2 < calls.under_way[BIG] <= calls.under_way[SMALL] * 3 + 3


async def test_the_busiest_gets_the_room_that_its_own_ends_make(kernel: Kernel) -> None:
    """At its limit it is not forgotten: poll and hint are far away, and its own ends are what goes on."""
    await kernel.insert(*many(kernel, BIG, 100))
    settings = WorkerSettings(concurrency=4, poll_seconds=3600, suspects_seconds=3600)
    async with working(kernel, [BIG, SMALL], slow=[BIG], settings=settings) as calls:
        await until(lambda: calls.under_way[BIG] == 3, "it stands at its limit")
        calls.end()
        await until(lambda: calls.done[BIG] == 100, "all of its work")


async def test_more_scopes_than_one_claim_asks_about_are_all_worked(kernel: Kernel) -> None:
    scopes = [Scope(f"org{number:02}", "main") for number in range(11)]
    for scope in scopes[::2]:
        await kernel.insert(*many(kernel, scope, 9))
    settings = WorkerSettings(concurrency=4, poll_seconds=3600, suspects_seconds=3600, scopes_per_claim=2)
    async with working(kernel, scopes, settings=settings) as calls:
        await until(lambda: calls.done.total() == 54, "all work, without a single poll")
        await kernel.insert(kernel.new(scope=scopes[9]))
        await until(
            lambda: calls.done[scopes[9]] == 1, "and what comes later, in the scope that was never served"
        )


async def test_a_worker_rests_only_after_a_whole_round_of_very_many_scopes(kernel: Kernel) -> None:
    scopes = [Scope(f"org{number:02}", "main") for number in range(11)]
    await kernel.insert(*[kernel.new(scope=scope) for scope in scopes[::3]])
    settings = WorkerSettings(concurrency=16, poll_seconds=3600, suspects_seconds=3600, scopes_per_claim=2)
    async with working(kernel, scopes, scopes, settings) as calls:
        await until(
            lambda: calls.under_way.total() == 4, "each of them, though no claim found as many as it could"
        )

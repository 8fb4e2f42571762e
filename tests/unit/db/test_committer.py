"""G1, G2: the group committer shares transactions, stays within its bounds, and tells each caller of its own row."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.db.fake import QUICK, FakeDriver, fake_database

from doonce.base.errors import Exhausted, Unavailable
from doonce.db.committer import Committer, CommitterSettings
from doonce.db.database import RetrySettings
from doonce.db.faults import Contended, RefusedData
from doonce.db.transaction import Txn

Row = tuple[str, int]


def flush(rows: Sequence[Row]) -> Txn[list[Row]]:
    yield from ()
    return list(rows)


class Flushes:
    """The sizes that a committer reports."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def flushed(self, operation: str, rows: int) -> None:
        assert operation == "flush"
        self.sizes.append(rows)


def committer(
    settings: CommitterSettings | None = None, retry: RetrySettings = QUICK
) -> tuple[Committer[Row, Row], FakeDriver, Flushes]:
    database, driver = fake_database(retry)
    flushes = Flushes()
    made = Committer(
        database, flush, key=lambda row: row[0], size=lambda row: row[1], settings=settings, observer=flushes
    )
    return made, driver, flushes


def rows_of(keys: str) -> list[Row]:
    return [(key, 1) for key in keys]


async def settle_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_g1_alone_at_once_and_together_while_a_flush_runs() -> None:
    made, driver, flushes = committer()
    driver.gate = asyncio.Event()
    first = asyncio.create_task(made.submit(("m", 1)))
    await settle_loop()
    rest = [asyncio.create_task(made.submit((key, 1))) for key in "zka"]
    await settle_loop()
    driver.gate.set()
    assert await asyncio.gather(first, *rest) == rows_of("mzka")
    assert driver.runs == [rows_of("m"), rows_of("akz")], "in the order of the keys, whoever came first"
    assert flushes.sizes == [1, 3]


async def test_g1_one_row_of_a_key_in_a_flush() -> None:
    made, driver, _ = committer()
    rows = [("a", 1), ("b", 1), ("a", 2), ("a", 3)]
    assert await asyncio.gather(*map(made.submit, rows)) == rows
    assert driver.runs == [[("a", 1), ("b", 1)], [("a", 2)], [("a", 3)]]


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 40)), min_size=1, max_size=60),
    st.integers(1, 9),
    st.integers(40, 90),
    st.integers(1, 12),
    st.integers(1, 3),
)
def test_g1_no_flush_is_over_its_bounds_and_everybody_hears_of_their_own_row(
    rows: list[Row], rows_max: int, bytes_max: int, queue_rows_max: int, flushes_max: int
) -> None:
    settings = CommitterSettings(
        rows_max=rows_max, bytes_max=bytes_max, queue_rows_max=queue_rows_max, queue_bytes_max=2 * bytes_max,
        flushes_max=flushes_max,
    )  # fmt: skip

    async def run() -> None:
        made, driver, _ = committer(settings)
        assert await asyncio.gather(*map(made.submit, rows)) == rows
        assert driver.most_under_way <= flushes_max
        for flushed in driver.runs:
            keys = [key for key, _ in flushed]
            assert len(keys) <= rows_max
            assert keys == sorted(set(keys))
            assert sum(size for _, size in flushed) <= bytes_max
        for key in {key for key, _ in rows}:
            sent = [row for row in rows if row[0] == key]
            got = [row for flushed in driver.runs for row in flushed if row[0] == key]
            assert got == sent or flushes_max > 1
        await made.drain()

    asyncio.run(run())


async def test_g1_a_row_over_the_flush_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    made, _, _ = committer(CommitterSettings(bytes_max=100))
    assert await made.submit(("a", 100)) == ("a", 100)
    with pytest.raises(Exhausted):
        await made.submit(("a", 101))


@pytest.mark.parametrize(
    "settings,size",
    [
        (CommitterSettings(queue_rows_max=5, rows_max=2), 1),
        (CommitterSettings(queue_bytes_max=500, rows_max=2), 100),
    ],
    ids=["rows", "bytes"],
)
async def test_g1_a_full_queue_makes_callers_wait_and_does_not_grow(
    settings: CommitterSettings, size: int
) -> None:
    made, driver, _ = committer(settings)
    driver.gate = asyncio.Event()
    calls = [asyncio.create_task(made.submit((f"{number:02}", size))) for number in range(40)]
    await settle_loop()
    assert len(made._queue) == 5
    assert not any(call.done() for call in calls)
    driver.gate.set()
    await asyncio.gather(*calls)
    assert made._queue_bytes == 0
    assert max(len(flushed) for flushed in driver.runs) == 2


async def test_g1_callers_that_wait_for_room_go_on_when_others_give_up() -> None:
    """The whole queue is withdrawn while a flush runs: whoever waits for room must not wait for ever."""
    made, driver, _ = committer(CommitterSettings(queue_rows_max=2))
    driver.gate = asyncio.Event()
    first = asyncio.create_task(made.submit(("a", 1)))
    await settle_loop()
    queued = [asyncio.create_task(made.submit((key, 1))) for key in "bc"]
    await settle_loop()
    waiting = asyncio.create_task(made.submit(("d", 1)))
    await settle_loop()
    driver.gate.set()
    for call in queued:
        call.cancel()
    async with asyncio.timeout(5):
        assert await waiting == ("d", 1)
        assert await first == ("a", 1)


async def test_g1_a_large_row_is_not_starved_of_room_by_small_ones() -> None:
    made, driver, _ = committer(CommitterSettings(queue_bytes_max=100, bytes_max=90, rows_max=3))
    driver.gate = asyncio.Event()
    calls = [asyncio.create_task(made.submit((f"{number:02}", 30))) for number in range(6)]
    await settle_loop()
    large = asyncio.create_task(made.submit(("large", 90)))
    await settle_loop()
    small = [asyncio.create_task(made.submit((f"s{number}", 30))) for number in range(9)]
    await settle_loop()
    driver.gate.set()
    await asyncio.gather(*calls, large, *small)
    flushed_in = {key: number for number, flushed in enumerate(driver.runs) for key, _ in flushed}
    assert flushed_in["large"] < flushed_in["s0"]


async def test_g2_a_data_error_reaches_only_its_own_caller() -> None:
    made, driver, _ = committer()
    driver.fault = lambda result: RefusedData("bad") if any(key in "ce" for key, _ in result) else None
    results = await asyncio.gather(*[made.submit(row) for row in rows_of("abcdef")], return_exceptions=True)
    assert [isinstance(result, RefusedData) for result in results] == [False, False, True, False, True, False]
    assert [result for result in results if not isinstance(result, Exception)] == rows_of("abdf")


async def test_g2_a_contended_row_goes_again_alone_and_does_not_take_the_others_with_it() -> None:
    made, driver, _ = committer()
    held = {"c"}
    driver.fault = lambda result: Contended("held") if any(key in held for key, _ in result) else None
    results = await asyncio.gather(*[made.submit(row) for row in rows_of("abcd")], return_exceptions=True)
    assert [isinstance(result, Contended) for result in results] == [False, False, True, False]
    alone = [run for run in driver.runs if run != "Contended"]
    assert alone == [[row] for row in rows_of("abd")]


async def test_g2_a_contended_row_whose_lock_is_let_go_succeeds() -> None:
    made, driver, _ = committer(retry=RetrySettings(contended_tries_max=1, base_ms=0.01))
    failures = iter([Contended("held")])
    driver.fault = lambda result: next(failures, None)
    assert await asyncio.gather(*map(made.submit, rows_of("ab"))) == rows_of("ab")
    assert driver.runs == ["Contended", rows_of("a"), rows_of("b")]


async def test_another_fault_reaches_every_caller_of_its_flush_and_no_other() -> None:
    made, driver, _ = committer(CommitterSettings(rows_max=2))
    failures = iter([Unavailable("down")])
    driver.fault = lambda result: next(failures, None)
    results = await asyncio.gather(*map(made.submit, rows_of("abcd")), return_exceptions=True)
    assert [isinstance(result, Unavailable) for result in results] == [True, True, False, False]


async def test_t6_a_caller_that_gives_up_before_its_row_is_sealed_withdraws_it() -> None:
    made, driver, _ = committer()
    driver.gate = asyncio.Event()
    first = asyncio.create_task(made.submit(("a", 1)))
    await settle_loop()
    second = asyncio.create_task(made.submit(("b", 1)))
    third = asyncio.create_task(made.submit(("c", 1)))
    await settle_loop()
    second.cancel()
    driver.gate.set()
    assert await asyncio.gather(first, third) == rows_of("ac")
    assert second.cancelled()
    assert driver.runs == [rows_of("a"), rows_of("c")]
    assert made._queue_bytes == 0


async def test_t6_a_caller_that_gives_up_just_as_its_flush_begins_leaves_the_counts_right() -> None:
    made, driver, _ = committer()
    first = asyncio.create_task(made.submit(("a", 1)))
    await asyncio.sleep(0)
    first.cancel()  # its future is cancelled now, its coroutine hears of it after the seal
    await settle_loop()
    assert driver.runs == []
    assert made._queue_bytes == 0


async def test_t6_a_caller_that_gives_up_after_its_row_is_sealed_does_not_stop_the_flush() -> None:
    made, driver, _ = committer()
    driver.gate = asyncio.Event()
    calls = [asyncio.create_task(made.submit(row)) for row in rows_of("ab")]
    await settle_loop()
    calls[0].cancel()
    await settle_loop()
    driver.gate.set()
    assert await calls[1] == ("b", 1)
    assert driver.runs == [rows_of("ab")]


async def test_drain_waits_for_what_is_queued_and_what_runs() -> None:
    made, driver, _ = committer(CommitterSettings(rows_max=1))
    driver.gate = asyncio.Event()
    calls = [asyncio.create_task(made.submit(row)) for row in rows_of("abc")]
    await settle_loop()
    drained = asyncio.create_task(made.drain())
    await settle_loop()
    assert not drained.done()
    driver.gate.set()
    await drained
    assert driver.runs == [rows_of(key) for key in "abc"]
    assert await asyncio.gather(*calls) == rows_of("abc")


async def test_two_flushes_run_at_once_where_the_settings_say_so() -> None:
    made, driver, _ = committer(CommitterSettings(rows_max=2, flushes_max=2))
    driver.gate = asyncio.Event()
    calls = [asyncio.create_task(made.submit(row)) for row in rows_of("abcdef")]
    await settle_loop()
    assert driver.under_way == 2
    driver.gate.set()
    await asyncio.gather(*calls)
    assert driver.most_under_way == 2


async def test_an_operation_that_answers_for_too_few_rows_is_heard_of() -> None:
    def short(rows: Sequence[Row]) -> Txn[list[Row]]:
        yield from ()
        return list(rows)[1:]

    database, _ = fake_database()
    made: Committer[Row, Any] = Committer(database, short, key=lambda row: row[0])
    heard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    results = await asyncio.gather(*map(made.submit, rows_of("ab")), return_exceptions=True)
    assert any(isinstance(result, ValueError) for result in results)

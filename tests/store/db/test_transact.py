"""T1, T6 on each engine: results leave after the commit, errors roll back, and nobody's impatience stops a commit."""

import asyncio
import threading
from typing import Any

import pytest
from tests.store.db.notes import MISSING, READ, SET, NoteDatabase, note, now, put, read, write

from doonce.base.errors import Invalid, Unavailable
from doonce.db.database import Database, RetrySettings
from doonce.db.faults import RefusedData, RolledBack
from doonce.db.transaction import Txn, clock, fetch, insert_many


class Observed:
    """What a database reports."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, ...]] = []

    def rolled_back(self, operation: str, fault: str) -> None:
        self.seen.append((operation, fault))

    def commit_unknown(self, operation: str) -> None:
        self.seen.append((operation, "unknown"))


def refuse(error: Exception) -> Txn[None]:
    yield from insert_many(note, ("id", "number"), [("a", 1)])
    raise error


@pytest.mark.parametrize("error", [Invalid("no"), ValueError("a fault of ours"), KeyError("x")])
async def test_t1_an_operations_own_error_rolls_back_and_comes_out_as_it_is(
    notes: NoteDatabase, error: Exception
) -> None:
    with pytest.raises(type(error)) as raised:
        await notes.database.transact(refuse, error)
    assert raised.value is error
    assert await notes.rows() == []
    assert await notes.database.transact(put, [("b", 2)]) == "written"


async def test_t1_a_database_error_closes_the_generator_and_cannot_be_caught(notes: NoteDatabase) -> None:
    heard: list[str] = []

    def stubborn() -> Txn[str]:
        try:
            yield from insert_many(note, ("id", "number"), [("a", 1), ("a", 2)])
        except Exception:  # noqa: BLE001
            heard.append("caught")
        finally:
            heard.append("closed")
        yield from insert_many(note, ("id", "number"), [("b", 1)])
        return "went on"

    with pytest.raises(RefusedData):
        await notes.database.transact(stubborn)
    assert heard == ["closed"]
    assert await notes.rows() == []


async def test_t1_a_proven_rollback_is_run_again_from_the_start(notes: NoteDatabase) -> None:
    observed = notes.database.observer = Observed()
    failures = [RolledBack("deadlock"), RolledBack("again")]

    def unlucky() -> Txn[int]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        if failures:
            raise failures.pop()
        return 7

    assert await notes.database.transact(unlucky) == 7
    assert await notes.rows() == [("a", 1)]
    assert observed.seen == [("unlucky", "RolledBack")] * 2


async def test_a_transaction_that_is_always_rolled_back_is_given_up(notes: NoteDatabase) -> None:
    notes.database.settings = RetrySettings(tries_max=3, base_ms=0.1)
    runs: list[int] = []

    def hopeless() -> Txn[None]:
        runs.append(1)
        yield from clock()
        raise RolledBack("again")

    with pytest.raises(Unavailable):
        await notes.database.transact(hopeless)
    assert len(runs) == 3


async def test_t6_cancelling_the_caller_does_not_cancel_the_commit(notes: NoteDatabase) -> None:
    reached, may_go_on = threading.Event(), threading.Event()
    in_thread = notes.url.startswith("sqlite")

    def slow() -> Txn[None]:
        yield from insert_many(note, ("id", "number"), [("a", 1)])
        reached.set()
        if in_thread:
            may_go_on.wait(10)
        yield from fetch(READ)

    call = asyncio.create_task(notes.database.transact(slow))
    await asyncio.to_thread(reached.wait, 10)
    call.cancel()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    await notes.database.close()
    assert await rows_of_new(notes) == [("a", 1)], "closing waits for the commit too"


async def rows_of_new(notes: NoteDatabase) -> list[tuple[str, int]]:
    again = Database(notes.url, type(notes.database.driver)(*reopened(notes.database.driver)))
    try:
        return await again.read(read)
    finally:
        await again.close()


def reopened(driver: Any) -> tuple[Any, Any]:
    return getattr(driver, "path", None) or driver.url, driver.settings


async def test_a_closed_database_refuses_at_once(notes: NoteDatabase) -> None:
    await notes.database.close()
    for call in (notes.database.transact(put, [("a", 1)]), notes.database.read(read)):
        with pytest.raises(Unavailable):
            await call


async def test_a_missing_table_is_named_with_what_to_do(notes: NoteDatabase) -> None:
    def lost() -> Txn[None]:
        yield from fetch(MISSING)

    with pytest.raises(Unavailable, match="nowhere") as raised:
        await notes.database.transact(lost)
    assert "migrate" in raised.value.hint


async def test_g2_a_number_out_of_range_is_refused_wherever_it_stands(notes: NoteDatabase) -> None:
    await notes.database.transact(put, [("a", 2**63 - 1), ("b", -(2**63))])
    before = await notes.rows()
    for number in (2**63, -(2**63) - 1, 2**64):
        for operation in (write, put):
            with pytest.raises(RefusedData):
                await notes.database.transact(operation, [("c", number)])

        def change(number: int = number) -> Txn[None]:
            yield from fetch(SET, rows=[("a", number)])

        with pytest.raises(RefusedData):
            await notes.database.transact(change)
    assert await notes.rows() == before


async def test_a_read_writes_nothing(notes: NoteDatabase) -> None:
    for operation in (put, write):
        with pytest.raises((TypeError, Unavailable)):
            await notes.database.read(operation, [("a", 1)])

    def change() -> Txn[None]:
        yield from fetch(SET, rows=[("a", 1)])

    with pytest.raises((TypeError, Unavailable)):
        await notes.database.read(change)
    assert await notes.database.read(now) > 0


async def test_c2_the_clock_never_stands_still_or_goes_back(notes: NoteDatabase) -> None:
    times: list[int] = []

    def twice() -> Txn[None]:
        times.extend([(yield from clock()), (yield from clock())])

    for _ in range(5):
        notes.host.now_us -= 1_000_000
        await notes.database.transact(twice)
        times.append(await notes.database.read(now))
    assert times == sorted(times)
    if notes.url.startswith("sqlite"):
        written = [time for position, time in enumerate(times) if position % 3 != 2]
        assert len(set(written)) == len(written), "each write's time is later than any before"


async def test_many_callers_at_once_all_get_their_own_result(notes: NoteDatabase) -> None:
    results = await asyncio.gather(*[notes.database.transact(write, [(f"{n:02}", n)]) for n in range(40)])
    assert len(results) == 40
    assert await notes.rows() == [(f"{n:02}", n) for n in range(40)]

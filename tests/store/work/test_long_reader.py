"""No cliff of dead rows: with a snapshot held open, a look costs what it takes, not what has been done since."""

from typing import Any

import asyncpg
import msgspec
import pytest
from tests.store.work.kernel import EFFECT, HERE, SCOPE, Kernel, Places, name_of

from doonce.db.postgresql import PostgresqlDriver
from doonce.work import settle
from doonce.work.floors import PATIENCE, Floors
from doonce.work.looking import CANDIDATES
from doonce.work.model import Event, Scope, Settlement, Shelf
from doonce.work.tables import work_ready

ITEMS, BATCH, ROWS = 30_000, 250, 50
HOUR_NS = 3_600 * 10**9


class OneSlowLook:
    """A process's clock under which the first look takes an hour, and everything after it no time."""

    def __init__(self) -> None:
        self.asked = 0
        self.now_ns = 0

    def __call__(self) -> int:
        self.asked += 1
        if self.asked == 2:
            self.now_ns = HOUR_NS
        return self.now_ns


async def work_off(kernel: Kernel, items: int, floors: Floors) -> None:
    """Claim and end so many items."""
    for _ in range(items // BATCH):
        claims = await kernel.claim(BATCH, floors=floors)
        assert len(claims) == BATCH
        done = [Settlement(claimed, Event.SUCCEED) for claimed in claims]
        await kernel.database.transact(settle.settle, done, HERE)


async def buffers(connection: "asyncpg.Connection[Any]", since_us: int) -> int:
    """How many pages one look from there on touches, as the server counts them."""
    looked = {
        "family": EFFECT, "shelf": Shelf.OPEN.value, "org": SCOPE.org, "installation": SCOPE.installation,
        "since": since_us, "rows": ROWS,
    }  # fmt: skip
    compiled = CANDIDATES.postgresql
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled.text}"
    plan = msgspec.json.decode(await connection.fetchval(explain, *compiled.arguments(looked)))[0]["Plan"]
    assert plan["Actual Rows"] == ROWS
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.postgresql
async def test_under_a_long_reader_a_look_touches_no_more_pages_the_more_was_done(
    postgres_places: Places,
) -> None:
    async with postgres_places.kernel() as kernel:
        for _ in range(0, ITEMS + 2 * ROWS, 2_000):
            await kernel.insert(*[kernel.new() for _ in range(2_000)])
        driver = kernel.database.driver
        assert isinstance(driver, PostgresqlDriver)
        reader, looker = await driver._connect(), await driver._connect()
        try:
            await reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            held = await reader.fetchval("SELECT count(*) FROM work_ready")
            floors = Floors(OneSlowLook())
            await work_off(kernel, ITEMS // 3, floors)
            early = await buffers(looker, floors.begin(SCOPE))
            await work_off(kernel, 2 * ITEMS // 3, floors)
            late, whole = await buffers(looker, floors.begin(SCOPE)), await buffers(looker, 0)
            assert await reader.fetchval("SELECT count(*) FROM work_ready") == held, (
                "it has kept its snapshot"
            )
        finally:
            await reader.close()
            await looker.close()
        assert whole > 3 * late, "the reader keeps what was taken in the way of a look from the front"
        assert late < early + 100, (early, late, whole)


async def test_what_is_put_in_below_the_floor_waits_for_the_next_whole_look(kernel: Kernel) -> None:
    clock = OneSlowLook()
    floors = Floors(clock)
    await kernel.insert(*[kernel.new(name) for name in ("a", "b", "c", "d")])
    assert await kernel.names(1, floors=floors) == ["a"]
    early = work_ready.update().where(work_ready.c.item_id == "wrk_b").values(due=1)
    await kernel.execute(early)
    assert await kernel.names(1, floors=floors) == ["c"]
    assert await kernel.names(floors=floors) == ["d"]
    clock.now_ns += PATIENCE * HOUR_NS
    assert [name_of(claimed) for claimed in await kernel.claim(floors=floors)] == ["b"]


async def test_a_suspect_is_looked_for_from_the_front(kernel: Kernel) -> None:
    """Floors are of the open shelf alone."""
    floors = Floors(OneSlowLook())
    await kernel.insert(*[kernel.new(name) for name in ("a", "b", "c")])
    assert await kernel.names(1, floors=floors) == ["a"]
    early = work_ready.update().where(work_ready.c.item_id == "wrk_b").values(due=1, shelf=Shelf.ALONE.value)
    await kernel.execute(early)
    assert await kernel.names(1, alone=True, floors=floors) == ["b"]
    assert await kernel.names(1, floors=floors) == ["c"]


async def test_among_several_scopes_those_that_only_a_whole_look_can_see_are_not_passed_over(
    kernel: Kernel,
) -> None:
    clock = OneSlowLook()
    floors = Floors(clock)
    both = (SCOPE, Scope("beta", "main"))
    await kernel.insert(*[kernel.new(name) for name in ("a", "b")])
    assert await kernel.names(1, floors=floors) == ["a"]
    await kernel.execute(work_ready.update().values(due=1))
    await kernel.insert(kernel.new("c", scope=both[1]))
    assert await kernel.names(scopes=both, floors=floors) == ["c"]
    clock.now_ns += PATIENCE * HOUR_NS
    assert await kernel.names(scopes=both, floors=floors) == ["b"]

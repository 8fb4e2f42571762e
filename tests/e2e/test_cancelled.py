"""Wherever the life of an embedded deployment is cancelled, nothing of it goes on: no task, no connection.

An application is cancelled by a second Ctrl-C, by a time-out of its own, or by whatever runs it. Who looks is the
server, or on SQLite the system's list of open files.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import asyncmy
import asyncpg
import pytest
import sqlalchemy as sa
from tests.e2e.conftest import deployment, until

pytestmark = pytest.mark.e2e

EVERY = 17
"""Of the many waits of a start, one in so many is cancelled; of those of a stop, each one."""


class Cancelling:
    """Awaits something, and has the task cancelled at its wait of this number."""

    def __init__(self, awaited: Awaitable[None], at: int) -> None:
        self._awaited = awaited
        self._at = at
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._awaited.__await__()
        thrown: BaseException | None = None
        while True:
            try:
                waits_for = steps.send(None) if thrown is None else steps.throw(thrown)
            except StopIteration:
                return
            self.waits += 1
            task = asyncio.current_task()
            if self.waits == self._at and task is not None:
                asyncio.get_running_loop().call_soon(task.cancel)
            try:
                thrown = None
                yield waits_for
            except BaseException as error:  # noqa: BLE001 (it goes on inside)
                thrown = error


async def connected_to_postgresql(url: str) -> int:
    raw = await asyncpg.connect(url)
    try:
        found: int = await raw.fetchval(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        await raw.close()
    return found


async def connected_to_mariadb(url: str) -> int:
    place = sa.make_url(url)
    raw = await asyncmy.connect(
        host=place.host, port=place.port, user=place.username, password=place.password, db=place.database
    )
    try:
        async with raw.cursor() as cursor:
            await cursor.execute(
                "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
            )
            return int((await cursor.fetchone())[0])
    finally:
        await raw.ensure_closed()


async def open_files(url: str) -> int:
    return files_open_here(url.removeprefix("sqlite:///"))


def files_open_here(path: str) -> int:
    found = 0
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own is gone by now
            found += str(link.readlink()).startswith(path)
    return found


LOOKS: dict[str, Callable[[str], Awaitable[int]]] = {
    "sqlite": open_files,
    "postgresql": connected_to_postgresql,
    "mariadb": connected_to_mariadb,
}
FIXTURES = {"sqlite": "sqlite_path", "postgresql": "fresh_postgres", "mariadb": "fresh_mariadb"}


@pytest.mark.parametrize("engine", LOOKS)
async def test_nothing_goes_on(request: pytest.FixtureRequest, tmp_path: Path, engine: str) -> None:
    place = request.getfixturevalue(FIXTURES[engine])
    url = f"sqlite:///{place}" if engine == "sqlite" else str(place)
    look = LOOKS[engine]
    async with deployment(url, tmp_path):
        pass  # it is migrated, and its key file is there

    entered = left = 0

    async def nothing_goes_on() -> bool:
        """A transaction under way is let finish."""
        return asyncio.all_tasks() == {asyncio.current_task()} and await look(url) == 0

    async def live(at: int) -> int:
        """One life that is cancelled at a wait; how many there were."""
        nonlocal entered, left

        async def life() -> None:
            nonlocal entered, left
            async with deployment(url, tmp_path, migrate=False):
                entered = counted.waits
                await asyncio.sleep(0.01)
                left = counted.waits

        counted = Cancelling(life(), at)

        async def lived() -> None:
            await counted

        task = asyncio.create_task(lived())
        await asyncio.wait([task], timeout=30)
        assert task.done()
        if at > counted.waits:
            task.result()
        else:
            assert task.cancelled(), task
        await until(nothing_goes_on, seconds=10)
        return counted.waits

    waits = await live(at=10_000)
    assert entered < left < waits
    for at in (*range(1, left, EVERY), *range(left, waits + 1)):
        await live(at)

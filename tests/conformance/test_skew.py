"""The suite with workers whose clocks and time zones disagree: nothing changes where the server has the time (C1)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from pathlib import Path

import pytest
from tests.conformance.running import conformance

from doonce.base.ids import new_id
from doonce.conformance.cases import CASES
from doonce.conformance.jobs import ClaimJob
from doonce.conformance.processes import processes
from doonce.conformance.scratch import scratch
from doonce.conformance.skew import SKEWS
from doonce.conformance.stage import Stage, Tenant, staging

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]

COMMANDS = 24
WORK_SECONDS = 8.0
"""How long workers that disagree about the host's clock are watched, unless they are done before."""


@pytest.fixture
def own_forks() -> Iterator[None]:
    """The process that others are forked from is one for each interpreter: here it needs the library, else not."""
    server = forkserver._forkserver  # type: ignore[attr-defined]  # nothing public ends it
    server._stop()
    yield
    server._stop()


@pytest.mark.parametrize(
    "server",
    [
        pytest.param("fresh_postgres", marks=pytest.mark.postgresql, id="postgresql"),
        pytest.param("fresh_mariadb", marks=pytest.mark.mariadb, id="mariadb"),
    ],
)
def test_c1_every_case_passes_whatever_the_workers_believe_about_the_time(
    request: pytest.FixtureRequest, server: str
) -> None:
    ran = conformance(request.getfixturevalue(server), "--skew", "--json")
    assert ran.failed == {}, ran.err
    assert (ran.status, ran.report["passed"], ran.report["not_run"]) == (0, len(CASES), [])


def test_c1_on_sqlite_what_needs_a_common_time_is_listed_and_all_else_passes(tmp_path: Path) -> None:
    ran = conformance(f"sqlite:///{tmp_path / 'x.db'}", "--skew", "--json")
    assert ran.failed == {}, ran.err
    run = [case["id"] for case in ran.report["cases"]]
    left = {one["id"]: one["reason"] for one in ran.report["not_run"]}
    assert run == [case.id for case in CASES if not case.paced]
    assert list(left) == [case.id for case in CASES if case.paced]
    assert all("the time is the host's" in reason for reason in left.values())


@pytest.mark.usefixtures("own_forks")
async def test_each_worker_has_the_clock_that_it_was_given(tmp_path: Path) -> None:
    """SQLite's own time follows the host's, so a claim tells what its process believed."""
    for number, skew in enumerate(one for one in SKEWS if one.ahead_seconds > 0):
        with processes([skew]) as forks:
            async with (
                scratch(f"sqlite:///{tmp_path / f'{number}.db'}") as place,
                staging(place, (), forks) as make,
            ):
                stage = make()
                items = await stage.insert(1)
                job = ClaimJob(place=stage.place, owner=new_id("prc"), items=items, rows_max=1, lease_us=1)
                process = await stage.spawn(job)
                await process.begin()
                (took,) = (await process.result()).took
                assert took.claimed_at / 1e6 > time.time() + 0.9 * skew.ahead_seconds
                await stage.close()


async def states(stage: Stage, tenant: Tenant, commands: list[str]) -> dict[str, str]:
    """What is known of each command; all of them are there."""
    operator = stage.operator(tenant)
    return {command: (await operator.command(command)).state.value for command in commands}


@pytest.mark.usefixtures("own_forks")
async def test_c1_on_sqlite_nothing_is_sent_twice_and_nothing_is_lost(tmp_path: Path) -> None:
    with processes(SKEWS) as forks:
        async with (
            scratch(f"sqlite:///{tmp_path / 'x.db'}") as place,
            staging(place, (), forks) as make,
        ):
            stage = make()
            tenant = await stage.tenant()
            commands = [await tenant.accept(f"k{number}") for number in range(COMMANDS)]
            for _ in SKEWS:
                await stage.run_engine(tenant)
            until_seconds = time.monotonic() + WORK_SECONDS
            while time.monotonic() < until_seconds:
                if not {"waiting", "running"} & set((await states(stage, tenant, commands)).values()):
                    break
                await asyncio.sleep(0.1)
            await stage.close()
            found = await states(stage, tenant, commands)
            calls = {command: stage.witness.count(command) for command in commands}
    assert max(calls.values()) == 1, calls
    assert set(found.values()) <= {"waiting", "running", "unknown", "accepted"}
    assert [one for one in commands if found[one] == "accepted" and calls[one] != 1] == []

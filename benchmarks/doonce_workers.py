"""doonce: no-op items a second of one worker process, and of several at once on a database like it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import msgspec
import uvloop

from benchmarks.case import Setting, Values
from benchmarks.doonce_noop import make_filled

STEP = (sys.executable, "-m", "benchmarks.working")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker process is told when it starts."""

    database: str
    concurrency: int
    organizations: int = 1


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What it says, again and again: how many of its items have ended, and when the first began and the last had ended.

    The times are of the host's monotonic clock, which its processes share. `rolled_back`: its proven rollbacks.
    """

    ended: int
    rolled_back: int
    first_s: float
    last_s: float


def prepare(setting: Setting) -> None:
    """Fill a database for each number of workers."""
    uvloop.run(_prepare(setting))


async def _prepare(setting: Setting) -> None:
    for url in setting.databases:
        await make_filled(url, setting.options["jobs"])


def run(setting: Setting) -> Values:
    """Let one work, then several."""
    return uvloop.run(_run(setting))


async def _run(setting: Setting) -> Values:
    concurrency, jobs = setting.options["concurrency"], setting.options["jobs"]
    found = [
        await worked([Told(database=url, concurrency=concurrency)] * workers, jobs)
        for url, workers in zip(setting.databases, setting.options["workers"], strict=True)
    ]
    return dict(zip(("one_per_s", "several_per_s"), (done.per_s for done in found), strict=True))


@dataclass(frozen=True, slots=True)
class Worked:
    """Items a second, from the first claim of all to the last end of all, and the rollbacks on the way."""

    per_s: float
    rolled_back: int


async def worked(told: Sequence[Told], jobs: int) -> Worked:
    """Let a worker process for each of these work until so many items have ended."""
    reports: dict[int, Report] = {}
    done = asyncio.Event()
    async with contextlib.AsyncExitStack() as stack:
        processes = [await stack.enter_async_context(_process()) for _ in told]
        for process in processes:  # all have imported what they need, and wait
            assert process.stdout is not None
            await process.stdout.readline()
        listening = [asyncio.create_task(_listen(process, reports, jobs, done)) for process in processes]
        for process, what in zip(processes, told, strict=True):
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(what) + b"\n")
            await process.stdin.drain()
        await done.wait()
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()  # no more work: end
        await asyncio.gather(*listening)
    began_s, ended_s = (
        min(report.first_s for report in reports.values()),
        max(report.last_s for report in reports.values()),
    )
    ended = sum(report.ended for report in reports.values())
    return Worked(ended / (ended_s - began_s), sum(report.rolled_back for report in reports.values()))


@contextlib.asynccontextmanager
async def _process() -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *STEP, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _listen(
    process: asyncio.subprocess.Process, reports: dict[int, Report], jobs: int, done: asyncio.Event
) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        reports[process.pid] = msgspec.json.decode(line, type=Report)
        if sum(report.ended for report in reports.values()) >= jobs:
            done.set()
    if not done.is_set():
        done.set()  # it has died; what it says on stderr is this process's too
        raise RuntimeError("a worker process ended before its work did")

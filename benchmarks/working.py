"""`python -m benchmarks.working`: one worker process of `doonce_workers`, told what to do on stdin.

It says that it is ready, and then every few milliseconds what it has done, until its stdin is closed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

import msgspec
import structlog
import uvloop

from benchmarks.clocking import Tally
from benchmarks.doonce_noop import Noop, make_worker, scopes_of
from benchmarks.doonce_workers import Report, Told
from doonce.app.metrics import Metrics
from doonce.db.database import open_database

REPORT_SECONDS = 0.01


class Counting(Metrics):
    """The metrics of a worker, with a count of its proven rollbacks."""

    rollbacks = 0

    def rolled_back(self, operation: str, fault: str) -> None:
        """Count one."""
        super().rolled_back(operation, fault)
        self.rollbacks += 1


def main() -> None:
    """Work until told to end, and leave without waiting for anybody's threads."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for reports
    _say(Report(ended=0, rolled_back=0, first_s=0, last_s=0))
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=Told)
    uvloop.run(_work(told))
    os._exit(0)


def _say(report: Report) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


async def _work(told: Told) -> None:
    database = open_database(told.database)
    tally = Tally(sys.maxsize)
    metrics = Counting()
    worker = make_worker(
        database, Noop(tally), told.concurrency, scopes_of(told.organizations), metrics=metrics
    )
    tally.first_s = time.perf_counter()

    def report() -> Report:
        return Report(
            ended=tally.ended, rolled_back=metrics.rollbacks, first_s=tally.first_s, last_s=tally.last_s
        )

    working = asyncio.create_task(worker.run())
    closed = asyncio.create_task(asyncio.to_thread(sys.stdin.buffer.read))
    said = 0
    while not closed.done():
        await asyncio.sleep(REPORT_SECONDS)
        if tally.ended != said:
            said = tally.ended
            _say(report())
    worker.begin_drain()
    await working
    _say(report())
    await database.close()


if __name__ == "__main__":
    main()

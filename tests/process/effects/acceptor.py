"""A process that accepts commands: `python -m tests.process.effects.acceptor`, one line of JSON a batch.

The first line is its settings; each further one a `Task`, answered by one line with the admissions in order.
"""

from __future__ import annotations

import asyncio
import os
import sys

import msgspec
import structlog
import uvloop
from tests.process.effects.points import TestPoints
from tests.process.effects.settings import Task, WorkerSettings
from tests.process.effects.worker import engine_of, open_for_test

from doonce.app.engine import Engine
from doonce.trust.identity import Identity, InstallationConfig, embedded
from doonce.wire.handoffs import AcceptRequest, RejectRequest

IDENTITY: Identity = embedded(InstallationConfig(org="acme", installation="main", capabilities=("contacts",)))


async def answer(engine: Engine, task: Task) -> bytes:
    """The admissions of one batch, as JSON."""
    accepts = [msgspec.json.decode(raw, type=AcceptRequest) for raw in task.accept]
    rejects = [msgspec.json.decode(raw, type=RejectRequest) for raw in task.reject]
    admissions = await engine.acceptor.accept(IDENTITY, accepts)
    admissions += await asyncio.gather(*(engine.acceptor.reject(IDENTITY, request) for request in rejects))
    return msgspec.json.encode(admissions)


async def _serve(settings: WorkerSettings) -> None:
    database = open_for_test(settings.url)
    TestPoints(settings.armed, settings.watch).install(database)
    engine = engine_of(settings, database)
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        os.write(1, await answer(engine, msgspec.json.decode(line, type=Task)) + b"\n")
    await engine.stop()


def main() -> None:
    """Accept what the input asks for."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerSettings)
    uvloop.run(_serve(settings))


if __name__ == "__main__":
    main()

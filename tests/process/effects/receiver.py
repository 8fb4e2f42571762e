"""A process that receives deliveries and derives their events: `python -m tests.process.effects.receiver`.

The first line of its input is its settings; it says its address, and serves until the input says `stop` or ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import msgspec
import structlog
import uvloop
from tests.process.effects.points import TestPoints
from tests.process.effects.settings import WorkerSettings
from tests.process.effects.worker import engine_of, open_for_test

from doonce.app.serve import http_server
from doonce.app.settings import Settings
from doonce.app.web.readiness import Readiness
from doonce.ownership.model import Family


async def _serve(settings: WorkerSettings) -> None:
    database = open_for_test(settings.url)
    TestPoints(settings.armed, settings.watch).install(database)
    engine = engine_of(settings, database)
    readiness = Readiness()
    readiness.clear("start")
    listener = socket.create_server(("127.0.0.1", 0))
    server = http_server(Settings(), engine, readiness)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    engine.start([Family(name) for name in settings.families])
    os.write(1, f"http://127.0.0.1:{listener.getsockname()[1]}\n".encode())
    while line := (await asyncio.to_thread(sys.stdin.buffer.readline)).strip():
        if line == b"stop":
            readiness.begin_drain()
            engine.begin_drain()
            server.should_exit = True
            await serving
            await engine.stop()
            os.write(1, b"stopped\n")
            return
    os._exit(1)


def main() -> None:
    """Receive what comes."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    uvloop.run(_serve(msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerSettings)))


if __name__ == "__main__":
    main()

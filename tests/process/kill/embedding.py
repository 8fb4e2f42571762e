"""An application that embeds doonce, in one process: it receives, derives and handles, and dies or stops where told.

The first line of its input is its settings. It says its address, and works until it is killed or its input ends.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

import msgspec
import sqlalchemy as sa
import structlog
from tests.process.effects.points import CLAIMS, TestPoints
from tests.process.effects.settings import Armed
from tests.store.runtime.applications import sqlalchemy_engine

from doonce import Doonce, Event
from doonce.app.serve import http_server
from doonce.app.settings import Settings
from doonce.app.web.readiness import Readiness
from doonce.runtime import inbox

LEASE_US = 2_000_000
QUICK = {"poll_seconds": 0.05, "lease_us": LEASE_US, "expiries_max": 50, "suspects_seconds": 0.2}

applied = sa.Table(
    "applied",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("event_id", sa.String(64), nullable=False),
    sa.Column("object", sa.String(64), nullable=False),
    sa.Column("delivery", sa.String(64), nullable=False),
)
"""What the handler did, in the order in which it committed. Nothing here would swallow a second time."""


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Its two databases, and where it dies or stops."""

    url: str
    key_file: str
    engine: str
    application: str
    watch: str
    armed: tuple[Armed, ...] = ()
    plain: bool = True
    """Whether the handler is a plain function, on a thread, or a coroutine function."""


def deployment(url: str, key_file: str, **more: Any) -> Doonce:
    """The embedded deployment: short leases, since tests wait them out."""
    return Doonce(
        url,
        key_file=key_file,
        events=QUICK,
        handlers=QUICK,
        handler={"policy": {"base_us": 20_000, "cap_us": 100_000}},
        postgresql={"idle_in_transaction_timeout_ms": 1_500},
        mysql={"idle_in_transaction_timeout_seconds": 2},
        **more,
    )


async def _work(settings: EmbeddingSettings) -> None:
    mine = sqlalchemy_engine(settings.engine, settings.application)
    points = TestPoints(settings.armed, settings.watch, CLAIMS | {"claim_handings"})
    app = deployment(settings.url, settings.key_file)

    def handle(event: Event) -> None:
        content: Any = event.content
        with mine.begin() as connection:
            if inbox.once(connection, event.id):
                points.reach("handler.inside")
                values = {"event_id": event.id, "object": content["object"], "delivery": content["id"]}
                connection.execute(applied.insert().values(values))
            points.reach("handler.before_commit")
        points.reach("handler.after_commit")

    async def handle_in_a_coroutine(event: Event) -> None:
        await asyncio.to_thread(handle, event)

    app.on("shop.*")(handle if settings.plain else handle_in_a_coroutine)
    async with app:
        points.install(app.engine.database)
        readiness = Readiness()
        readiness.clear("start")
        listener = socket.create_server(("127.0.0.1", 0))
        server = http_server(Settings(), app.engine, readiness)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        os.write(1, f"http://127.0.0.1:{listener.getsockname()[1]}\n".encode())
        await asyncio.to_thread(sys.stdin.buffer.readline)
        serving.cancel()
        os._exit(1)


def main() -> None:
    """Be the application."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_work(msgspec.json.decode(sys.stdin.buffer.readline(), type=EmbeddingSettings)))

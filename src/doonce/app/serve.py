"""One process of a deployment: its roles, from the first proof to the last flush.

    starting ── proven ──▶ ready ── SIGTERM ──▶ draining ── all ended, or time is up ──▶ stopped
                                                   └── second signal ──▶ stopped hard, at once

A hard stop is as harmless as a crash, and no more: what was dispatched is settled by the next claimant.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import structlog
import uvicorn

from doonce.app.engine import Engine
from doonce.app.opening import open_engine
from doonce.app.operate.gauges import Gauges
from doonce.app.operate.service import Operator
from doonce.app.proof import Watch, prove
from doonce.app.settings import Role, Settings
from doonce.app.web.api import Api
from doonce.app.web.connection import Config
from doonce.app.web.readiness import Readiness
from doonce.base.errors import Unavailable
from doonce.ownership.model import Family
from doonce.trust.service import BearerCredentials

log: Final = structlog.get_logger("doonce.serve")

FAMILIES: Final = {
    Role.API: (),
    Role.WORKER: (Family.EFFECT, Family.COMPLETION, Family.EVENT, Family.HYDRATE, Family.PUSH),
    Role.RECONCILER: (Family.RECONCILE, Family.CATCH_UP),
    Role.INGRESS: (),
}
HEAD_BYTES_MAX: Final = 16_384
"""Of a request to us: the longest path, a credential and ordinary headers fit many times over."""
BACKLOG: Final = 1_024
HARD_STOP_STATUS: Final = 1
WATCH_SECONDS: Final = 0.5

Announce = Callable[[str], None]


class HttpServer(uvicorn.Server):
    """Leaves the signals to `serve`, which has more to stop than HTTP."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve(settings: Settings, announce: Announce) -> None:
    """Serve these roles until a signal; `announce` gets the address once this process is ready.

    Raises a `DoonceError` when something it relies on is not so: the schema, the durability, the key file, the port.
    """
    stop, hard = asyncio.Event(), asyncio.Event()
    _listen_for_signals(stop, hard)
    readiness = Readiness()
    listener = _listener(settings)
    engine = open_engine(settings)
    server = http_server(settings, engine, readiness)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="http")
    try:
        watch = await prove(engine, settings)
        engine.start(families_of(settings.roles))
        readiness.clear("start")
        host, port = listener.getsockname()[:2]
        announce(f"http://{host}:{port}")
        log.info("ready", roles=[role.value for role in settings.roles], port=port)
        await _until_stopped(engine, watch, readiness, stop, serving)
        log.info("draining")
    finally:
        readiness.begin_drain()
        engine.begin_drain()
        server.should_exit = True
        await _stop(engine, serving, hard)
    log.info("stopped")


def families_of(roles: Sequence[Role]) -> tuple[Family, ...]:
    """What these roles work on."""
    return tuple(family for role in roles for family in FAMILIES[role])


def _listener(settings: Settings) -> socket.socket:
    listen = settings.listen
    try:
        return socket.create_server((listen.host, listen.port), backlog=BACKLOG)
    except OSError as error:
        raise Unavailable(
            f"cannot listen on {listen.host}:{listen.port}: {error.strerror or error}",
            hint="set listen.port (DOONCE_LISTEN__PORT) to a free one",
        ) from error


def http_server(settings: Settings, engine: Engine, readiness: Readiness) -> HttpServer:
    """The HTTP side over an engine, bounded; not started."""
    operator = Operator(engine)
    api = Api(
        engine,
        BearerCredentials(engine.database),
        readiness,
        operator,
        Gauges(engine.metrics, operator),
        origins=settings.egress.origins(),
        body_seconds=settings.listen.body_seconds,
    )
    config = Config(
        api.application(handoffs=Role.API in settings.roles, deliveries=Role.INGRESS in settings.roles),
        head_seconds=settings.listen.head_seconds,
        connections_max=settings.listen.connections_max,
        turned_away=engine.metrics.refused,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # its warnings are about strangers, who are counted instead
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.listen.idle_seconds,
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds)),
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
    )
    return HttpServer(config)


def _listen_for_signals(stop: asyncio.Event, hard: asyncio.Event) -> None:
    def on_signal() -> None:
        (hard if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)


async def _until_stopped(
    engine: Engine, watch: Watch, readiness: Readiness, stop: asyncio.Event, serving: asyncio.Task[None]
) -> None:
    """Wait for a signal; meanwhile keep readiness true to what holds."""
    watching = asyncio.create_task(watch.run(readiness), name="watch")
    try:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCH_SECONDS):
                    await stop.wait()
            failed = engine.failed() or _failure(serving) or _failure(watching)
            if failed is not None:
                readiness.blocked("engine", f"a part of this process ended: {type(failed).__name__}")
                log.error("a part of this process ended; stopping", exc_info=failed)
                raise Unavailable("a part of this process ended; its log says why") from failed
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await watching


def _failure(task: asyncio.Task[None]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


async def _stop(engine: Engine, serving: asyncio.Task[None], hard: asyncio.Event) -> None:
    """Finish what is held, bounded by `stop_seconds`; a second signal ends the process at once."""
    stopping = asyncio.create_task(_stopped(engine, serving))
    waiting = asyncio.create_task(hard.wait())
    await asyncio.wait([stopping, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if hard.is_set():
        log.warning("stopped hard; leases will run out, and others go on")
        os._exit(HARD_STOP_STATUS)
    await stopping


async def _stopped(engine: Engine, serving: asyncio.Task[None]) -> None:
    for result in await asyncio.gather(engine.stop(), serving, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("stopping failed", exc_info=result)

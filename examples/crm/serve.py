"""The application's process: its completion inbox over HTTP, and the relay beside it."""

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from examples.crm.leads import note, open_database, project
from examples.crm.settings import Settings, credential

from doonce.runtime.asgi import COMPLETIONS_PATH, inbox_app
from doonce.runtime.http_port import HttpHandoffs
from doonce.runtime.relay import Relay, RelaySettings

US_PER_MS = 1_000


class _Server(uvicorn.Server):
    """Leaves the signals to `serve`, which has a relay to finish as well."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM; then finish the rows in hand and return.

    The first line on standard output is `{"ready": <inbox URL>}`, once notices can be taken.
    """
    engine = open_database(settings.database)
    inbox = inbox_app(engine.begin, project, credential(settings.inbox_credential_file), note=note)
    server = _Server(uvicorn.Config(inbox, log_level="warning", lifespan="off"))
    relay_settings = RelaySettings(
        idle_us=settings.idle_ms * US_PER_MS, retry_cap_us=settings.retry_cap_ms * US_PER_MS
    )
    service = HttpHandoffs(settings.service, credential(settings.service_credential_file))
    stop = asyncio.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)

    async def stop_server() -> None:
        await stop.wait()
        server.should_exit = True

    listener = socket.create_server((settings.listen.host, settings.listen.port))
    try:
        async with (
            service,
            Relay(engine.begin, service, relay_settings) as relay,
            asyncio.TaskGroup() as tasks,
        ):
            tasks.create_task(server.serve(sockets=[listener]))
            tasks.create_task(relay.run(stop))
            tasks.create_task(stop_server())
            host, port = listener.getsockname()[:2]
            # The socket listens since it was made, so whoever reads this line can connect.
            print(json.dumps({"ready": f"http://{host}:{port}{COMPLETIONS_PATH}"}), flush=True)
    finally:
        listener.close()
        engine.dispose()

"""`python -m simulators.hubspot`: serve until terminated."""

import argparse
import asyncio
import json
import os
import signal
import socket
import ssl
import sys
import time
from functools import partial
from pathlib import Path

import uvloop

from simulators.hubspot.control import Control
from simulators.hubspot.ledger import Ledger
from simulators.hubspot.server import Connection
from simulators.hubspot.service import RateLimit, Service


class Listener:
    """The API's listening socket, which the `refuse` fault shuts and a reset opens again on its port."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, service: Service) -> None:
        self._host = host
        self._tls = tls
        self._service = service
        self._control = Control(service, self)
        self._connections: set[Connection] = set()
        self._server: asyncio.Task[asyncio.Server] | None = None
        self.port = port

    def connection(self, *, back_door: bool = False) -> Connection:
        """The protocol of a new connection."""
        return Connection(self._service, self._control, self._connections, back_door=back_door)

    def open(self) -> None:
        """Listen, as of now; the first time this settles the port."""
        if self._server is not None:
            return
        sock = socket.create_server((self._host, self.port), backlog=1024)
        self.port = sock.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = loop.create_task(loop.create_server(self.connection, sock=sock, ssl=self._tls))

    def shut(self) -> None:
        """Stop listening, and end the connections that are not control's."""
        if self._server is None or not self._server.done():
            return
        self._server.result().close()
        self._server = None
        for connection in list(self._connections):
            connection.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulators.hubspot", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--ledger", type=Path, required=True, help="file that the ledger is appended to")
    parser.add_argument("--token", default="", help="the one bearer token to accept; default: any")
    parser.add_argument("--rate-max", type=int, default=0, help="enforce this many calls per ten seconds")
    parser.add_argument("--tls-certificate", type=Path, help="PEM with certificate and key")
    parser.add_argument("--announce", action="store_true", help="print the addresses as one JSON line")
    return parser.parse_args()


async def _serve(arguments: argparse.Namespace) -> None:
    ledger = Ledger(arguments.ledger, now_us=lambda: time.time_ns() // 1000)
    rate = RateLimit(arguments.rate_max, enforced=True) if arguments.rate_max else RateLimit()
    tls = None
    if arguments.tls_certificate:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(arguments.tls_certificate)
    service = Service(ledger, arguments.token, rate=rate)
    listener = Listener(arguments.host, arguments.port, tls, service)
    listener.open()
    loop = asyncio.get_running_loop()
    # a second door, plain and always open, for control while the first one refuses
    control = await loop.create_server(partial(listener.connection, back_door=True), arguments.host, 0)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if arguments.announce:
        scheme = "https" if tls else "http"
        announced = {
            "url": f"{scheme}://{arguments.host}:{listener.port}",
            "control_url": f"http://{arguments.host}:{control.sockets[0].getsockname()[1]}",
            "pid": os.getpid(),
            "ledger": str(arguments.ledger),
        }
        sys.stdout.write(json.dumps(announced) + "\n")
        sys.stdout.flush()
    await stopped.wait()
    ledger.close()


if __name__ == "__main__":
    uvloop.run(_serve(_arguments()))

"""A TCP proxy before a server, which a test can cut and restore: the server itself never notices an outage."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Passes bytes between clients and one server, unless it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._listener: socket.socket | None = None
        self.port = 0
        self.restore()

    def cut(self) -> None:
        """Reset every connection, and refuse new ones."""
        with self._lock:
            listener, self._listener = self._listener, None
            pairs = list(self._pairs)
            self._pairs.clear()
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for pair in pairs:
            _end(pair)

    def lead_to(self, host: str, port: int) -> None:
        """Pass what comes from now on to another server, as a failover does."""
        self._server = (host, port)

    def restore(self) -> None:
        """Accept connections, on the port of the first time."""
        listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = listener.getsockname()[1]
        with self._lock:
            self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            pair = (client, server)
            with self._lock:
                if self._listener is not listener:
                    _end(pair)
                    continue
                self._pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pass, args=(source, sink, pair), daemon=True).start()

    def _pass(
        self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        try:
            while piece := source.recv(65_536):
                sink.sendall(piece)
        except OSError:
            pass
        with self._lock:
            self._pairs.discard(pair)
        _end(pair)


def _end(pair: tuple[socket.socket, socket.socket]) -> None:
    for one in pair:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """A proxy for the length of a block."""
    proxy = Proxy(host, port)
    try:
        yield proxy
    finally:
        proxy.cut()

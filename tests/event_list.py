"""A provider that keeps every event it made, lists them by time in pages, and remembers who asked for what.

The witness of a catch-up: what it holds is what an application must have in the end. Nothing of doonce is in it.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(slots=True)
class EventList:
    """Events of one account. `page_size` of them are in a page, the newest first, after the one that a cursor names."""

    page_size: int = 2
    events: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, str]] = field(default_factory=list)
    odd: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """What is answered instead, by the number of the request (from 1)."""

    def make(self, name: str, at_s: float, kind: str = "made", thing: str | None = None) -> dict[str, Any]:
        """Something has happened at this time."""
        event = {"id": name, "type": kind, "created": at_s, "thing": thing or f"of {name}"}
        self.events.append(event)
        return event

    def answer(self, target: str) -> tuple[int, bytes]:
        """The page that a request's target asks for."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
        self.asked.append(query)
        if len(self.asked) in self.odd:
            return self.odd[len(self.asked)]
        since, until = float(query["since"]), float(query["until"])
        found = sorted(
            (one for one in self.events if since <= one["created"] <= until),
            key=lambda one: (one["created"], one["id"]),
            reverse=True,
        )
        if "after" in query:
            names = [one["id"] for one in found]
            found = found[names.index(query["after"]) + 1 :]
        page = found[: self.page_size]
        return 200, json.dumps({"data": page, "has_more": len(found) > len(page)}).encode()


@contextlib.contextmanager
def serving(provider: EventList) -> Iterator[str]:
    """The provider behind HTTP, in a thread of its own; its origin."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with lock:
                status, body = provider.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""The application's inbox as an outside witness: it keeps every notice, and answers as the runtime would."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec

from doonce.base.ids import new_id
from doonce.wire.codec import decode, encode
from doonce.wire.completions import CompletionNotice, CompletionReceipt, ReceiptState, verify_notice

CREDENTIAL = "the inbox's credential"
Misbehaviour = Callable[[CompletionNotice, bytes], tuple[int, bytes]]


class Inbox:
    """Notices in the order in which they came, and the one receipt that each command's end has got.

    `misbehave` may answer instead: it gets the notice and the right answer.
    """

    def __init__(self) -> None:
        self.notices: list[CompletionNotice] = []
        self.misbehave: Misbehaviour | None = None
        self.origin = ""
        self._receipts: dict[str, CompletionReceipt] = {}
        self._lock = threading.Lock()

    def take(self, body: bytes) -> tuple[int, bytes]:
        """Keep a notice; the status and body to answer."""
        notice = decode(body, CompletionNotice, bytes_max=2_000_000)
        verify_notice(notice)
        with self._lock:
            self.notices.append(notice)
            answer = encode(self._receipt(notice))
        return (200, answer) if self.misbehave is None else self.misbehave(notice, answer)

    def _receipt(self, notice: CompletionNotice) -> CompletionReceipt:
        known = self._receipts.get(notice.command_id)
        if known is not None and notice.terminal:
            return msgspec.structs.replace(known, state=ReceiptState.DUPLICATE, notice_digest=notice.digest)
        state = ReceiptState.APPLIED if notice.terminal else ReceiptState.NOTED
        receipt = CompletionReceipt(
            command_id=notice.command_id,
            notice_digest=notice.digest,
            state=state,
            receipt_id=new_id("rcp"),
        )
        if notice.terminal:
            self._receipts[notice.command_id] = receipt
        return receipt

    def of(self, command_id: str) -> list[CompletionNotice]:
        """What was said about one command, in order."""
        with self._lock:
            return [notice for notice in self.notices if notice.command_id == command_id]


@contextmanager
def serving() -> Iterator[Inbox]:
    """An inbox on a port of its own."""
    inbox = Inbox()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            granted = self.headers["Authorization"] == f"Bearer {CREDENTIAL}"
            status, answer = inbox.take(body) if granted else (401, b"{}")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is theirs
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """A killed worker resets its connections; that is no error here."""

    with Server(("127.0.0.1", 0), Handler) as server:
        inbox.origin = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield inbox
        finally:
            server.shutdown()
            thread.join()

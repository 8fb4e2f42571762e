"""A sender that is killed or stopped with bytes unsent: the kernel withdraws them (PROTOCOL D3)."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[3]
BODY_BYTES = 4 * 1024 * 1024
"""More than the socket buffers of both sides hold."""

ABORT_MS = 700


@contextlib.contextmanager
def sender(port: int, *, abort_ms: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.process.http.sender", f"http://127.0.0.1:{port}"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    with subprocess.Popen(
        [*command, str(BODY_BYTES), str(abort_ms)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def stalled_server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        server.settimeout(20)
        yield server


def readable(connection: socket.socket) -> None:
    assert select.select([connection], [], [], 20)[0]


def read_all(connection: socket.socket) -> tuple[int, bool]:
    """How many bytes still come, and whether the end is a reset."""
    connection.settimeout(20)
    received_bytes = 0
    try:
        while piece := connection.recv(65_536):
            received_bytes += len(piece)
    except ConnectionResetError:
        return received_bytes, True
    return received_bytes, False


def established(port: int) -> bool:
    """Whether the sender's end of the connection to `port` still exists in the kernel."""
    remote = f"0100007F:{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(line.split()[2] == remote and line.split()[3] == "01" for line in lines)


def test_killed() -> None:
    with stalled_server() as server:
        port = server.getsockname()[1]
        with sender(port, abort_ms=60_000) as process:
            connection, _ = server.accept()
            with connection:
                readable(connection)
                process.send_signal(signal.SIGKILL)
                process.wait(20)
                received_bytes, reset = read_all(connection)
    assert reset
    assert received_bytes < BODY_BYTES


def test_stopped_until_after_the_deadline() -> None:
    with stalled_server() as server:
        port = server.getsockname()[1]
        with sender(port, abort_ms=ABORT_MS) as process:
            connection, _ = server.accept()
            with connection:
                readable(connection)
                process.send_signal(signal.SIGSTOP)
                give_up_s = time.monotonic() + 20
                while established(port):
                    assert time.monotonic() < give_up_s
                    time.sleep(0.01)
                received_bytes, reset = read_all(connection)
                process.send_signal(signal.SIGCONT)
                assert process.stdout is not None
                assert process.stdout.readline() == "Unanswered\n"
    assert reset
    assert received_bytes < BODY_BYTES

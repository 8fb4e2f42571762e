"""A process that has imported everything and forks the others: `python -m tests.process.effects.nursery FD`.

Each child is a real process of its own; what it saves is a second of imports for each. One request a datagram: `spawn`
comes with the three standard streams of the child, `poll` asks whether one has ended.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable

import msgspec
from tests.process.effects import acceptor, receiver, worker
from tests.process.kill import crm_process, embedding

MAINS: dict[str, Callable[[], None]] = {
    "worker": worker.main,
    "acceptor": acceptor.main,
    "receiver": receiver.main,
    "crm": crm_process.main,
    "embedding": embedding.main,
}


class Request(msgspec.Struct, frozen=True):
    """What the test asks for: a new child of this kind, or the state of one."""

    spawn: str = ""
    poll: int = 0


class Reply(msgspec.Struct, frozen=True):
    """The child's id, or its exit status as `subprocess` has it; None while it runs."""

    pid: int = 0
    returncode: int | None = None


def _become(kind: str, streams: list[int]) -> None:
    """In the child: take the streams, and be that process until its end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    status = 1
    try:
        MAINS[kind]()
        status = 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def _poll(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def main() -> None:
    """Serve until the test has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    ended: dict[int, int] = {}
    while True:
        message, streams, _, _ = socket.recv_fds(control, 4096, 3)
        if not message:
            return
        request = msgspec.json.decode(message, type=Request)
        if request.spawn:
            pid = os.fork()
            if pid == 0:
                _become(request.spawn, streams)
            for stream in streams:
                os.close(stream)
            ended.pop(pid, None)  # ids are used again
            control.send(msgspec.json.encode(Reply(pid=pid)))
            continue
        if request.poll not in ended and (code := _poll(request.poll)) is not None:
            ended[request.poll] = code
        control.send(msgspec.json.encode(Reply(request.poll, ended.get(request.poll))))


if __name__ == "__main__":
    main()

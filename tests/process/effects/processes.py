"""Child processes as a test sees them: told by lines, killed, stopped, continued, and waited for by facts."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from tests.process.effects.nursery import Reply, Request
from tests.process.effects.settings import WorkerSettings
from tests.process.effects.waiting import until

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0
END_S = 60.0


class Nursery:
    """The one process of a test run that forks all others; it ends with the run."""

    def __init__(self) -> None:
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.process.effects.nursery", str(theirs.fileno())],
                cwd=ROOT,
                env=environment,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )

    def close(self) -> None:
        """Let it end."""
        self._control.close()
        self._process.wait(END_S)

    def spawn(self, kind: str, streams: list[int]) -> int:
        """Fork a process of this kind onto these streams; its id."""
        socket.send_fds(self._control, [msgspec.json.encode(Request(spawn=kind))], streams)
        return self._reply().pid

    def poll(self, pid: int) -> int | None:
        """The exit status of a child, None while it runs."""
        self._control.send(msgspec.json.encode(Request(poll=pid)))
        return self._reply().returncode

    def _reply(self) -> Reply:
        return msgspec.json.decode(self._control.recv(4096), type=Reply)


@functools.cache
def nursery() -> Nursery:
    """The nursery of this test run."""
    made = Nursery()
    atexit.register(made.close)
    return made


class Process:
    """One child, idle until it is told its settings."""

    def __init__(self, kind: str, log: Path) -> None:
        self.log = log
        self._returncode: int | None = None
        stdin, self._stdin = os.pipe()
        stdout_read, stdout = os.pipe()
        errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.pid = nursery().spawn(kind, [stdin, stdout, errors])
        for stream in (stdin, stdout, errors):
            os.close(stream)
        self._stdout = os.fdopen(stdout_read, "rb", buffering=0)
        self._heard = b""

    def begin(self, settings: WorkerSettings) -> None:
        """Tell it what to do."""
        self.tell(msgspec.json.encode(settings))

    def tell(self, line: bytes) -> None:
        """Write one line to it."""
        rest = line + b"\n"
        while rest:
            rest = rest[os.write(self._stdin, rest) :]

    def hear(self, *, seconds: float = START_S) -> bytes:
        """The next line that it says, or b"" at its end."""
        deadline_s = time.monotonic() + seconds
        while b"\n" not in self._heard:
            left_s = deadline_s - time.monotonic()
            readable = left_s > 0 and select.select([self._stdout], [], [], left_s)[0]
            assert readable, f"it said nothing for {seconds} s: {self.tail()}"
            piece = self._stdout.read(65_536)
            if not piece:
                return b""
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def expect(self, word: bytes, *, seconds: float = START_S) -> None:
        """Wait until it says this, whatever it says before."""
        while (heard := self.hear(seconds=seconds)) != word:
            assert heard, f"it ended instead of saying {word!r}: {self.tail()}"

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text()[-2000:]

    def complaints(self) -> int:
        """How often it had something to store that its database would not take."""
        return self.log.read_text().count("could not be stored")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if not self.is_dead():
            os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        """Whether a SIGSTOP holds it now; fails where it has ended."""
        assert not self.is_dead(), f"it ended: {self.tail()}"
        status = Path(f"/proc/{self.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "T"

    def is_dead(self) -> bool:
        """Whether it has ended."""
        if self._returncode is None:
            self._returncode = nursery().poll(self.pid)
        return self._returncode is not None

    def wait_killed(self) -> None:
        """Wait until SIGKILL has ended it."""
        until(self.is_dead, f"the end of {self.log.name}", seconds=END_S)
        assert self._returncode == -signal.SIGKILL, f"it ended with {self._returncode}: {self.tail()}"

    def stop(self) -> None:
        """Let a worker drain, and wait for its end."""
        self.tell(b"stop")
        self.expect(b"stopped", seconds=END_S)
        until(self.is_dead, f"the end of {self.log.name}", seconds=END_S)

    def close(self) -> None:
        """Make sure that it is gone."""
        self.signal(signal.SIGKILL)
        until(self.is_dead, f"the end of {self.log.name}", seconds=END_S)
        with contextlib.suppress(OSError):
            os.close(self._stdin)
        self._stdout.close()


def now_us() -> int:
    """This host's time of day, which is also that of its databases."""
    return time.time_ns() // 1000

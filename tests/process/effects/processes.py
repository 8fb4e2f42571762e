"""Child processes as a test sees them: told by lines, killed, stopped, continued, and waited for by facts."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from tests.process.effects.settings import WorkerSettings
from tests.process.effects.waiting import until

ROOT = Path(__file__).resolve().parents[3]
START_S = 60.0
END_S = 60.0


class Process:
    """One child, started at once and idle until it is told its settings."""

    def __init__(self, module: str, log: Path) -> None:
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        with log.open("wb") as errors:
            self._child = subprocess.Popen(
                [sys.executable, "-m", module],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self.log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    def begin(self, settings: WorkerSettings) -> None:
        """Tell it what to do."""
        self.tell(msgspec.json.encode(settings))

    def tell(self, line: bytes) -> None:
        """Write one line to it."""
        assert self._child.stdin is not None
        self._child.stdin.write(line + b"\n")
        self._child.stdin.flush()

    def hear(self, *, seconds: float = START_S) -> bytes:
        """The next line that it says, or b"" at its end."""
        assert self._child.stdout is not None
        readable, _, _ = select.select([self._child.stdout], [], [], seconds)
        assert readable, f"it said nothing for {seconds} s: {self.log.read_text()[-2000:]}"
        return self._child.stdout.readline().strip()

    def expect(self, word: bytes, *, seconds: float = START_S) -> None:
        """Wait until it says this, whatever it says before."""
        while (heard := self.hear(seconds=seconds)) != word:
            assert heard, f"it ended instead of saying {word!r}: {self.log.read_text()[-2000:]}"

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._child.send_signal(number)

    def is_stopped(self) -> bool:
        """Whether a SIGSTOP holds it now; fails where it has ended."""
        assert self._child.poll() is None, f"it ended: {self.log.read_text()[-2000:]}"
        status = Path(f"/proc/{self.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0] == "T"

    def is_dead(self) -> bool:
        """Whether it has ended."""
        return self._child.poll() is not None

    def wait_killed(self) -> None:
        """Wait until SIGKILL has ended it."""
        until(self.is_dead, f"the end of {self.log.name}", seconds=END_S)
        assert self._child.returncode == -signal.SIGKILL, self.log.read_text()[-2000:]

    def stop(self) -> None:
        """Let a worker drain, and reap it."""
        self.tell(b"stop")
        self.expect(b"stopped", seconds=END_S)
        until(self.is_dead, f"the end of {self.log.name}", seconds=END_S)

    def close(self) -> None:
        """Make sure that it is gone."""
        if not self.is_dead():
            self._child.kill()
        self._child.wait(END_S)
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue


def now_us() -> int:
    """This host's time of day, which is also that of its databases."""
    return time.time_ns() // 1000

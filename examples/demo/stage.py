"""What the stories stand on: processes of their own, a folder for everything, facts to wait for and to check."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console

ROOT: Final = Path(__file__).resolve().parents[2]
WIDTH: Final = 150
POLL_SECONDS: Final = 0.05
START_SECONDS: Final = 60.0
END_SECONDS: Final = 15.0
LOG_LINES: Final = 15


class CheckFailed(Exception):
    """What the demo promises did not hold."""


@dataclass
class Process:
    """A process of the demo's own, with its log."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log: Path

    @property
    def pid(self) -> int:
        """Its number."""
        return self.popen.pid

    def end(self) -> None:
        """Ask it to stop, and kill it when it does not."""
        if self.popen.poll() is not None:
            return
        self.popen.send_signal(signal.SIGCONT)
        self.popen.terminate()
        try:
            self.popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()

    def tail(self) -> str:
        """The last lines of its log."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(lines[-LOG_LINES:])


@dataclass
class Stage:
    """The folder, the screen and the processes of one run."""

    folder: Path
    out: Console
    processes: list[Process] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def act(self, title: str, what: str) -> None:
        """Begin a story."""
        self.out.print()
        self.out.rule(f"[bold]{title}[/bold]", align="left")
        self.out.print(f"[italic]{what}[/italic]", soft_wrap=True)

    def say(self, text: str) -> None:
        """One step, with the time since the start."""
        self.out.print(f"[dim]{time.monotonic() - self.began:6.1f} s[/dim]  {text}", soft_wrap=True)

    def check(self, what: str, found: object, expected: object) -> None:
        """Show that something holds, or end the demo with what was expected and what was found."""
        if found != expected:
            raise CheckFailed(f"{what}\n  expected: {expected!r}\n  found:    {found!r}")
        self.out.print(f"          [green]✓[/green] {what}", soft_wrap=True)

    def start(
        self, name: str, *command: str, environment: Mapping[str, str] | None = None, line: bool = True
    ) -> tuple[Process, str]:
        """Start `python …` and wait for its first line, which says that it is ready; `line` False waits for nothing."""
        log = self.folder / f"{name}.log"
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("DOONCE_")}
        paths = os.pathsep.join(
            path for path in (str(ROOT / "src"), str(ROOT), inherited.get("PYTHONPATH")) if path
        )
        with log.open("ab") as errors:
            popen = subprocess.Popen(  # noqa: S603 (our own modules)
                [sys.executable, "-u", *command],
                cwd=ROOT,
                env=inherited | {"PYTHONPATH": paths} | dict(environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if line else errors,
                stderr=errors,
                start_new_session=True,
            )
        process = Process(name, popen, log)
        self.processes.append(process)
        if not line or popen.stdout is None:
            return process, ""
        first = popen.stdout.readline().decode().strip()
        if not first:
            popen.wait()
            raise CheckFailed(f"{name} did not start:\n{process.tail()}")
        return process, first

    async def until(self, what: str, fact: Callable[[], Any], seconds: float = 30.0) -> Any:
        """Wait until `fact()` is true (or its awaited value is), at most so long; returns it."""
        deadline = time.monotonic() + seconds
        while True:
            value = fact()
            if asyncio.iscoroutine(value):
                value = await value
            if value:
                return value
            if time.monotonic() > deadline:
                raise CheckFailed(f"waited {seconds:.0f} s in vain until {what}")
            await asyncio.sleep(POLL_SECONDS)

    async def died(self, process: Process) -> int:
        """Wait for the end of a process; its status, negative for a signal."""
        await self.until(f"{process.name} has died", lambda: process.popen.poll() is not None)
        return int(process.popen.returncode)

    def end_all(self) -> None:
        """Stop what still runs, the newest first."""
        for process in reversed(self.processes):
            process.end()

    def pids(self) -> list[int]:
        """What still runs."""
        return [process.pid for process in self.processes if process.popen.poll() is None]


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_toml(path: Path, document: Mapping[str, Any]) -> Path:
    """Write texts, numbers, lists and one level of tables after another as TOML."""
    lines: list[str] = []
    _table(lines, (), document)
    path.write_text("\n".join(lines) + "\n")
    return path


def _table(lines: list[str], at: tuple[str, ...], table: Mapping[str, Any]) -> None:
    if at:
        lines.append(f"[{'.'.join(json.dumps(part) for part in at)}]")
    for key, value in table.items():
        if not isinstance(value, Mapping):
            lines.append(f"{json.dumps(key)} = {json.dumps(value)}")
    for key, value in table.items():
        if isinstance(value, Mapping):
            _table(lines, (*at, key), value)

"""Worker processes as a case sees them: real ones, told by messages, killed by SIGKILL, waited for by facts.

They are forked from one process that has imported everything and done nothing, so starting one costs milliseconds.
"""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.forkserver import ensure_running
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec

from doonce.conformance import worker
from doonce.conformance.jobs import Job, JobResult
from doonce.conformance.model import Broken
from doonce.conformance.skew import Skew, find_library, preloaded

WAIT_SECONDS: Final = 60.0
"""How long a case waits for one thing to happen before it fails: far longer than a slow machine needs."""


class Process:
    """One child process; `begin` lets it start its job."""

    def __init__(self, child: BaseProcess, channel: Connection, log: Path) -> None:
        self._child = child
        self._channel = channel
        self._log = log

    async def tell(self, message: bytes) -> None:
        """Send one message; a process that is dead by now hears nothing, and whoever waits for it will notice."""
        try:
            self._channel.send_bytes(message)
        except BrokenPipeError:
            return

    async def begin(self) -> None:
        """Let it start."""
        await self.tell(worker.GO)

    async def begin_drain(self) -> None:
        """Tell a working engine to drain; returns once it claims nothing more."""
        await self.tell(worker.DRAIN)
        await self.hear(worker.DRAINING)

    async def result(self) -> JobResult:
        """What it did, when it has ended by itself."""
        message = await self._message()
        if not message:
            raise Broken(f"a worker process ended without a result: {self._last_words()}")
        await self._end()
        return msgspec.json.decode(message, type=JobResult)

    async def stop(self) -> JobResult:
        """Drain a working engine; what it did."""
        await self.begin_drain()
        return await self.result()

    async def wait_killed(self) -> None:
        """Wait until SIGKILL has ended it."""
        status = await self._end()
        if status != -signal.SIGKILL:
            raise Broken(f"a process that was to be killed ended with {status}: {self._last_words()}")

    async def hear(self, word: bytes) -> None:
        """Wait until it says this."""
        if await self._message() != word:
            raise Broken(f"a worker process ended instead of saying {word.decode()}: {self._last_words()}")

    def log(self) -> str:
        """Everything that it has logged."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """Make sure that it is gone."""
        if self._child.is_alive():
            self._child.kill()
        self._child.join(WAIT_SECONDS)
        self._channel.close()

    async def _message(self) -> bytes:
        """The next message, b"" at its end."""
        return await asyncio.to_thread(self._receive)

    def _receive(self) -> bytes:
        try:
            if self._channel.poll(WAIT_SECONDS):
                return self._channel.recv_bytes()
        except (EOFError, ConnectionResetError):
            return b""
        raise Broken(f"a worker process said nothing for {WAIT_SECONDS:.0f} s: {self._last_words()}")

    async def _end(self) -> int:
        await asyncio.to_thread(self._child.join, WAIT_SECONDS)
        if self._child.exitcode is None:
            raise Broken(f"a worker process did not end within {WAIT_SECONDS:.0f} s: {self._last_words()}")
        return self._child.exitcode

    def _last_words(self) -> str:
        return self.log()[-300:].strip() or "it said nothing"


class Processes:
    """Starts processes; `processes()` makes it."""

    def __init__(self, context: ForkServerContext, folder: Path, skews: Sequence[Skew]) -> None:
        self._context = context
        self._folder = folder
        self._started = 0
        self._skews = itertools.cycle(skews or (None,))

    async def start(self, job: Job) -> Process:
        """A process that is ready to begin this job, at the next clock; it has checked the scratch place."""
        place = msgspec.structs.replace(job.place, skew=next(self._skews))
        job = msgspec.structs.replace(job, place=place)
        self._started += 1
        log = self._folder / f"{self._started}.log"
        here, there = self._context.Pipe()
        child = self._context.Process(target=worker.serve, args=(there, str(log)), daemon=True)
        await asyncio.to_thread(child.start)
        there.close()
        process = Process(child, here, log)
        try:
            await process.tell(msgspec.json.encode(job))
            await process.hear(worker.READY)
        except BaseException:
            process.close()
            raise
        return process


@contextmanager
def processes(skews: Sequence[Skew] = ()) -> Iterator[Processes]:
    """Where the processes of one run come from; their logs are gone afterwards.

    With `skews` they take turns over these clocks. Raises `Unavailable` where that cannot be done.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])
    with preloaded(find_library()) if skews else nullcontext():
        ensure_running()
    with tempfile.TemporaryDirectory(prefix="doonce-conformance-") as folder:
        yield Processes(context, Path(folder), skews)

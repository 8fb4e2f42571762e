"""What the peers' handlers and ours report to: how many ran, when the first began and when the last had ended."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Tally:
    """Counts runs towards `expected`. For one event loop; `done` is set with the last."""

    expected: int
    ended: int = 0
    first_s: float = 0.0
    last_s: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """A run begins."""
        if not self.first_s:
            self.first_s = time.perf_counter()

    def end(self) -> None:
        """A run has ended."""
        self.last_s = time.perf_counter()
        self.ended += 1
        if self.ended >= self.expected:
            self.done.set()

    def per_s(self) -> float:
        """Runs per second, from the beginning of the first to the end of the last."""
        return self.ended / (self.last_s - self.first_s)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def rss_mb() -> float:
    """This process's resident memory now, in units of 2**20 bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def cpu_us() -> float:
    """CPU time that this process has used, all threads, microseconds."""
    return time.process_time() * 1e6

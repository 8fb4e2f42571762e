"""Two clocks: the database's, which stamps durable facts, and this host's boot-time clock, which bounds waiting.

Safety never depends on the two agreeing; only liveness does. `ClockWatch` compares them continuously and says when
claiming has to stop (PROTOCOL C1).
"""

from __future__ import annotations

import time
from dataclasses import dataclass


def boottime_ns() -> int:
    """Nanoseconds since boot, suspend included: what a process may use for its own deadlines (PROTOCOL C4)."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class ClockWatch:
    """Watches one database's time against the host's, and holds new claims after a jump.

    `tolerance_us`: how far the two may drift apart between two observations before the difference counts as a jump.
    `hold_us`: for how long claim, reclaim and pruning stop after one; one maximum lease.
    """

    tolerance_us: int
    hold_us: int
    _offset_us: int | None = None
    _hold_until_us: int = 0
    jumps: int = 0

    def observe(self, database_us: int, host_us: int) -> None:
        """Compare a database time with the host's boot time, both microseconds, read at about the same moment."""
        offset_us = database_us - host_us
        if self._offset_us is not None and abs(offset_us - self._offset_us) > self.tolerance_us:
            self.jumps += 1
            self._hold_until_us = host_us + self.hold_us
        self._offset_us = offset_us

    def steady(self, host_us: int) -> bool:
        """Whether claims may go on at this boot time, microseconds."""
        return host_us >= self._hold_until_us

"""Two clocks: the database's, which stamps durable facts, and this host's boot-time clock, which bounds waiting.

Safety never depends on the two agreeing; only liveness does. `ClockWatch` compares them continuously and says when
claiming has to stop (PROTOCOL C1).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog

log = structlog.get_logger("doonce.database")


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
    jumps: int = 0
    _offset_min_us: int | None = None
    _offset_max_us: int | None = None
    _hold_until_us: int = 0

    def observe(self, database_us: int, before_us: int, after_us: int) -> None:
        """Compare a database time with this host's boot times just before asking and just after the answer.

        A slow answer, or a process that was stopped meanwhile, only widens the interval: it is never a jump. A jump
        is logged, since nothing is claimed after it.
        """
        low_us, high_us = database_us - after_us, database_us - before_us
        if self._offset_min_us is not None and self._offset_max_us is not None:
            apart_us = max(low_us - self._offset_max_us, self._offset_min_us - high_us)
            if apart_us > self.tolerance_us:
                self.jumps += 1
                self._hold_until_us = after_us + self.hold_us
                log.warning(
                    "the database's clock jumped; nothing is claimed for a while",
                    jumped_seconds=round(apart_us / 1e6, 3),
                    held_seconds=self.hold_us / 1e6,
                )
        self._offset_min_us, self._offset_max_us = low_us, high_us

    def steady(self, host_us: int) -> bool:
        """Whether claims may go on at this boot time, microseconds."""
        return host_us >= self._hold_until_us

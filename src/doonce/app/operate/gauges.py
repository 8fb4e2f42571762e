"""Gauges that are counted when they are scraped, so that nothing has to keep them true in between."""

from __future__ import annotations

import structlog

from doonce.app.metrics import Metrics
from doonce.app.operate.service import Operator
from doonce.base.errors import DoonceError
from doonce.db.clock import boottime_ns
from doonce.db.faults import DatabaseFault

log = structlog.get_logger("doonce.metrics")
FRESH_NS = 1_000_000_000
"""Scrapes that come faster see the same counts: reading them costs the database more than it tells."""


class Gauges:
    """Depth, age, unknown outcomes and gaps of the deployment, and this process's readiness."""

    def __init__(self, metrics: Metrics, operator: Operator) -> None:
        self._metrics = metrics
        self._operator = operator
        self._read_at_ns = -FRESH_NS

    async def refresh(self, *, ready: bool) -> None:
        """Count anew, unless that was just done. A database that does not answer leaves the last counts."""
        self._metrics.ready.set(int(ready))
        now_ns = boottime_ns()
        if now_ns - self._read_at_ns < FRESH_NS:
            return
        self._read_at_ns = now_ns
        try:
            counted = await self._operator.counts()
            gaps = await self._operator.gaps()
            retention = await self._operator.retention()
        except (DoonceError, DatabaseFault) as error:
            log.warning("metrics.not_counted", error=str(error))
            return
        for family in counted.families:
            self._metrics.depth.labels(family.family).set(family.waiting)
            self._metrics.newer.labels(family.family).set(family.newer)
            self._metrics.age.labels(family.family).set(family.oldest_due_us / 1e6)
        self._metrics.unknown.set(len(counted.unresolved))
        self._metrics.gaps.set(len(gaps))
        self._metrics.overdue.set(retention.overdue_us / 1e6)
        self._metrics.walked.set(retention.walked_us / 1e6 if retention.walked_us is not None else -1)
        self._metrics.gaps_left.set(sum(gap.needs_operator for gap in gaps))
